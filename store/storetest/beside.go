package storetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/store"
)

// What nobody can write is refused before anything else is looked at.
func testBesideBad(t *testing.T, h *house) {
	h.ask(h.begin("r"), "i")
	said := approve("r", "resume", "i")
	h.gets(said, store.Accepted)
	for name, bad := range map[string]store.Beside{
		"line that is no object":      {Audit: [][]byte{[]byte("[1]")}},
		"line that is no text":        {Audit: [][]byte{[]byte("{\"a\":\"\xff\"}")}},
		"facts that are no text":      {Papers: []store.PaperChange{{Kind: "k", ID: "p", Facts: []byte("{\"a\":\"\xff\"}")}}},
		"name that is too long":       {Papers: []store.PaperChange{{Kind: "k", ID: strings.Repeat("x", store.MaxPaperID+1)}}},
		"kind that is too long":       {Papers: []store.PaperChange{{Kind: store.PaperKind(strings.Repeat("x", store.MaxPaperKind+1)), ID: "p"}}},
		"kind that is no text":        {Papers: []store.PaperChange{{Kind: "\xff", ID: "p"}}},
		"kind that ends in the midst": {Papers: []store.PaperChange{{Kind: "a\x00b", ID: "p"}}},
	} {
		said.Beside = bad
		exists := newRun("r")
		exists.Beside = bad
		old := store.Lease{Account: "acme", Run: "r", Fence: 99}
		_, _, begin := h.store.Begin(h.ctx(), old, store.NewEffect{Interrupt: "i", Number: 1, Digest: "d", Beside: bad})
		for call, err := range map[string]error{
			"Amend": h.store.Amend(h.ctx(), "acme", bad), "Create": second(h.store.Create(h.ctx(), exists)), "Begin": begin,
			"Rest":   second(h.store.Rest(h.ctx(), old, store.Rest{Status: store.Failed, Beside: bad})),
			"Decide": second(h.store.Decide(h.ctx(), said)), "Cancel": second(h.store.Cancel(h.ctx(), "acme", "unknown", store.Cancelled, nil, bad)),
			"Retry": second(h.store.Retry(h.ctx(), "acme", "unknown", bad)),
			"End":   h.store.End(h.ctx(), store.EffectEnd{Account: "acme", Interrupt: "unknown", Number: 1, State: store.Faulted, Beside: bad}),
		} {
			if !is(err, store.ErrKey) {
				t.Errorf("%s with a %s: %v", call, name, err)
			}
		}
	}
	longest := store.PaperChange{Kind: store.PaperKind(strings.Repeat("k", store.MaxPaperKind)), ID: strings.Repeat("\xff", store.MaxPaperID)}
	h.must(h.store.Amend(h.ctx(), "acme", store.Beside{Papers: []store.PaperChange{longest}}))
	h.logged()
}

// A request that is changed with the withdrawal of its interrupt is changed once, on what its author saw.
func testWithdrawnWithItsRequest(t *testing.T, h *house) {
	asked := with("asked", request("i1", 0, "open"), request("i2", 0, "open"), request("i3", 0, "open"), request("i4", 0, "open"))
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: questions("i1", "i2", "i3", "i4"), Beside: asked})
	decided := approve("r", "resume", "i3")
	decided.Beside = with("decided", request("i3", 1, "decided"))
	h.gets(decided, store.Accepted)
	lease := h.claimed("w", "r").Lease
	rest := store.Rest{Status: store.Waiting, Applied: []string{"i3"}, Open: questions("i2"), Beside: with("stale", request("i1", 2, "withdrawn"))}
	_, err := h.store.Rest(h.ctx(), lease, rest)
	h.wants(err, store.ErrStale)
	rest.Beside = with("rested", request("i1", 1, "withdrawn"))
	h.rest(lease, rest)
	_, err = h.store.Cancel(h.ctx(), "acme", "r", store.Cancelled, nil, with("cancelled", request("i2", 1, "cancelled")))
	h.must(err)
	var got []string
	for _, p := range h.history("acme", "r").Papers {
		got = append(got, p.ID+" "+string(p.Body))
		if p.Revision != 2 {
			t.Errorf("%s has revision %d", p.ID, p.Revision)
		}
	}
	if diff := cmp.Diff([]string{"i1 withdrawn", "i2 cancelled", "i3 decided", "i4 open"}, got); diff != "" {
		t.Error(diff)
	}
	h.logged("asked", "decided", "rested", "cancelled")
}

// What goes with a retry is written if it is one: of a run that is parked, and on papers as they are.
func testRetryWithPapers(_ *testing.T, h *house) {
	lease := h.begin("r")
	_, err := h.store.Retry(h.ctx(), "acme", "r", with("too early"))
	h.wants(err, store.ErrNotFound)
	h.must(h.store.Release(h.ctx(), lease, store.Release{Park: true}))
	_, err = h.store.Retry(h.ctx(), "acme", "r", with("stale", store.PaperChange{Kind: "note", ID: "n", Base: 1}))
	h.wants(err, store.ErrStale)
	_, err = h.store.Retry(h.ctx(), "acme", "r", with("retried", store.PaperChange{Kind: "note", ID: "n"}))
	h.must(err)
	_, err = h.store.Retry(h.ctx(), "acme", "r", with("too late"))
	h.wants(err, store.ErrNotFound)
	h.logged("retried")
}

// An effect that was begun is begun, however old what its owner has read.
func testBeginAgainWithStalePapers(t *testing.T, h *house) {
	lease := h.begin("r")
	effect := store.NewEffect{Interrupt: "i", Number: 1, Digest: "d", Allowed: &store.Allowed{By: "policy"}, Beside: with("stale", store.PaperChange{Kind: "grant", ID: "g", Base: 1})}
	_, _, err := h.store.Begin(h.ctx(), lease, effect)
	h.wants(err, store.ErrStale)
	if list, err := h.store.Interrupts(h.ctx(), "acme", "r"); err != nil || len(list) > 0 {
		t.Fatalf("the word of the policy is there: %+v, %v", list, err)
	}
	used := effect
	used.Beside = with("begun", store.PaperChange{Kind: "grant", ID: "g"})
	if _, begun, err := h.store.Begin(h.ctx(), lease, used); err != nil || !begun {
		t.Fatal(begun, err)
	}
	for _, again := range []store.NewEffect{effect, used} {
		again.Beside.Papers[0].Base = 7
		if line, begun, err := h.store.Begin(h.ctx(), lease, again); err != nil || begun || line.State != store.Started {
			t.Errorf("%+v, %t, %v", line, begun, err)
		}
	}
	h.logged("begun")
}

// What is put off when it would expire stays open until then, and whoever decides it then is in time.
func testExpirePutsOff(t *testing.T, h *house) {
	open := questions("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond
	}
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: open, Beside: with("asked", request("i1", 0, "open"), request("i2", 0, "open"), request("i3", 0, "open"))})
	h.later(2 * time.Millisecond)
	now, err := h.store.Now(h.ctx())
	h.must(err)
	until := now.Add(time.Hour).Truncate(time.Microsecond)
	late := func(i store.Interrupt, p *store.Paper) store.Beside {
		change := request(i.ID, p.Revision, "later")
		change.Deadline, change.Next = until, until
		switch i.ID {
		case "i1":
			return with("put off", change)
		case "i2": // somebody was faster
			return with("stale", change, store.PaperChange{Kind: "vote", ID: "v", Base: 3})
		}
		return with("expired", request(i.ID, p.Revision, "expired"))
	}
	expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, late)
	h.must(err)
	if len(expired) != 1 || expired[0].ID != "i3" {
		t.Fatalf("expired are %+v", expired)
	}
	if i, p := h.interrupt("r", "i1"), h.paper(store.RequestPaper, "i1"); i.State != store.Pending || !i.Deadline.Equal(until) || p.Revision != 2 || string(p.Body) != "later" || !p.Next.Equal(until) {
		t.Errorf("what was put off is %+v, %+v", i, p)
	}
	if i, p := h.interrupt("r", "i2"), h.paper(store.RequestPaper, "i2"); i.State != store.Pending || i.Deadline.After(now) || p.Revision != 1 {
		t.Errorf("what somebody else was at is %+v, %+v", i, p)
	}
	yes := approve("r", "resume", "i1")
	yes.Beside = with("decided", request("i1", 2, "decided"))
	h.gets(yes, store.Accepted)
	late = func(i store.Interrupt, p *store.Paper) store.Beside { // a time that has passed as well is no harm: it is found again
		change := request(i.ID, p.Revision, "a moment")
		change.Deadline = i.Deadline.Add(time.Microsecond)
		return with("a moment", change)
	}
	for range 2 {
		if expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, late); err != nil || len(expired) > 0 {
			t.Fatalf("%+v, %v", expired, err)
		}
	}
	if expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, nil); err != nil || len(expired) != 1 || expired[0].ID != "i2" {
		t.Errorf("%+v, %v", expired, err)
	}
	h.logged("asked", "put off", "expired", "decided", "a moment", "a moment")
}

// Of many who look at the clock at once, one puts off what is due, and none lets it expire.
func testExpirePutsOffOnce(t *testing.T, h *house) {
	open := questions("i")
	open[0].Timeout = time.Millisecond
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: open, Beside: with("asked", request("i", 0, "open"))})
	h.later(2 * time.Millisecond)
	now, err := h.store.Now(h.ctx())
	h.must(err)
	until := now.Add(time.Hour).Truncate(time.Microsecond)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(i store.Interrupt, p *store.Paper) store.Beside {
				change := request(i.ID, p.Revision, "later")
				change.Deadline = until
				return with("put off", change)
			})
			if err != nil || len(expired) > 0 {
				t.Errorf("expired %+v, %v", expired, err)
			}
		})
	}
	all.Wait()
	if i, p := h.interrupt("r", "i"), h.paper(store.RequestPaper, "i"); i.State != store.Pending || !i.Deadline.Equal(until) || p.Revision != 2 {
		t.Errorf("it is %+v, %+v", i, p)
	}
	h.logged("asked", "put off")
}

// What cannot expire yet holds up nothing else.
func testExpireLeavesTheStale(t *testing.T, h *house) {
	open := questions("i1", "i2", "i3")
	for n := range open {
		open[n].Timeout = time.Millisecond + time.Duration(n)*time.Microsecond
	}
	h.rest(h.begin("r"), store.Rest{Status: store.Waiting, Open: open, Beside: with("asked", request("i1", 0, "open"), request("i2", 0, "open"))})
	h.later(2 * time.Millisecond)
	expire := func(want []string, beside func(store.Interrupt, *store.Paper) store.Beside) {
		t.Helper()
		expired, err := h.store.Expire(h.ctx(), time.Time{}, 10, beside)
		h.must(err)
		var got []string
		for _, i := range expired {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("expired are %q, not %q", got, want)
		}
	}
	expire([]string{"i1", "i3"}, func(i store.Interrupt, p *store.Paper) store.Beside {
		if i.ID == "i2" { // the first is good, and must not stay
			return with("stale", request("i2", p.Revision, "expired"), store.PaperChange{Kind: "vote", ID: "v", Base: 3})
		}
		if p != nil {
			p.Revision, p.Body = 99, nil // it is the caller's
		}
		return with("expired " + i.ID)
	})
	if p := h.paper(store.RequestPaper, "i2"); p.Revision != 1 || string(p.Body) != "open" || h.interrupt("r", "i2").State != store.Pending {
		t.Errorf("%+v", p)
	}
	if p := h.paper(store.RequestPaper, "i1"); p.Revision != 1 || string(p.Body) != "open" {
		t.Errorf("%+v", p)
	}
	_, err := h.store.Expire(h.ctx(), time.Time{}, 10, func(store.Interrupt, *store.Paper) store.Beside {
		return store.Beside{Audit: [][]byte{[]byte("no line")}}
	})
	h.wants(err, store.ErrKey)
	expire([]string{"i2"}, nil)
	h.logged("asked", "expired i1", "expired i3")
}
