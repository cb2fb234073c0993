package storetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// Invalid writes are rejected before anything else is checked.
func testWritesInvalid(t *testing.T, h *storeTester) {
	h.endWaiting(h.create("r"), "i")
	said := approve("r", "resume", "i")
	h.wantResult(said, store.ResultAccepted)
	for name, bad := range map[string]store.Writes{
		"line that is not an object": {Audit: [][]byte{[]byte("[1]")}},
		"line that is not text":      {Audit: [][]byte{[]byte("{\"a\":\"\xff\"}")}},
		"index that is not text":     {Documents: []store.DocumentChange{{Kind: "k", ID: "p", Index: []byte("{\"a\":\"\xff\"}")}}},
		"name that is too long":      {Documents: []store.DocumentChange{{Kind: "k", ID: strings.Repeat("x", store.MaxDocumentIDLen+1)}}},
		"kind that is too long":      {Documents: []store.DocumentChange{{Kind: store.DocumentKind(strings.Repeat("x", store.MaxDocumentKindLen+1)), ID: "p"}}},
		"kind that is not text":      {Documents: []store.DocumentChange{{Kind: "\xff", ID: "p"}}},
		"kind with a zero byte":      {Documents: []store.DocumentChange{{Kind: "a\x00b", ID: "p"}}},
	} {
		said.Writes = bad
		exists := newRun("r")
		exists.Writes = bad
		old := store.Lease{Account: "acme", Run: "r", Fence: 99}
		_, _, begin := h.store.BeginEffect(h.ctx(), old, store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "d", Writes: bad})
		for call, err := range map[string]error{
			"CommitWrites": h.store.CommitWrites(h.ctx(), "acme", bad), "Create": errOf(h.store.Create(h.ctx(), exists)), "BeginEffect": begin,
			"EndExecution": errOf(h.store.EndExecution(h.ctx(), old, store.ExecutionEnd{Status: store.StatusFailed, Writes: bad})),
			"Decide":       errOf(h.store.Decide(h.ctx(), said)), "Cancel": errOf(h.store.Cancel(h.ctx(), "acme", "unknown", store.StatusCancelled, nil, bad)),
			"Retry":     errOf(h.store.Retry(h.ctx(), "acme", "unknown", bad)),
			"EndEffect": h.store.EndEffect(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: "unknown", Attempt: 1, State: store.EffectFailed, Writes: bad}),
		} {
			if !isField(err, store.ErrInvalid) {
				t.Errorf("%s with a %s: %v", call, name, err)
			}
		}
	}
	longest := store.DocumentChange{Kind: store.DocumentKind(strings.Repeat("k", store.MaxDocumentKindLen)), ID: strings.Repeat("\xff", store.MaxDocumentIDLen)}
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{longest}}))
	h.wantAudit()
}

// A request that is changed with the withdrawal of its interrupt gets one new revision.
func testWithdrawalRevisesRequestOnce(t *testing.T, h *storeTester) {
	asked := writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"), requestChange("i3", 0, "open"), requestChange("i4", 0, "open"))
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i1", "i2", "i3", "i4"), Writes: asked})
	decided := approve("r", "resume", "i3")
	decided.Writes = writesOf("decided", requestChange("i3", 1, "decided"))
	h.wantResult(decided, store.ResultAccepted)
	lease := h.claimed("w", "r").Lease
	end := store.ExecutionEnd{Status: store.StatusWaiting, Applied: []string{"i3"}, Open: newInterrupts("i2"), Writes: writesOf("stale", requestChange("i1", 2, "withdrawn"))}
	_, err := h.store.EndExecution(h.ctx(), lease, end)
	h.wantErr(err, store.ErrStale)
	end.Writes = writesOf("rested", requestChange("i1", 1, "withdrawn"))
	h.endExecution(lease, end)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, writesOf("cancelled", requestChange("i2", 1, "cancelled")))
	h.must(err)
	var got []string
	for _, p := range h.history("acme", "r").Documents {
		got = append(got, p.ID+" "+string(p.Body))
		if p.Revision != 2 {
			t.Errorf("%s has revision %d", p.ID, p.Revision)
		}
	}
	if diff := cmp.Diff([]string{"i1 withdrawn", "i2 cancelled", "i3 decided", "i4 open"}, got); diff != "" {
		t.Error(diff)
	}
	h.wantAudit("asked", "decided", "rested", "cancelled")
}

// The writes of a retry are applied only if the run is parked and the documents are not stale.
func testRetryWrites(_ *testing.T, h *storeTester) {
	lease := h.create("r")
	_, err := h.store.Retry(h.ctx(), "acme", "r", writesOf("too early"))
	h.wantErr(err, store.ErrNotFound)
	h.must(h.store.Release(h.ctx(), lease, store.Release{Park: true}))
	_, err = h.store.Retry(h.ctx(), "acme", "r", writesOf("stale", store.DocumentChange{Kind: "note", ID: "n", BaseRevision: 1}))
	h.wantErr(err, store.ErrStale)
	_, err = h.store.Retry(h.ctx(), "acme", "r", writesOf("retried", store.DocumentChange{Kind: "note", ID: "n"}))
	h.must(err)
	_, err = h.store.Retry(h.ctx(), "acme", "r", writesOf("too late"))
	h.wantErr(err, store.ErrNotFound)
	h.wantAudit("retried")
}

// An effect that was begun stays begun, even if the writes of the repeated call are stale.
func testBeginEffectAgainWithStaleWrites(t *testing.T, h *storeTester) {
	lease := h.create("r")
	effect := store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "policy"}, Writes: writesOf("stale", store.DocumentChange{Kind: "grant", ID: "g", BaseRevision: 1})}
	_, _, err := h.store.BeginEffect(h.ctx(), lease, effect)
	h.wantErr(err, store.ErrStale)
	if list, err := h.store.Interrupts(h.ctx(), "acme", "r"); err != nil || len(list) > 0 {
		t.Fatalf("the ruling was recorded: %+v, %v", list, err)
	}
	used := effect
	used.Writes = writesOf("begun", store.DocumentChange{Kind: "grant", ID: "g"})
	if _, begun, err := h.store.BeginEffect(h.ctx(), lease, used); err != nil || !begun {
		t.Fatal(begun, err)
	}
	for _, again := range []store.NewEffect{effect, used} {
		again.Writes.Documents[0].BaseRevision = 7
		if line, begun, err := h.store.BeginEffect(h.ctx(), lease, again); err != nil || begun || line.State != store.EffectStarted {
			t.Errorf("%+v, %t, %v", line, begun, err)
		}
	}
	h.wantAudit("begun")
}

// An interrupt that is postponed stays open until its new deadline, and can be decided until then.
func testExpirePostpones(t *testing.T, h *storeTester) {
	open := newInterrupts("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond
	}
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Writes: writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"), requestChange("i3", 0, "open"))})
	h.waitForClock(2 * time.Millisecond)
	now, err := h.store.Now(h.ctx())
	h.must(err)
	until := now.Add(time.Hour).Truncate(time.Microsecond)
	late := func(i store.Interrupt, p *store.Document) store.Writes {
		change := requestChange(i.ID, p.Revision, "later")
		change.InterruptDeadline, change.DueAt = until, until
		switch i.ID {
		case "i1":
			return writesOf("put off", change)
		case "i2": // another change was faster
			return writesOf("stale", change, store.DocumentChange{Kind: "vote", ID: "v", BaseRevision: 3})
		}
		return writesOf("expired", requestChange(i.ID, p.Revision, "expired"))
	}
	expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, late)
	h.must(err)
	if len(expired) != 1 || expired[0].ID != "i3" {
		t.Fatalf("expired are %+v", expired)
	}
	if i, p := h.interrupt("r", "i1"), h.document(store.RequestDocument, "i1"); i.State != store.InterruptPending || !i.Deadline.Equal(until) || p.Revision != 2 || string(p.Body) != "later" || !p.DueAt.Equal(until) {
		t.Errorf("the postponed interrupt is %+v, %+v", i, p)
	}
	if i, p := h.interrupt("r", "i2"), h.document(store.RequestDocument, "i2"); i.State != store.InterruptPending || i.Deadline.After(now) || p.Revision != 1 {
		t.Errorf("the concurrently changed interrupt is %+v, %+v", i, p)
	}
	yes := approve("r", "resume", "i1")
	yes.Writes = writesOf("decided", requestChange("i1", 2, "decided"))
	h.wantResult(yes, store.ResultAccepted)
	// a deadline in the past is fine: the next call finds it again
	late = func(i store.Interrupt, p *store.Document) store.Writes {
		change := requestChange(i.ID, p.Revision, "a moment")
		change.InterruptDeadline = i.Deadline.Add(time.Microsecond)
		return writesOf("a moment", change)
	}
	for range 2 {
		if expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, late); err != nil || len(expired) > 0 {
			t.Fatalf("%+v, %v", expired, err)
		}
	}
	if expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, nil); err != nil || len(expired) != 1 || expired[0].ID != "i2" {
		t.Errorf("%+v, %v", expired, err)
	}
	h.wantAudit("asked", "put off", "expired", "decided", "a moment", "a moment")
}

// Of many concurrent calls, one postpones a due interrupt, and none expires it.
func testExpirePostponesOnce(t *testing.T, h *storeTester) {
	open := newInterrupts("i")
	open[0].Timeout = time.Millisecond
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Writes: writesOf("asked", requestChange("i", 0, "open"))})
	h.waitForClock(2 * time.Millisecond)
	now, err := h.store.Now(h.ctx())
	h.must(err)
	until := now.Add(time.Hour).Truncate(time.Microsecond)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(i store.Interrupt, p *store.Document) store.Writes {
				change := requestChange(i.ID, p.Revision, "later")
				change.InterruptDeadline = until
				return writesOf("put off", change)
			})
			if err != nil || len(expired) > 0 {
				t.Errorf("expired %+v, %v", expired, err)
			}
		})
	}
	all.Wait()
	if i, p := h.interrupt("r", "i"), h.document(store.RequestDocument, "i"); i.State != store.InterruptPending || !i.Deadline.Equal(until) || p.Revision != 2 {
		t.Errorf("it is %+v, %+v", i, p)
	}
	h.wantAudit("asked", "put off")
}

// An interrupt with stale writes does not block others.
func testExpireSkipsStale(t *testing.T, h *storeTester) {
	open := newInterrupts("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond + time.Duration(n)*time.Microsecond
	}
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Writes: writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"))})
	h.waitForClock(2 * time.Millisecond)
	expire := func(want []string, writes func(store.Interrupt, *store.Document) store.Writes) {
		t.Helper()
		expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, writes)
		h.must(err)
		var got []string
		for _, i := range expired {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("expired are %q, not %q", got, want)
		}
	}
	expire([]string{"i1", "i3"}, func(i store.Interrupt, p *store.Document) store.Writes {
		if i.ID == "i2" { // the first write is valid, and must not be applied
			return writesOf("stale", requestChange("i2", p.Revision, "expired"), store.DocumentChange{Kind: "vote", ID: "v", BaseRevision: 3})
		}
		if p != nil {
			p.Revision, p.Body = 99, nil // the copy belongs to the caller
		}
		return writesOf("expired " + i.ID)
	})
	if p := h.document(store.RequestDocument, "i2"); p.Revision != 1 || string(p.Body) != "open" || h.interrupt("r", "i2").State != store.InterruptPending {
		t.Errorf("%+v", p)
	}
	if p := h.document(store.RequestDocument, "i1"); p.Revision != 1 || string(p.Body) != "open" {
		t.Errorf("%+v", p)
	}
	_, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(store.Interrupt, *store.Document) store.Writes {
		return store.Writes{Audit: [][]byte{[]byte("no line")}}
	})
	h.wantErr(err, store.ErrInvalid)
	expire([]string{"i2"}, nil)
	h.wantAudit("asked", "expired i1", "expired i3")
}
