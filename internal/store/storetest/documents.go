package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

// requestChange returns a change of the request of an interrupt.
func requestChange(interrupt string, base int64, body string) store.DocumentChange {
	return store.DocumentChange{Kind: store.RequestDocument, ID: interrupt, Run: "r", BaseRevision: base, Body: []byte(body), Index: []byte(`{"rule":"r1","n":2}`)}
}

// auditLine returns an object for the audit log.
func auditLine(text string) []byte { return fmt.Appendf(nil, `{"type":%q}`, text) }

// writesOf returns writes with requests and a line that names the act.
func writesOf(act string, documents ...store.DocumentChange) store.Writes {
	return store.Writes{Documents: documents, Audit: [][]byte{auditLine(act)}}
}

func (h *storeTester) document(kind store.DocumentKind, id string) store.Document {
	h.t.Helper()
	p, err := h.store.Document(h.ctx(), "acme", kind, id)
	h.must(err)
	return p
}

// wantAudit checks the audit log of acme and verifies its chain.
func (h *storeTester) wantAudit(want ...string) {
	h.t.Helper()
	lines, err := h.store.AuditLines(h.ctx(), "acme", 0, 0)
	h.must(err)
	head := chain.Head{}
	var got []string
	for _, l := range lines {
		var said struct{ Type, Time string }
		h.must(json.Unmarshal(l.Raw, &said))
		got = append(got, said.Type)
		at, err := time.Parse(time.RFC3339Nano, said.Time)
		h.must(err)
		raw, next, err := chain.Next(head, at, auditLine(said.Type))
		h.must(err)
		if !bytes.Equal(raw, l.Raw) || next.Seq != l.Seq {
			h.t.Fatalf("line %d is\n%s, not\n%s", l.Seq, l.Raw, raw)
		}
		head = next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Fatalf("the log (-want +got):\n%s", diff)
	}
	end, err := h.store.AuditHead(h.ctx(), "acme")
	h.must(err)
	if end != head {
		h.t.Fatalf("the head is %v, not %v", end, head)
	}
}

func testDocuments(t *testing.T, h *storeTester) {
	next := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	grant := store.DocumentChange{Kind: "grant", ID: "g1", Body: []byte("sealed"), Index: []byte(`{"a": 1}`), DueAt: next}
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{grant, {Kind: "grant", ID: "g2"}}}))
	p := h.document("grant", "g1")
	if p.Account != "acme" || p.Revision != 1 || string(p.Body) != "sealed" || string(p.Index) != `{"a": 1}` || !p.DueAt.Equal(next) || p.Created.IsZero() || p.Run != "" {
		t.Fatalf("%+v", p)
	}
	if p := h.document("grant", "g2"); p.Body != nil || p.Index != nil || !p.DueAt.IsZero() {
		t.Fatalf("%+v", p)
	}
	_, err := h.store.Document(h.ctx(), "other", "grant", "g1")
	h.wantErr(err, store.ErrNotFound)
	_, err = h.store.Document(h.ctx(), "acme", "vote", "g1")
	h.wantErr(err, store.ErrNotFound)

	grant.BaseRevision, grant.Body, grant.Index, grant.DueAt = 1, []byte("anew"), nil, time.Time{}
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{grant}}))
	if p := h.document("grant", "g1"); p.Revision != 2 || string(p.Body) != "anew" || p.Index != nil || !p.DueAt.IsZero() {
		t.Fatalf("%+v", p)
	}
	for page, want := range map[string][]string{"": {"g1"}, "g1": {"g2"}, "g2": nil} {
		list, err := h.store.Documents(h.ctx(), "acme", "grant", store.DocumentFilter{After: page, Limit: 1})
		h.must(err)
		var got []string
		for _, p := range list {
			got = append(got, p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %q: %s", page, diff)
		}
	}
}

func testDocumentsStale(t *testing.T, h *storeTester) {
	made := store.DocumentChange{Kind: "grant", ID: "g1", Body: []byte("first")}
	other := store.DocumentChange{Kind: "grant", ID: "g2"}
	amend := func(want error, documents ...store.DocumentChange) {
		t.Helper()
		h.wantErr(h.store.CommitWrites(h.ctx(), "acme", writesOf("refused", documents...)), want)
	}
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("made", made)))
	amend(store.ErrStale, other, made) // it exists
	made.BaseRevision = 2
	amend(store.ErrStale, other, made)
	made.BaseRevision = -1
	amend(store.ErrStale, other, made)
	amend(store.ErrStale, store.DocumentChange{Kind: "grant", ID: "g3", BaseRevision: 1})
	amend(store.ErrInvalid, other, other)
	amend(store.ErrInvalid, store.DocumentChange{Kind: "grant"})
	amend(store.ErrInvalid, store.DocumentChange{ID: "g4"})
	amend(store.ErrInvalid, store.DocumentChange{Kind: "grant", ID: "g4", Index: []byte(`[1]`)})
	amend(store.ErrInvalid, store.DocumentChange{Kind: "grant", ID: "g4", Index: []byte(`{`)})
	for _, bad := range []string{"", "{}", "[]", `{"a":}`, "null", ` {"a":1}`} {
		h.wantErr(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{other}, Audit: [][]byte{auditLine("refused"), []byte(bad)}}), store.ErrInvalid)
	}
	if p := h.document("grant", "g1"); p.Revision != 1 || string(p.Body) != "first" {
		t.Fatalf("%+v", p)
	}
	_, err := h.store.Document(h.ctx(), "acme", "grant", "g2")
	h.wantErr(err, store.ErrNotFound)
	h.wantAudit("made")
}

func testDocumentsDue(t *testing.T, h *storeTester) {
	now, err := h.store.Now(h.ctx())
	h.must(err)
	past := func(kind store.DocumentKind, id string, ago time.Duration) store.DocumentChange {
		return store.DocumentChange{Kind: kind, ID: id, Run: "r", DueAt: now.Add(-ago)}
	}
	h.endWaiting(h.create("r"), "i1", "i2", "i3")
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Documents: []store.DocumentChange{
		past(store.RequestDocument, "i1", time.Minute), past(store.RequestDocument, "i2", time.Hour), past(store.RequestDocument, "i3", -time.Hour),
		past(store.RequestDocument, "not raised", time.Hour), past("notice", "n1", time.Second),
	}}))
	theirs := past("notice", "n2", time.Minute)
	theirs.Run = "" // they have none
	h.must(h.store.CommitWrites(h.ctx(), "other", store.Writes{Documents: []store.DocumentChange{theirs}}))
	due := func(kind store.DocumentKind, limit int, want ...string) {
		t.Helper()
		list, err := h.store.DueDocuments(h.ctx(), kind, limit)
		h.must(err)
		var got []string
		for _, p := range list {
			got = append(got, p.Account+" "+p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", kind, diff)
		}
	}
	due(store.RequestDocument, 10, "acme i2", "acme i1")
	due(store.RequestDocument, 1, "acme i2")
	due("notice", 10, "other n2", "acme n1")
	due("grant", 10)
	due("notice", 0)

	// A withdrawn request has a new revision and no DueAt.
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	due(store.RequestDocument, 10)
	if p := h.document(store.RequestDocument, "i2"); p.Revision != 2 || !p.DueAt.IsZero() {
		t.Errorf("%+v", p)
	}
}

// Every change applies its writes, and a rejected change does not.
func testWrites(t *testing.T, h *storeTester) {
	n := newRun("r")
	n.Writes = writesOf("created")
	lease, err := h.store.Create(h.ctx(), n)
	h.must(err)
	_, err = h.store.Create(h.ctx(), n)
	h.wantErr(err, store.ErrExists)

	end := store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i1", "i2"), Writes: writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"))}
	h.endExecution(lease, end)
	_, err = h.store.EndExecution(h.ctx(), lease, end)
	h.wantErr(err, store.ErrFenced)
	if p := h.document(store.RequestDocument, "i1"); p.Run != "r" || string(p.Body) != "open" {
		t.Fatalf("%+v", p)
	}

	decision := approve("r", "resume", "i1")
	decision.Writes = writesOf("decided", requestChange("i1", 1, "decided"))
	h.wantResult(decision, store.ResultAccepted)
	h.wantResult(decision, store.ResultAccepted) // again: the same receipt, and nothing is written
	refused := approve("r", "late", "i1")
	for _, writes := range []store.Writes{writesOf("refused"), writesOf("refused", requestChange("i1", 2, "refused")), {Documents: []store.DocumentChange{requestChange("i1", 2, "refused")}}} {
		refused.Writes = writes
		_, err = h.store.Decide(h.ctx(), refused)
		h.wantErr(err, store.ErrStale) // its writes were prepared for an open interrupt
	}
	_, err = h.store.Receipt(h.ctx(), "acme", "ann", "late")
	h.wantErr(err, store.ErrNotFound)
	refused.Writes = store.Writes{}
	h.wantResult(refused, store.ResultAlreadyDecided)
	refused.Writes = writesOf("refused", requestChange("i1", 2, "refused"))
	h.wantResult(refused, store.ResultAlreadyDecided) // again: the same receipt
	if p := h.document(store.RequestDocument, "i1"); p.Revision != 2 || string(p.Body) != "decided" {
		t.Fatalf("%+v", p)
	}

	lease = h.claimed("w", "r").Lease
	effect := store.NewEffect{Interrupt: "i1", Attempt: 1, ActionDigest: "action-i1", Writes: writesOf("begun")}
	effectLine, begun, err := h.store.BeginEffect(h.ctx(), lease, effect)
	if err != nil || !begun || effectLine.Writes.Audit != nil {
		t.Fatal(effectLine, begun, err)
	}
	_, _, err = h.store.BeginEffect(h.ctx(), lease, effect)
	h.must(err)
	effectEnd := store.EffectEnd{Account: "acme", Interrupt: "i1", Attempt: 1, State: store.EffectSucceeded, Writes: writesOf("ended")}
	h.must(h.store.EndEffect(h.ctx(), effectEnd))
	h.must(h.store.EndEffect(h.ctx(), effectEnd))

	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, writesOf("cancelled"))
	h.must(err)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, writesOf("cancelled"))
	h.wantErr(err, store.ErrNotFound)
	h.wantAudit("created", "asked", "decided", "begun", "ended", "cancelled")
	if p := h.document(store.RequestDocument, "i2"); p.Revision != 2 {
		t.Errorf("the withdrawn request: %+v", p)
	}
}

// A change with stale writes is not made.
func testWritesStale(t *testing.T, h *storeTester) {
	stale := writesOf("stale", store.DocumentChange{Kind: "grant", ID: "g", BaseRevision: 7})
	n := newRun("r")
	n.Writes = stale
	_, err := h.store.Create(h.ctx(), n)
	h.wantErr(err, store.ErrStale)
	_, err = h.store.Get(h.ctx(), "acme", "key-r")
	h.wantErr(err, store.ErrNotFound)

	lease := h.create("r")
	_, err = h.store.EndExecution(h.ctx(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i1"), Writes: stale})
	h.wantErr(err, store.ErrStale)
	h.wantStatus("r", store.StatusRunning)
	h.endWaiting(lease, "i1")

	decision := approve("r", "resume", "i1")
	decision.Writes = stale
	_, err = h.store.Decide(h.ctx(), decision)
	h.wantErr(err, store.ErrStale)
	_, err = h.store.Receipt(h.ctx(), "acme", "ann", "resume")
	h.wantErr(err, store.ErrNotFound) // it can be repeated
	decision.Writes = store.Writes{}
	h.wantResult(decision, store.ResultAccepted)

	lease = h.claimed("w", "r").Lease
	effect := store.NewEffect{Interrupt: "i1", Attempt: 1, ActionDigest: "action-i1", Writes: stale}
	_, _, err = h.store.BeginEffect(h.ctx(), lease, effect)
	h.wantErr(err, store.ErrStale)
	effect.Writes = store.Writes{}
	if _, begun, err := h.store.BeginEffect(h.ctx(), lease, effect); err != nil || !begun {
		t.Fatal(begun, err)
	}
	h.wantErr(h.store.EndEffect(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i1", Attempt: 1, State: store.EffectSucceeded, Writes: stale}), store.ErrStale)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, stale)
	h.wantErr(err, store.ErrStale)
	h.wantStatus("r", store.StatusRunning)
	if effects := h.history("acme", "r").Effects; len(effects) != 1 || effects[0].State != store.EffectStarted {
		t.Errorf("%+v", effects)
	}
	h.wantAudit()
}

// A decision requires the current revision of its request.
func testDecideRequest(t *testing.T, h *storeTester) {
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i1"), Writes: writesOf("asked", requestChange("i1", 0, "open"))})
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("viewed", requestChange("i1", 1, "viewed"))))
	decision := approve("r", "resume", "i1")
	for _, writes := range []store.Writes{{}, writesOf("blind"), writesOf("stale", requestChange("i1", 1, "decided")), writesOf("else", store.DocumentChange{Kind: "grant", ID: "i1"})} {
		decision.Writes = writes
		_, err := h.store.Decide(h.ctx(), decision)
		h.wantErr(err, store.ErrStale)
	}
	if i := h.interrupt("r", "i1"); i.State != store.InterruptPending {
		t.Fatalf("%+v", i)
	}
	decision.Writes = writesOf("decided", requestChange("i1", 2, "decided"))
	h.wantResult(decision, store.ResultAccepted)
	h.wantAudit("asked", "viewed", "decided")
}

func testExpireWrites(t *testing.T, h *storeTester) {
	open := newInterrupts("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond
	}
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Writes: writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"))})
	h.waitForClock(2 * time.Millisecond)
	seen := make(map[string]bool)
	expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(i store.Interrupt, p *store.Document) store.Writes {
		seen[i.ID] = p != nil
		if p == nil {
			return store.Writes{}
		}
		return writesOf("expired", requestChange(i.ID, p.Revision, "expired"))
	})
	h.must(err)
	if len(expired) != 3 {
		t.Fatalf("%+v", expired)
	}
	if diff := cmp.Diff(map[string]bool{"i1": true, "i2": true, "i3": false}, seen); diff != "" {
		t.Fatal(diff)
	}
	if p := h.document(store.RequestDocument, "i1"); p.Revision != 2 || string(p.Body) != "expired" {
		t.Errorf("%+v", p)
	}
	h.wantAudit("asked", "expired", "expired")
}

// The deadline of an interrupt moves with its request while it is pending.
func testDeadlineMoves(t *testing.T, h *storeTester) {
	open := newInterrupts("i1", "i2")
	open[0].Timeout, open[1].Timeout = time.Hour, time.Hour
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open, Writes: writesOf("asked", requestChange("i1", 0, "open"), requestChange("i2", 0, "open"))})
	before := h.interrupt("r", "i1").Deadline
	moved := requestChange("i1", 1, "extended")
	moved.InterruptDeadline = before.Add(time.Hour).Truncate(time.Microsecond)
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("extended", moved)))
	if got := h.interrupt("r", "i1").Deadline; !got.Equal(moved.InterruptDeadline) {
		t.Errorf("the deadline is %v, not %v", got, moved.InterruptDeadline)
	}
	if got := h.interrupt("r", "i2").Deadline; !got.Equal(before) {
		t.Errorf("the deadline of another is %v, not %v", got, before)
	}
	decision := approve("r", "resume", "i1")
	last := requestChange("i1", 2, "decided")
	last.InterruptDeadline = before.Add(-3 * time.Hour) // it does not move with the decision itself
	decision.Writes = writesOf("decided", last)
	h.wantResult(decision, store.ResultAccepted)
	late := requestChange("i1", 3, "late")
	late.InterruptDeadline = before.Add(2 * time.Hour)
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("commented", late)))
	if got := h.interrupt("r", "i1").Deadline; !got.Equal(moved.InterruptDeadline) {
		t.Errorf("after the decision it is %v, not %v", got, moved.InterruptDeadline)
	}
}

func testDocumentsOfRun(t *testing.T, h *storeTester) {
	h.endExecution(h.create("r"), store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i1"), Writes: writesOf("asked",
		requestChange("i1", 0, "open"), store.DocumentChange{Kind: "vote", ID: "v1", Run: "r"}, store.DocumentChange{Kind: "grant", ID: "g1"})})
	var got []string
	for _, p := range h.history("acme", "r").Documents {
		got = append(got, string(p.Kind)+" "+p.ID)
	}
	if diff := cmp.Diff([]string{"request i1", "vote v1"}, got); diff != "" {
		t.Error(diff)
	}
	list, err := h.store.Documents(h.ctx(), "acme", "vote", store.DocumentFilter{Run: "r"})
	h.must(err)
	none, err := h.store.Documents(h.ctx(), "acme", "vote", store.DocumentFilter{Run: "q"})
	h.must(err)
	if len(list) != 1 || len(none) != 0 {
		t.Error(list, none)
	}
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	h.must(h.store.DeleteRun(h.ctx(), "acme", "r", store.Writes{}))
	_, err = h.store.Document(h.ctx(), "acme", "vote", "v1")
	h.wantErr(err, store.ErrNotFound)
	h.document("grant", "g1") // belongs to no run
	h.wantAudit("asked")      // the audit log stays
}

// Of concurrent changes of one document one wins, and the audit log has each change once, in an
// unbroken chain.
func testDocumentsRace(t *testing.T, h *storeTester) {
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("made", store.DocumentChange{Kind: "counter", ID: "c", Body: []byte{0}})))
	var group sync.WaitGroup
	const writers, each = 4, 5
	for range writers {
		group.Go(func() {
			for range each {
				for {
					p, err := h.store.Document(h.ctx(), "acme", "counter", "c")
					if err == nil {
						err = h.store.CommitWrites(h.ctx(), "acme", writesOf("counted", store.DocumentChange{Kind: "counter", ID: "c", BaseRevision: p.Revision, Body: []byte{p.Body[0] + 1}}))
					}
					if err == nil {
						break
					}
					if !isField(err, store.ErrStale) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if p := h.document("counter", "c"); p.Body[0] != writers*each || p.Revision != writers*each+1 {
		t.Errorf("%+v", p)
	}
	want := []string{"made"}
	for range writers * each {
		want = append(want, "counted")
	}
	h.wantAudit(want...)
}

func testI8Documents(t *testing.T, h *storeTester) {
	grant := store.DocumentChange{Kind: "grant", ID: "g"}
	h.must(h.store.CommitWrites(h.ctx(), "acme", writesOf("acme", grant)))
	h.must(h.store.CommitWrites(h.ctx(), "other", writesOf("other", grant)))
	h.wantAudit("acme")
	lines, err := h.store.AuditLines(h.ctx(), "other", 0, 0)
	h.must(err)
	if len(lines) != 1 || lines[0].Seq != 1 {
		t.Errorf("%+v", lines)
	}
	if lines, err = h.store.AuditLines(h.ctx(), "nobody", 0, 0); err != nil || len(lines) > 0 {
		t.Error(lines, err)
	}
	h.must(h.store.CommitWrites(h.ctx(), "silent", store.Writes{Documents: []store.DocumentChange{{Kind: "note", ID: "n"}}}))
	for limit := range 3 {
		var accounts []string
		for after, more := "", true; more; more = after != "" {
			page, next, err := h.store.AuditAccounts(h.ctx(), after, limit)
			h.must(err)
			accounts, after = append(accounts, page...), next
		}
		slices.Sort(accounts)
		if !slices.Equal(accounts, []string{"acme", "other"}) {
			t.Errorf("in pages of %d, accounts with logs are %q", limit, accounts)
		}
	}
	if head, err := h.store.AuditHead(h.ctx(), "nobody"); err != nil || head != (chain.Head{}) {
		t.Error(head, err)
	}
}
