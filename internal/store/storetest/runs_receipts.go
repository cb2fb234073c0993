package storetest

import (
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// wantOutcomes checks the outcomes of resumes by id; "" if there is none yet.
func (h *storeTester) wantOutcomes(want map[string]string) {
	h.t.Helper()
	for id, outcome := range want {
		receipt, err := h.store.Receipt(h.ctx(), "acme", "ann", id)
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

// claimAndEnd claims the run and ends its execution.
func (h *storeTester) claimAndEnd(status store.Status, outcome string, applied []string, open ...string) {
	h.t.Helper()
	end := store.ExecutionEnd{Status: status, Applied: applied, Open: newInterrupts(open...)}
	if outcome != "" {
		end.Outcome = []byte(outcome)
	}
	h.endExecution(h.claimed("w", "r").Lease, end)
}

// testReceiptOutcomes follows the receipts of three resumes through later executions of their run.
func testReceiptOutcomes(t *testing.T, h *storeTester) {
	h.waiting("r", "i1", "i2", "i3")
	h.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	h.wantOutcomes(map[string]string{"1": ""})
	h.claimAndEnd(store.StatusWaiting, "first", []string{"i1"}, "i2", "i3")
	h.wantOutcomes(map[string]string{"1": "first"})

	h.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	h.wantOutcomes(map[string]string{"1": "first", "2": ""})
	h.claimAndEnd(store.StatusWaiting, "second", nil, "i3") // it has not taken the answer
	h.wantOutcomes(map[string]string{"1": "first", "2": ""})
	h.claimAndEnd(store.StatusWaiting, "third", []string{"i2"}, "i3")
	h.wantOutcomes(map[string]string{"1": "first", "2": "third"})

	h.reencryptAll(3, reencrypted)
	h.wantOutcomes(map[string]string{"1": "anew: first", "2": "anew: third"})

	h.wantResult(approve("r", "3", "i3"), store.ResultAccepted)
	h.claimAndEnd(store.StatusWaiting, "", []string{"i3"}, "i4") // it had no outcome
	h.wantOutcomes(map[string]string{"1": "anew: first", "2": "anew: third", "3": ""})
	h.wantResult(approve("r", "4", "i4"), store.ResultAccepted)
	h.claimAndEnd(store.StatusCompleted, "end", []string{"i4"})
	h.wantOutcomes(map[string]string{"1": "anew: first", "2": "anew: third", "3": "", "4": "end"})
	h.reencryptAll(100, reencrypted)
	h.wantOutcomes(map[string]string{"1": "anew: anew: first", "2": "anew: anew: third", "3": "", "4": "anew: end"})
	h.must(h.store.DeleteRun(h.ctx(), "acme", "r", store.Writes{}))
	for _, id := range []string{"1", "2", "3", "4"} {
		_, err := h.store.Receipt(h.ctx(), "acme", "ann", id)
		h.wantErr(err, store.ErrNotFound)
	}
}

// testReceiptOutcomeOnce applies one resume in two executions, and two resumes in one.
func testReceiptOutcomeOnce(t *testing.T, h *storeTester) {
	h.waiting("r", "i1", "i2", "i3")
	h.wantResult(approve("r", "1", "i1", "i2"), store.ResultAccepted)
	h.wantResult(approve("r", "2", "i3"), store.ResultAccepted)
	h.claimAndEnd(store.StatusWaiting, "first", []string{"i1"})
	h.wantOutcomes(map[string]string{"1": "first", "2": ""})
	h.claimAndEnd(store.StatusWaiting, "second", []string{"i2", "i3"}, "i4")
	h.wantOutcomes(map[string]string{"1": "first", "2": "second"})
	h.wantResult(approve("r", "4", "i4"), store.ResultAccepted)
	lease := h.claimed("w", "r").Lease
	h.wantOutcomes(map[string]string{"1": "first", "2": "second", "4": ""})
	h.must(h.store.Release(h.ctx(), lease, store.Release{Park: true}))
	_, err := h.store.Retry(h.ctx(), "acme", "r", store.Writes{})
	h.must(err)
	h.wantOutcomes(map[string]string{"1": "first", "2": "second", "4": ""})
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	h.wantOutcomes(map[string]string{"1": "first", "2": "second", "4": ""})
}

// testReceiptOutcomeReplay repeats a decision long after the run has another outcome.
func testReceiptOutcomeReplay(t *testing.T, h *storeTester) {
	h.waiting("r", "i1", "i2")
	h.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	h.claimAndEnd(store.StatusWaiting, "first", []string{"i1"}, "i2")
	h.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	h.claimAndEnd(store.StatusFailed, "second", []string{"i2"})
	for id, want := range map[string]string{"1": "first", "2": "second"} {
		again, err := h.store.Decide(h.ctx(), approve("r", id, "i"+id))
		h.must(err)
		if string(again.Outcome) != want || !again.Replayed {
			t.Errorf("resume %s again: %+v, %q", id, again, again.Outcome)
		}
	}
}
