package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// runDocumentKind is a kind of documents that have the id of their run.
const runDocumentKind store.DocumentKind = "run"

func (h *storeTester) snapshot(stateKey string, own store.DocumentKind) store.RunSnapshot {
	h.t.Helper()
	s, err := h.store.RunSnapshot(h.ctx(), "acme", stateKey, own)
	h.must(err)
	return s
}

// testRunSnapshot compares the snapshot with the single reads; it contains only open interrupts.
func testRunSnapshot(t *testing.T, h *storeTester) {
	_, err := h.store.RunSnapshot(h.ctx(), "acme", "key-r", runDocumentKind)
	h.wantErr(err, store.ErrNotFound)
	h.waiting("r", "i2", "i1", "i3", "i4")
	h.wantResult(approve("r", "1", "i3"), store.ResultAccepted)
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{
		requestChange("i1", 0, "asked"), requestChange("i4", 0, "asked, too"), requestChange("i3", 0, "decided"),
		{Kind: runDocumentKind, ID: "r", Run: "r", Body: []byte("dossier")}, {Kind: "vote", ID: "r"}, {Kind: runDocumentKind, ID: "another"}, {Kind: "vote", ID: "i1"},
	}}))
	before := h.now()
	got := h.snapshot("key-r", runDocumentKind)
	if got.ReadAt.Before(before) || got.ReadAt.After(h.now()) {
		t.Errorf("it is %v, and not between %v and now", got.ReadAt, before)
	}
	run, err := h.store.Get(h.ctx(), "acme", "key-r")
	h.must(err)
	run.Input, run.Outcome = nil, nil
	want := store.RunSnapshot{
		Run: run, Open: []store.Interrupt{h.interrupt("r", "i2"), h.interrupt("r", "i1"), h.interrupt("r", "i4")}, ReadAt: got.ReadAt,
		Documents: []store.Document{h.document(store.RequestDocument, "i1"), h.document(store.RequestDocument, "i4"), h.document(runDocumentKind, "r")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for id, there := range map[string]bool{"i1": true, "i2": false, "i3": false} {
		if p := got.Document(store.RequestDocument, id); (p != nil) != there || there && p.ID != id {
			t.Errorf("the request of %s: %+v", id, p)
		}
	}
	if p := h.snapshot("key-r", "").Document(runDocumentKind, "r"); p != nil {
		t.Errorf("unexpected document %+v", p)
	}
	h.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	if s := h.snapshot("key-r", ""); len(s.Open) != 2 || s.Run.Status != store.StatusReady {
		t.Errorf("it is %s, with %d questions", s.Run.Status, len(s.Open))
	}
}

// testRunSnapshotNewest reuses a state key: interrupts and documents of the former run are not part
// of the snapshot.
func testRunSnapshotNewest(t *testing.T, h *storeTester) {
	h.waiting("r", "i1")
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{requestChange("i1", 0, "asked"), {Kind: runDocumentKind, ID: "r", Run: "r"}}}))
	_, err := h.store.Cancel(h.ctx(), "acme", "r", store.StatusSuperseded, nil, store.Writes{})
	h.must(err)
	if s := h.snapshot("key-r", runDocumentKind); len(s.Open) != 0 || s.Run.Status != store.StatusSuperseded || len(s.Documents) != 1 {
		t.Errorf("a run that has ended: %+v", s)
	}
	next := newRun("r2")
	next.StateKey, next.AfterGeneration = "key-r", 1
	_, err = h.store.Create(h.ctx(), next)
	h.must(err)
	if s := h.snapshot("key-r", runDocumentKind); s.Run.ID != "r2" || len(s.Open) != 0 || len(s.Documents) != 0 {
		t.Errorf("the next run: %+v", s)
	}
}

// testI8RunSnapshot has two accounts with the same names.
func testI8RunSnapshot(t *testing.T, h *storeTester) {
	h.waiting("r", "i1")
	documents := func(body string) store.Writes {
		return store.Writes{Documents: []store.DocumentChange{requestChange("i1", 0, body), {Kind: runDocumentKind, ID: "r", Run: "r", Body: []byte(body)}}}
	}
	h.must(h.store.CommitWrites(h.ctx(), "acme", documents("ours")))
	_, err := h.store.RunSnapshot(h.ctx(), "other", "key-r", runDocumentKind)
	h.wantErr(err, store.ErrNotFound)
	theirs := newRun("r")
	theirs.Account = "other"
	_, err = h.store.Create(h.ctx(), theirs)
	h.must(err)
	h.must(h.store.CommitWrites(h.ctx(), "other", documents("theirs")))
	for account, want := range map[string]int{"acme": 1, "other": 0} {
		s, err := h.store.RunSnapshot(h.ctx(), account, "key-r", runDocumentKind)
		h.must(err)
		if s.Run.Account != account || len(s.Open) != want || len(s.Documents) != want+1 {
			t.Errorf("%s sees %+v", account, s)
		}
		for _, p := range s.Documents {
			if p.Account != account {
				t.Errorf("%s sees the document of %s", account, p.Account)
			}
		}
	}
}
