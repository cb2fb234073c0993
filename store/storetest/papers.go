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
	"github.com/fermata-go/fermata/store"
)

// request is a change of the request of an interrupt.
func request(interrupt string, base int64, body string) store.PaperChange {
	return store.PaperChange{Kind: store.RequestPaper, ID: interrupt, Run: "r", Base: base, Body: []byte(body), Facts: []byte(`{"rule":"r1","n":2}`)}
}

// auditLine is an object for the audit log.
func auditLine(text string) []byte { return fmt.Appendf(nil, `{"type":%q}`, text) }

// with is what is written beside: a request, and a line that names the act.
func with(act string, papers ...store.PaperChange) store.Beside {
	return store.Beside{Papers: papers, Audit: [][]byte{auditLine(act)}}
}

func (h *house) paper(kind store.PaperKind, id string) store.Paper {
	h.t.Helper()
	p, err := h.store.Paper(h.ctx(), "acme", kind, id)
	h.must(err)
	return p
}

// logged checks that the log of acme says exactly this, and that its chain holds.
func (h *house) logged(want ...string) {
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

func testPapers(t *testing.T, h *house) {
	next := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	grant := store.PaperChange{Kind: "grant", ID: "g1", Body: []byte("sealed"), Facts: []byte(`{"a": 1}`), Next: next}
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{grant, {Kind: "grant", ID: "g2"}}}))
	p := h.paper("grant", "g1")
	if p.Account != "acme" || p.Revision != 1 || string(p.Body) != "sealed" || string(p.Facts) != `{"a": 1}` || !p.Next.Equal(next) || p.Created.IsZero() || p.Run != "" {
		t.Fatalf("%+v", p)
	}
	if p := h.paper("grant", "g2"); p.Body != nil || p.Facts != nil || !p.Next.IsZero() {
		t.Fatalf("%+v", p)
	}
	_, err := h.store.Paper(h.ctx(), "other", "grant", "g1")
	h.wants(err, store.ErrNotFound)
	_, err = h.store.Paper(h.ctx(), "acme", "vote", "g1")
	h.wants(err, store.ErrNotFound)

	grant.Base, grant.Body, grant.Facts, grant.Next = 1, []byte("anew"), nil, time.Time{}
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{grant}}))
	if p := h.paper("grant", "g1"); p.Revision != 2 || string(p.Body) != "anew" || p.Facts != nil || !p.Next.IsZero() {
		t.Fatalf("%+v", p)
	}
	for page, want := range map[string][]string{"": {"g1"}, "g1": {"g2"}, "g2": nil} {
		list, err := h.store.Papers(h.ctx(), "acme", "grant", store.PaperFilter{After: page, Limit: 1})
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

func testPapersStale(t *testing.T, h *house) {
	made := store.PaperChange{Kind: "grant", ID: "g1", Body: []byte("first")}
	other := store.PaperChange{Kind: "grant", ID: "g2"}
	amend := func(want error, papers ...store.PaperChange) {
		t.Helper()
		h.wants(h.store.Amend(h.ctx(), "acme", with("refused", papers...)), want)
	}
	h.must(h.store.Amend(h.ctx(), "acme", with("made", made)))
	amend(store.ErrStale, other, made) // it is there
	made.Base = 2
	amend(store.ErrStale, other, made)
	made.Base = -1
	amend(store.ErrStale, other, made)
	amend(store.ErrStale, store.PaperChange{Kind: "grant", ID: "g3", Base: 1})
	amend(store.ErrKey, other, other)
	amend(store.ErrKey, store.PaperChange{Kind: "grant"})
	amend(store.ErrKey, store.PaperChange{ID: "g4"})
	amend(store.ErrKey, store.PaperChange{Kind: "grant", ID: "g4", Facts: []byte(`[1]`)})
	amend(store.ErrKey, store.PaperChange{Kind: "grant", ID: "g4", Facts: []byte(`{`)})
	for _, bad := range []string{"", "{}", "[]", `{"a":}`, "null", ` {"a":1}`} {
		h.wants(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{other}, Audit: [][]byte{auditLine("refused"), []byte(bad)}}), store.ErrKey)
	}
	if p := h.paper("grant", "g1"); p.Revision != 1 || string(p.Body) != "first" {
		t.Fatalf("%+v", p)
	}
	_, err := h.store.Paper(h.ctx(), "acme", "grant", "g2")
	h.wants(err, store.ErrNotFound)
	h.logged("made")
}

func testPapersDue(t *testing.T, h *house) {
	now, err := h.store.Now(h.ctx())
	h.must(err)
	past := func(kind store.PaperKind, id string, ago time.Duration) store.PaperChange {
		return store.PaperChange{Kind: kind, ID: id, Run: "r", Next: now.Add(-ago)}
	}
	h.ask(h.begin("r"), "i1", "i2", "i3")
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{
		past(store.RequestPaper, "i1", time.Minute), past(store.RequestPaper, "i2", time.Hour), past(store.RequestPaper, "i3", -time.Hour),
		past(store.RequestPaper, "nobody asked", time.Hour), past("notice", "n1", time.Second),
	}}))
	theirs := past("notice", "n2", time.Minute)
	theirs.Run = "" // they have none
	h.must(h.store.Amend(h.ctx(), "other", store.Beside{Papers: []store.PaperChange{theirs}}))
	due := func(kind store.PaperKind, limit int, want ...string) {
		t.Helper()
		list, err := h.store.Due(h.ctx(), kind, limit)
		h.must(err)
		var got []string
		for _, p := range list {
			got = append(got, p.Account+" "+p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("due %s (-want +got):\n%s", kind, diff)
		}
	}
	due(store.RequestPaper, 10, "acme i2", "acme i1")
	due(store.RequestPaper, 1, "acme i2")
	due("notice", 10, "other n2", "acme n1")
	due("grant", 10)
	due("notice", 0)

	// A request that is withdrawn has a new revision, and no time.
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, store.Beside{})
	h.must(err)
	due(store.RequestPaper, 10)
	if p := h.paper(store.RequestPaper, "i2"); p.Revision != 2 || !p.Next.IsZero() {
		t.Errorf("%+v", p)
	}
}

// Every change brings its papers and lines along, and one that is not made does not.
func testBeside(t *testing.T, h *house) {
	n := newRun("r")
	n.Beside = with("created")
	lease, err := h.store.Create(h.ctx(), n)
	h.must(err)
	_, err = h.store.Create(h.ctx(), n)
	h.wants(err, store.ErrExists)

	rest := store.Rest{Status: store.Waiting, Open: questions("i1", "i2"), Beside: with("asked", request("i1", 0, "open"), request("i2", 0, "open"))}
	h.rest(lease, rest)
	_, err = h.store.Rest(h.ctx(), lease, rest)
	h.wants(err, store.ErrFenced)
	if p := h.paper(store.RequestPaper, "i1"); p.Run != "r" || string(p.Body) != "open" {
		t.Fatalf("%+v", p)
	}

	decision := approve("r", "resume", "i1")
	decision.Beside = with("decided", request("i1", 1, "decided"))
	h.gets(decision, store.Accepted)
	h.gets(decision, store.Accepted) // again: the same receipt, and nothing is written
	refused := approve("r", "late", "i1")
	for _, beside := range []store.Beside{with("refused"), with("refused", request("i1", 2, "refused")), {Papers: []store.PaperChange{request("i1", 2, "refused")}}} {
		refused.Beside = beside
		_, err = h.store.Decide(h.ctx(), refused)
		h.wants(err, store.ErrStale) // what stands beside it was written for an open question
	}
	_, err = h.store.Resumed(h.ctx(), "acme", "ann", "late")
	h.wants(err, store.ErrNotFound)
	refused.Beside = store.Beside{}
	h.gets(refused, store.AlreadyDecided)
	refused.Beside = with("refused", request("i1", 2, "refused"))
	h.gets(refused, store.AlreadyDecided) // again: the same receipt
	if p := h.paper(store.RequestPaper, "i1"); p.Revision != 2 || string(p.Body) != "decided" {
		t.Fatalf("%+v", p)
	}

	lease = h.claimed("w", "r").Lease
	effect := store.NewEffect{Interrupt: "i1", Number: 1, Digest: "action-i1", Beside: with("begun")}
	effectLine, begun, err := h.store.Begin(h.ctx(), lease, effect)
	if err != nil || !begun || effectLine.Beside.Audit != nil {
		t.Fatal(effectLine, begun, err)
	}
	_, _, err = h.store.Begin(h.ctx(), lease, effect)
	h.must(err)
	end := store.EffectEnd{Account: "acme", Interrupt: "i1", Number: 1, State: store.Succeeded, Beside: with("ended")}
	h.must(h.store.End(h.ctx(), end))
	h.must(h.store.End(h.ctx(), end))

	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, with("cancelled"))
	h.must(err)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, with("cancelled"))
	h.wants(err, store.ErrNotFound)
	h.logged("created", "asked", "decided", "begun", "ended", "cancelled")
	if p := h.paper(store.RequestPaper, "i2"); p.Revision != 2 {
		t.Errorf("the withdrawn request: %+v", p)
	}
}

// A change that cannot write what goes with it is not made.
func testBesideStale(t *testing.T, h *house) {
	stale := with("stale", store.PaperChange{Kind: "grant", ID: "g", Base: 7})
	n := newRun("r")
	n.Beside = stale
	_, err := h.store.Create(h.ctx(), n)
	h.wants(err, store.ErrStale)
	_, err = h.store.Get(h.ctx(), "acme", "key-r")
	h.wants(err, store.ErrNotFound)

	lease := h.begin("r")
	_, err = h.store.Rest(h.ctx(), lease, store.Rest{Status: store.Waiting, Open: questions("i1"), Beside: stale})
	h.wants(err, store.ErrStale)
	h.is("r", store.Running)
	h.ask(lease, "i1")

	decision := approve("r", "resume", "i1")
	decision.Beside = stale
	_, err = h.store.Decide(h.ctx(), decision)
	h.wants(err, store.ErrStale)
	_, err = h.store.Resumed(h.ctx(), "acme", "ann", "resume")
	h.wants(err, store.ErrNotFound) // it can be said again
	decision.Beside = store.Beside{}
	h.gets(decision, store.Accepted)

	lease = h.claimed("w", "r").Lease
	effect := store.NewEffect{Interrupt: "i1", Number: 1, Digest: "action-i1", Beside: stale}
	_, _, err = h.store.Begin(h.ctx(), lease, effect)
	h.wants(err, store.ErrStale)
	effect.Beside = store.Beside{}
	if _, begun, err := h.store.Begin(h.ctx(), lease, effect); err != nil || !begun {
		t.Fatal(begun, err)
	}
	h.wants(h.store.End(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i1", Number: 1, State: store.Succeeded, Beside: stale}), store.ErrStale)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, stale)
	h.wants(err, store.ErrStale)
	h.is("r", store.Running)
	if effects := h.history("acme", "r").Effects; len(effects) != 1 || effects[0].State != store.Started {
		t.Errorf("%+v", effects)
	}
	h.logged()
}

// What people have before them is decided as it is now, or not at all.
func testDecideRequest(t *testing.T, h *house) {
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: questions("i1"), Beside: with("asked", request("i1", 0, "open"))})
	h.must(h.store.Amend(h.ctx(), "acme", with("viewed", request("i1", 1, "viewed"))))
	decision := approve("r", "resume", "i1")
	for _, beside := range []store.Beside{{}, with("blind"), with("stale", request("i1", 1, "decided")), with("else", store.PaperChange{Kind: "grant", ID: "i1"})} {
		decision.Beside = beside
		_, err := h.store.Decide(h.ctx(), decision)
		h.wants(err, store.ErrStale)
	}
	if i := h.interrupt("r", "i1"); i.State != store.Pending {
		t.Fatalf("%+v", i)
	}
	decision.Beside = with("decided", request("i1", 2, "decided"))
	h.gets(decision, store.Accepted)
	h.logged("asked", "viewed", "decided")
}

func testExpireBeside(t *testing.T, h *house) {
	open := questions("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond
	}
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: open, Beside: with("asked", request("i1", 0, "open"), request("i2", 0, "open"))})
	h.later(2 * time.Millisecond)
	seen := make(map[string]bool)
	expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(i store.Interrupt, p *store.Paper) store.Beside {
		seen[i.ID] = p != nil
		if p == nil {
			return store.Beside{}
		}
		return with("expired", request(i.ID, p.Revision, "expired"))
	})
	h.must(err)
	if len(expired) != 3 {
		t.Fatalf("%+v", expired)
	}
	if diff := cmp.Diff(map[string]bool{"i1": true, "i2": true, "i3": false}, seen); diff != "" {
		t.Fatal(diff)
	}
	if p := h.paper(store.RequestPaper, "i1"); p.Revision != 2 || string(p.Body) != "expired" {
		t.Errorf("%+v", p)
	}
	h.logged("asked", "expired", "expired")
}

// The deadline of an interrupt moves with its request, and only while somebody can decide.
func testDeadlineMoves(t *testing.T, h *house) {
	open := questions("i1", "i2")
	open[0].Timeout, open[1].Timeout = time.Hour, time.Hour
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: open, Beside: with("asked", request("i1", 0, "open"), request("i2", 0, "open"))})
	before := h.interrupt("r", "i1").Deadline
	moved := request("i1", 1, "extended")
	moved.Deadline = before.Add(time.Hour).Truncate(time.Microsecond)
	h.must(h.store.Amend(h.ctx(), "acme", with("extended", moved)))
	if got := h.interrupt("r", "i1").Deadline; !got.Equal(moved.Deadline) {
		t.Errorf("the deadline is %v, not %v", got, moved.Deadline)
	}
	if got := h.interrupt("r", "i2").Deadline; !got.Equal(before) {
		t.Errorf("that of another is %v, not %v", got, before)
	}
	decision := approve("r", "resume", "i1")
	last := request("i1", 2, "decided")
	last.Deadline = before.Add(-3 * time.Hour) // with the decision itself it does not move
	decision.Beside = with("decided", last)
	h.gets(decision, store.Accepted)
	late := request("i1", 3, "late")
	late.Deadline = before.Add(2 * time.Hour)
	h.must(h.store.Amend(h.ctx(), "acme", with("commented", late)))
	if got := h.interrupt("r", "i1").Deadline; !got.Equal(moved.Deadline) {
		t.Errorf("after the decision it is %v, not %v", got, moved.Deadline)
	}
}

func testPapersOfARun(t *testing.T, h *house) {
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: questions("i1"), Beside: with("asked",
		request("i1", 0, "open"), store.PaperChange{Kind: "vote", ID: "v1", Run: "r"}, store.PaperChange{Kind: "grant", ID: "g1"})})
	var got []string
	for _, p := range h.history("acme", "r").Papers {
		got = append(got, string(p.Kind)+" "+p.ID)
	}
	if diff := cmp.Diff([]string{"request i1", "vote v1"}, got); diff != "" {
		t.Error(diff)
	}
	list, err := h.store.Papers(h.ctx(), "acme", "vote", store.PaperFilter{Run: "r"})
	h.must(err)
	none, err := h.store.Papers(h.ctx(), "acme", "vote", store.PaperFilter{Run: "q"})
	h.must(err)
	if len(list) != 1 || len(none) != 0 {
		t.Error(list, none)
	}
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, store.Beside{})
	h.must(err)
	h.must(h.store.Forget(h.ctx(), "acme", "r", store.Beside{}))
	_, err = h.store.Paper(h.ctx(), "acme", "vote", "v1")
	h.wants(err, store.ErrNotFound)
	h.paper("grant", "g1") // belongs to no run
	h.logged("asked")      // what was done stays known
}

// Of any number who change one paper, one wins; and the log has each change once, in an unbroken chain.
func testPapersRace(t *testing.T, h *house) {
	h.must(h.store.Amend(h.ctx(), "acme", with("made", store.PaperChange{Kind: "counter", ID: "c", Body: []byte{0}})))
	var group sync.WaitGroup
	const writers, each = 4, 5
	for range writers {
		group.Go(func() {
			for range each {
				for {
					p, err := h.store.Paper(h.ctx(), "acme", "counter", "c")
					if err == nil {
						err = h.store.Amend(h.ctx(), "acme", with("counted", store.PaperChange{Kind: "counter", ID: "c", Base: p.Revision, Body: []byte{p.Body[0] + 1}}))
					}
					if err == nil {
						break
					}
					if !is(err, store.ErrStale) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if p := h.paper("counter", "c"); p.Body[0] != writers*each || p.Revision != writers*each+1 {
		t.Errorf("%+v", p)
	}
	want := []string{"made"}
	for range writers * each {
		want = append(want, "counted")
	}
	h.logged(want...)
}

func testI8Papers(t *testing.T, h *house) {
	grant := store.PaperChange{Kind: "grant", ID: "g"}
	h.must(h.store.Amend(h.ctx(), "acme", with("acme", grant)))
	h.must(h.store.Amend(h.ctx(), "other", with("other", grant)))
	h.logged("acme")
	lines, err := h.store.AuditLines(h.ctx(), "other", 0, 0)
	h.must(err)
	if len(lines) != 1 || lines[0].Seq != 1 {
		t.Errorf("%+v", lines)
	}
	if lines, err = h.store.AuditLines(h.ctx(), "nobody", 0, 0); err != nil || len(lines) > 0 {
		t.Error(lines, err)
	}
	h.must(h.store.Amend(h.ctx(), "silent", store.Beside{Papers: []store.PaperChange{{Kind: "note", ID: "n"}}}))
	for limit := range 3 {
		var accounts []string
		for after, more := "", true; more; more = after != "" {
			page, next, err := h.store.AuditAccounts(h.ctx(), after, limit)
			h.must(err)
			accounts, after = append(accounts, page...), next
		}
		slices.Sort(accounts)
		if !slices.Equal(accounts, []string{"acme", "other"}) {
			t.Errorf("in pages of %d, logs are kept for %q", limit, accounts)
		}
	}
	if head, err := h.store.AuditHead(h.ctx(), "nobody"); err != nil || head != (chain.Head{}) {
		t.Error(head, err)
	}
}
