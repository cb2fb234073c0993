package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/store"
)

// ofTheRun is a kind of papers that have the id of their run.
const ofTheRun store.PaperKind = "run"

func (h *house) standing(stateKey string, own store.PaperKind) store.Standing {
	h.t.Helper()
	s, err := h.store.Standing(h.ctx(), "acme", stateKey, own)
	h.must(err)
	return s
}

// testStanding is what the single reads say, in one go: but of what a run asks only what is open.
func testStanding(t *testing.T, h *house) {
	_, err := h.store.Standing(h.ctx(), "acme", "key-r", ofTheRun)
	h.wants(err, store.ErrNotFound)
	h.waiting("r", "i2", "i1", "i3", "i4")
	h.gets(approve("r", "1", "i3"), store.Accepted)
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{
		request("i1", 0, "asked"), request("i4", 0, "asked, too"), request("i3", 0, "decided"),
		{Kind: ofTheRun, ID: "r", Run: "r", Body: []byte("dossier")}, {Kind: "vote", ID: "r"}, {Kind: ofTheRun, ID: "another"}, {Kind: "vote", ID: "i1"},
	}}))
	before := h.now()
	got := h.standing("key-r", ofTheRun)
	if got.At.Before(before) || got.At.After(h.now()) {
		t.Errorf("it is %v, and not between %v and now", got.At, before)
	}
	run, err := h.store.Get(h.ctx(), "acme", "key-r")
	h.must(err)
	run.Input, run.Outcome = nil, nil
	want := store.Standing{
		Run: run, Open: []store.Interrupt{h.interrupt("r", "i2"), h.interrupt("r", "i1"), h.interrupt("r", "i4")}, At: got.At,
		Papers: []store.Paper{h.paper(store.RequestPaper, "i1"), h.paper(store.RequestPaper, "i4"), h.paper(ofTheRun, "r")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for id, there := range map[string]bool{"i1": true, "i2": false, "i3": false} {
		if p := got.Paper(store.RequestPaper, id); (p != nil) != there || there && p.ID != id {
			t.Errorf("the request of %s: %+v", id, p)
		}
	}
	if p := h.standing("key-r", "").Paper(ofTheRun, "r"); p != nil {
		t.Errorf("nobody asked for %+v", p)
	}
	h.gets(approve("r", "2", "i2"), store.Accepted)
	if s := h.standing("key-r", ""); len(s.Open) != 2 || s.Run.Status != store.Ready {
		t.Errorf("it is %s, with %d questions", s.Run.Status, len(s.Open))
	}
}

// testStandingNewest has a state key change hands: what the former run asked and had is not the new one's.
func testStandingNewest(t *testing.T, h *house) {
	h.waiting("r", "i1")
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{request("i1", 0, "asked"), {Kind: ofTheRun, ID: "r", Run: "r"}}}))
	_, err := h.store.Cancel(h.ctx(), "acme", "r", store.Superseded, nil, store.Beside{})
	h.must(err)
	if s := h.standing("key-r", ofTheRun); len(s.Open) != 0 || s.Run.Status != store.Superseded || len(s.Papers) != 1 {
		t.Errorf("a run that is over: %+v", s)
	}
	next := newRun("r2")
	next.StateKey, next.After = "key-r", 1
	_, err = h.store.Create(h.ctx(), next)
	h.must(err)
	if s := h.standing("key-r", ofTheRun); s.Run.ID != "r2" || len(s.Open) != 0 || len(s.Papers) != 0 {
		t.Errorf("the next run: %+v", s)
	}
}

// testI8Standing has two accounts use the same names.
func testI8Standing(t *testing.T, h *house) {
	h.waiting("r", "i1")
	papers := func(body string) store.Beside {
		return store.Beside{Papers: []store.PaperChange{request("i1", 0, body), {Kind: ofTheRun, ID: "r", Run: "r", Body: []byte(body)}}}
	}
	h.must(h.store.Amend(h.ctx(), "acme", papers("ours")))
	_, err := h.store.Standing(h.ctx(), "other", "key-r", ofTheRun)
	h.wants(err, store.ErrNotFound)
	theirs := newRun("r")
	theirs.Account = "other"
	_, err = h.store.Create(h.ctx(), theirs)
	h.must(err)
	h.must(h.store.Amend(h.ctx(), "other", papers("theirs")))
	for account, want := range map[string]int{"acme": 1, "other": 0} {
		s, err := h.store.Standing(h.ctx(), account, "key-r", ofTheRun)
		h.must(err)
		if s.Run.Account != account || len(s.Open) != want || len(s.Papers) != want+1 {
			t.Errorf("%s sees %+v", account, s)
		}
		for _, p := range s.Papers {
			if p.Account != account {
				t.Errorf("%s sees the paper of %s", account, p.Account)
			}
		}
	}
}
