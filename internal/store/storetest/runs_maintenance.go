package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// now returns the time of the store's clock, after all earlier changes.
func (h *storeTester) now() time.Time {
	h.t.Helper()
	h.waitForClock(time.Millisecond)
	now, err := h.store.Now(h.ctx())
	h.must(err)
	return now
}

func testFinishedRuns(t *testing.T, h *storeTester) {
	h.waiting("waiting", "i")
	h.create("running")
	h.release(h.create("parked"), store.Release{Park: true})
	h.readyRun("ready")
	h.create("cancelled") // created first, ended last
	h.endExecution(h.create("completed"), store.ExecutionEnd{Status: store.StatusCompleted, Outcome: []byte("o")})
	foreign := newRun("failed")
	foreign.Account = "other"
	lease, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	h.endExecution(lease, store.ExecutionEnd{Status: store.StatusFailed, Outcome: []byte("o")})
	between := h.now()
	h.waitForClock(time.Millisecond)
	for _, id := range []string{"superseded", "cancelled"} {
		as := store.StatusCancelled
		if id == "superseded" {
			h.create(id)
			as = store.StatusSuperseded
		}
		_, err = h.store.Cancel(h.ctx(), "acme", id, as, nil, store.Writes{})
		h.must(err)
	}
	var from time.Time
	finished := func(before time.Time, limit int) (ids []string) {
		list, err := h.store.FinishedRuns(h.ctx(), from, before, limit)
		h.must(err)
		for _, run := range list {
			if run.Status.Active() || !run.Updated.Before(before) || run.Input != nil || run.Outcome != nil || string(run.ProviderRef) != "ref" || run.StateKey == "" {
				t.Errorf("over before %v: %+v", before, run)
			}
			ids = append(ids, run.Account+" "+run.ID)
		}
		return ids
	}
	all := []string{"acme completed", "other failed", "acme superseded", "acme cancelled"}
	now := h.now()
	for limit := 1; limit <= 5; limit++ {
		if got := finished(now, limit); !slices.Equal(got, all[:min(limit, 4)]) {
			t.Errorf("the first %d are %q", limit, got)
		}
	}
	if got := finished(between, 10); !slices.Equal(got, all[:2]) {
		t.Errorf("ended before the others: %q", got)
	}
	first, err := h.store.Get(h.ctx(), "acme", "key-completed")
	h.must(err)
	if got := finished(first.Updated, 10); len(got) > 0 {
		t.Errorf("ended before the first: %q", got)
	}
	from = between.Add(time.Microsecond)
	if got := finished(now, 10); !slices.Equal(got, all[2:]) {
		t.Errorf("ended since then: %q", got)
	}
	last, err := h.store.Get(h.ctx(), "acme", "key-cancelled")
	h.must(err)
	if from = last.Updated; !slices.Equal(finished(now, 10), all[3:]) {
		t.Errorf("ended since the last: %q", finished(now, 10))
	}
	if from = from.Add(time.Microsecond); len(finished(now, 10)) > 0 {
		t.Errorf("ended after the last: %q", finished(now, 10))
	}
}

func testDeleteRun(t *testing.T, h *storeTester) {
	h.fullRun("r")
	if list, err := h.store.FinishedRuns(h.ctx(), time.Time{}, h.now(), 10); err != nil || len(list) != 1 {
		t.Fatalf("finished are %+v, %v", list, err)
	}
	_, cursor := h.feed("", 0)
	h.wantErr(h.store.DeleteRun(h.ctx(), "acme", "r", store.Writes{Audit: [][]byte{[]byte(`nonsense`)}}), store.ErrInvalid)
	for range 2 { // the second time it is unknown, and nothing is written
		h.must(h.store.DeleteRun(h.ctx(), "acme", "r", writesOf("gone")))
	}
	h.wantAudit("gone")
	h.wantDeleted("r")
	if list, _ := h.feed("", 0); len(list) > 0 {
		t.Errorf("the feed has %+v", list)
	}
	for name, err := range map[string]error{
		"Receipt":     errOf(h.store.Receipt(h.ctx(), "acme", "ann", "r")),
		"a rejection": errOf(h.store.Receipt(h.ctx(), "acme", "ann", "r refused")),
		"Get":         errOf(h.store.Get(h.ctx(), "acme", "key-r")),
		"EndEffect":   h.store.EndEffect(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: "r-1", Attempt: 1, State: store.EffectFailed}),
	} {
		if name += ":"; err == nil {
			t.Error(name, "is still there")
		}
		h.wantErr(err, store.ErrNotFound)
	}
	h.wantRuns(store.RunFilter{})
	if list, err := h.store.FinishedRuns(h.ctx(), time.Time{}, h.now(), 10); err != nil || len(list) > 0 {
		t.Errorf("finished are %+v, %v", list, err)
	}

	// Calls with outdated data must not leave anything that is never deleted.
	h.wantResult(approve("r", "late", "r-1"), store.ResultNotFound)
	h.wantErr(errOf(h.store.Receipt(h.ctx(), "acme", "ann", "late")), store.ErrNotFound)
	late := store.DocumentChange{Kind: "vote", ID: "late", Run: "r"}
	h.wantErr(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "grant", ID: "g"}, late}}), store.ErrNotFound)
	for _, name := range []struct {
		kind store.DocumentKind
		id   string
	}{{"vote", "late"}, {"grant", "g"}} {
		h.wantErr(errOf(h.store.Document(h.ctx(), "acme", name.kind, name.id)), store.ErrNotFound)
	}

	h.fullRun("r") // all names can be used again
	if run, err := h.store.Get(h.ctx(), "acme", "key-r"); err != nil || run.Generation != 1 {
		t.Errorf("the next is %+v, %v", run, err)
	}
	list, _ := h.feed(cursor, 0)
	if all := h.events("r"); !slices.EqualFunc(list, all, sameEvent) {
		t.Errorf("after the deleted ones, the feed has %+v of %+v", list, all)
	}
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// wantDeleted checks that nothing is stored about a run.
func (h *storeTester) wantDeleted(id string) {
	h.t.Helper()
	h.wantErr(errOf(h.store.History(h.ctx(), "acme", id)), store.ErrNotFound)
	h.wantErr(errOf(h.store.Load(h.ctx(), store.Key{Account: "acme", Run: id})), store.ErrNotFound)
	if list, err := h.store.Interrupts(h.ctx(), "acme", id); err != nil || len(list) > 0 {
		h.t.Errorf("there are interrupts of %s: %+v, %v", id, list, err)
	}
	if list := h.events(id); len(list) > 0 {
		h.t.Errorf("there are events of %s: %+v", id, list)
	}
	if list, err := h.store.Documents(h.ctx(), "acme", "vote", store.DocumentFilter{Run: id}); err != nil || len(list) > 0 {
		h.t.Errorf("there are documents of %s: %+v, %v", id, list, err)
	}
}

func testDeleteRunKeepsOthers(t *testing.T, h *storeTester) {
	h.fullRun("r")
	h.fullRun("other")
	next := newRun("next")
	next.StateKey, next.AfterGeneration = "key-r", 1
	lease, err := h.store.Create(h.ctx(), next)
	h.must(err)
	foreign := newRun("r")
	foreign.Account = "elsewhere" // all names are the same there
	theirs, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	_, _, err = h.store.BeginEffect(h.ctx(), theirs, allowedEffect("r-1", 1))
	h.must(err)
	word := approve("r", "r", "r-1")
	word.Account = "elsewhere"
	h.wantResult(word, store.ResultAlreadyDecided)
	mustSave(t, h.store, store.Key{Account: "elsewhere", Run: "r"}, 0, parts{"state": "theirs"}.delta())
	other, elsewhere := h.history("acme", "other"), h.history("elsewhere", "r")

	h.must(h.store.DeleteRun(h.ctx(), "nobody", "r", store.Writes{}))
	h.history("acme", "r") // I8: another account cannot delete it
	h.must(h.store.DeleteRun(h.ctx(), "acme", "r", store.Writes{}))
	h.wantDeleted("r")
	for _, now := range []struct {
		account, run string
		was          store.History
	}{{"acme", "other", other}, {"elsewhere", "r", elsewhere}} {
		if diff := cmp.Diff(now.was, h.history(now.account, now.run)); diff != "" {
			t.Errorf("%s of %s:\n%s", now.run, now.account, diff)
		}
		mustLoad(t, h.store, store.Key{Account: now.account, Run: now.run})
	}
	if run, err := h.store.Get(h.ctx(), "acme", "key-r"); err != nil || run.ID != "next" || run.Generation != 2 {
		t.Errorf("the newest run is %+v, %v", run, err)
	}
	h.must(h.store.Renew(h.ctx(), lease, leaseDuration))
}

func testDeleteRunActive(t *testing.T, h *storeTester) {
	h.create("running")
	h.waiting("waiting", "i")
	h.release(h.create("parked"), store.Release{Park: true})
	h.readyRun("ready")
	for _, id := range []string{"running", "waiting", "parked", "ready"} {
		h.wantStatus(id, store.Status(id))
		before := h.history("acme", id)
		h.wantErr(h.store.DeleteRun(h.ctx(), "acme", id, writesOf("gone")), store.ErrRunActive)
		if diff := cmp.Diff(before, h.history("acme", id)); diff != "" {
			t.Errorf("%s:\n%s", id, diff)
		}
	}
	h.wantAudit()
}

// testDeleteRunRace deletes runs while others decide, execute and cancel them.
func testDeleteRunRace(t *testing.T, h *storeTester) {
	for round := range 6 {
		id := fmt.Sprint("r", round)
		h.waiting(id, id+"-1", id+"-2")
		var wg sync.WaitGroup
		for n := range 2 {
			wg.Go(func() {
				if _, err := h.store.Decide(h.ctx(), approve(id, fmt.Sprint(id, n), fmt.Sprintf("%s-%d", id, n+1))); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() { // a minimal worker
				work, err := h.store.Claim(h.ctx(), store.Claim{Owner: "w", Lease: leaseDuration, Account: "acme", Run: id})
				if err == nil && work != nil {
					_, err = h.store.EndExecution(h.ctx(), work.Lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{id + "-1"}})
				}
				if err != nil && !isField(err, store.ErrFenced) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := h.store.Cancel(h.ctx(), "acme", id, store.StatusCancelled, nil, store.Writes{}); err != nil && !isField(err, store.ErrNotFound) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				for range 3 {
					history, err := h.store.History(h.ctx(), "acme", id)
					if err == nil && len(history.Interrupts) != 2 {
						t.Errorf("partially deleted: %+v", history)
					}
					if err = h.store.DeleteRun(h.ctx(), "acme", id, store.Writes{}); err != nil && !isField(err, store.ErrRunActive) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		// it has been cancelled by now
		h.must(h.store.DeleteRun(h.ctx(), "acme", id, store.Writes{}))
		h.wantDeleted(id)
	}
}

func testHistory(t *testing.T, h *storeTester) {
	h.fullRun("other")
	h.fullRun("r")
	history := h.history("acme", "r")
	run, err := h.store.Get(h.ctx(), "acme", "key-r")
	h.must(err)
	interrupts, err := h.store.Interrupts(h.ctx(), "acme", "r")
	h.must(err)
	if len(interrupts) != 3 || len(history.Effects) != 2 || len(history.Resumes) != 2 || string(run.Outcome) != "outcome of r" {
		t.Fatalf("the history is %+v", history)
	}
	want := store.History{Run: run, Interrupts: interrupts, Resumes: history.Resumes, Effects: history.Effects, Events: h.events("r"), Documents: []store.Document{h.document("vote", "r-vote")}}
	if diff := cmp.Diff(want, history); diff != "" {
		t.Error(diff)
	}
	for _, resume := range history.Resumes {
		receipt, err := h.store.Receipt(h.ctx(), "acme", "ann", resume.ID)
		h.must(err)
		receipt.Replayed = false
		if diff := cmp.Diff(store.Resume{Actor: "ann", ID: resume.ID, BodyDigest: "body", Receipt: receipt}, resume); diff != "" {
			t.Error(diff)
		}
	}
	for n, id := range []string{"r-allowed", "r-1"} {
		line := history.Effects[n]
		if line.Account != "acme" || line.Run != "r" || line.Interrupt != id || line.Attempt != 1 || line.State != store.EffectSucceeded || string(line.Receipt) != "receipt of "+id || line.Started.IsZero() || line.Ended.IsZero() || line.Ruling != nil {
			t.Errorf("effect %d is %+v", n+1, line)
		}
	}
	h.wantErr(errOf(h.store.History(h.ctx(), "acme", "unknown")), store.ErrNotFound)
	h.wantErr(errOf(h.store.History(h.ctx(), "nobody", "r")), store.ErrNotFound)
}

func testPutIfAbsent(t *testing.T, h *storeTester) {
	for _, test := range []struct{ name, value, want string }{{"a", "first", "first"}, {"a", "second", "first"}, {"b", "third", "third"}, {"a", "first", "first"}} {
		if kept, err := h.store.PutIfAbsent(h.ctx(), test.name, []byte(test.value)); err != nil || string(kept) != test.want {
			t.Errorf("%s is %q, %v", test.name, kept, err)
		}
	}
}

func testPutIfAbsentRace(t *testing.T, h *storeTester) {
	kept := make([][]byte, 12)
	var wg sync.WaitGroup
	for n := range kept {
		wg.Go(func() {
			var err error
			if kept[n], err = h.store.PutIfAbsent(h.ctx(), "key", fmt.Append(nil, "of ", n)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, one := range kept {
		if len(one) == 0 || !bytes.Equal(one, kept[0]) {
			t.Errorf("kept are %q", kept)
			break
		}
	}
}

func testSize(t *testing.T, h *storeTester) {
	h.fullRun("r")
	mustSave(t, h.store, store.Key{Account: "acme", Run: "big"}, 0, parts{"big": string(make([]byte, 1<<20))}.delta())
	size, err := h.store.Size(h.ctx())
	h.must(err)
	if size.Bytes < 1<<20 || size.Free < 0 || size.Free > size.Bytes || len(size.Rows) == 0 {
		t.Errorf("the size is %+v", size)
	}
	for table, rows := range size.Rows {
		if rows < 0 {
			t.Errorf("%d rows of %s", rows, table)
		}
	}
}

func testVacuum(t *testing.T, h *storeTester) {
	h.fullRun("gone")
	h.fullRun("kept")
	h.must(h.store.DeleteRun(h.ctx(), "acme", "gone", store.Writes{}))
	before := h.history("acme", "kept")
	var wg sync.WaitGroup
	defer wg.Wait() // also if the test fails
	wg.Go(func() {  // while others use it
		for n := range 5 {
			if err := writeEvents(h.ctx(), h.store, fmt.Sprint("w", n)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		h.must(h.store.Vacuum(h.ctx()))
	}
	wg.Wait()
	if diff := cmp.Diff(before, h.history("acme", "kept")); diff != "" {
		t.Error(diff)
	}
	wantStored(t, h.store, store.Key{Account: "acme", Run: "kept"}, parts{"state": "state of kept"}.checkpoint(1))
	h.wantDeleted("gone")
	h.wantEvents("w4", "created", "asked i-w4", "waiting", "decided i-w4", "effect_begun i-w4", "completed")
}
