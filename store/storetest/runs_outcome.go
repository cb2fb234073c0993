package storetest

import (
	"testing"

	"github.com/fermata-go/fermata/store"
)

// came checks what resumes came to: the id of each, and its outcome; "" if it has none yet.
func (h *house) came(want map[string]string) {
	h.t.Helper()
	for id, outcome := range want {
		receipt, err := h.store.Resumed(h.ctx(), "acme", "ann", id)
		h.must(err)
		if string(receipt.Outcome) != outcome || (receipt.Outcome == nil) != (outcome == "") {
			h.t.Errorf("resume %s came to %q, want %q", id, receipt.Outcome, outcome)
		}
	}
	for _, resume := range h.history("acme", "r").Resumes {
		if string(resume.Receipt.Outcome) != want[resume.ID] {
			h.t.Errorf("resume %s has %q in the history, want %q", resume.ID, resume.Receipt.Outcome, want[resume.ID])
		}
	}
}

// goOn claims the run and gives it back.
func (h *house) goOn(status store.Status, outcome string, applied []string, open ...string) {
	h.t.Helper()
	rest := store.Rest{Status: status, Applied: applied, Open: questions(open...)}
	if outcome != "" {
		rest.Outcome = []byte(outcome)
	}
	h.rest(h.claimed("w", "r").Lease, rest)
}

// testResumeOutcomes follows what three resumes are answered with through everything that happens to their run afterwards.
func testResumeOutcomes(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2", "i3")
	h.gets(approve("r", "1", "i1"), store.Accepted)
	h.came(map[string]string{"1": ""})
	h.goOn(store.Waiting, "first", []string{"i1"}, "i2", "i3")
	h.came(map[string]string{"1": "first"})

	h.gets(approve("r", "2", "i2"), store.Accepted)
	h.came(map[string]string{"1": "first", "2": ""})
	h.goOn(store.Waiting, "second", nil, "i3") // which has not taken it
	h.came(map[string]string{"1": "first", "2": ""})
	h.goOn(store.Waiting, "third", []string{"i2"}, "i3")
	h.came(map[string]string{"1": "first", "2": "third"})

	h.reseal(3, anew)
	h.came(map[string]string{"1": "anew: first", "2": "anew: third"})

	h.gets(approve("r", "3", "i3"), store.Accepted)
	h.goOn(store.Waiting, "", []string{"i3"}, "i4") // it came to nothing that could be told
	h.came(map[string]string{"1": "anew: first", "2": "anew: third", "3": ""})
	h.gets(approve("r", "4", "i4"), store.Accepted)
	h.goOn(store.Completed, "end", []string{"i4"})
	h.came(map[string]string{"1": "anew: first", "2": "anew: third", "3": "", "4": "end"})
	h.reseal(100, anew)
	h.came(map[string]string{"1": "anew: anew: first", "2": "anew: anew: third", "3": "", "4": "anew: end"})
	h.must(h.store.Forget(h.ctx(), "acme", "r", store.Beside{}))
	for _, id := range []string{"1", "2", "3", "4"} {
		_, err := h.store.Resumed(h.ctx(), "acme", "ann", id)
		h.wants(err, store.ErrNotFound)
	}
}

// testResumeOutcomeOnce has one resume applied by two rests, and two resumes by one.
func testResumeOutcomeOnce(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2", "i3")
	h.gets(approve("r", "1", "i1", "i2"), store.Accepted)
	h.gets(approve("r", "2", "i3"), store.Accepted)
	h.goOn(store.Waiting, "first", []string{"i1"})
	h.came(map[string]string{"1": "first", "2": ""})
	h.goOn(store.Waiting, "second", []string{"i2", "i3"}, "i4")
	h.came(map[string]string{"1": "first", "2": "second"})
	h.gets(approve("r", "4", "i4"), store.Accepted)
	lease := h.claimed("w", "r").Lease
	h.came(map[string]string{"1": "first", "2": "second", "4": ""})
	h.must(h.store.Release(h.ctx(), lease, store.Release{Park: true}))
	_, err := h.store.Retry(h.ctx(), "acme", "r", store.Beside{})
	h.must(err)
	h.came(map[string]string{"1": "first", "2": "second", "4": ""})
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, store.Beside{})
	h.must(err)
	h.came(map[string]string{"1": "first", "2": "second", "4": ""})
}

// testResumeOutcomeReplay decides again, long after the run has come to something else.
func testResumeOutcomeReplay(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2")
	h.gets(approve("r", "1", "i1"), store.Accepted)
	h.goOn(store.Waiting, "first", []string{"i1"}, "i2")
	h.gets(approve("r", "2", "i2"), store.Accepted)
	h.goOn(store.Failed, "second", []string{"i2"})
	for id, want := range map[string]string{"1": "first", "2": "second"} {
		again, err := h.store.Decide(h.ctx(), approve("r", id, "i"+id))
		h.must(err)
		if string(again.Outcome) != want || !again.Replayed {
			t.Errorf("resume %s again: %+v, %q", id, again, again.Outcome)
		}
	}
}
