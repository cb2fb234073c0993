package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
)

func (h *house) events(run string) []store.Event {
	h.t.Helper()
	list, err := h.store.Events(h.ctx(), "acme", run, 0, 0)
	h.must(err)
	return list
}

// happened checks all events of a run: each is its kind, and the interrupt that it is about.
func (h *house) happened(run string, want ...string) {
	h.t.Helper()
	var got []string
	for n, e := range h.events(run) {
		if e.Account != "acme" || e.Run != run || e.Number != int64(n+1) || e.At.IsZero() {
			h.t.Errorf("event %d of %s is %+v", n+1, run, e)
		}
		got = append(got, told(e))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("what happened to %s is\n%q, not\n%q", run, got, want)
	}
}

func told(e store.Event) string {
	if e.Interrupt == "" {
		return string(e.Kind)
	}
	return string(e.Kind) + " " + e.Interrupt
}

func testEventStory(t *testing.T, h *house) {
	before, err := h.store.Now(h.ctx())
	h.must(err)
	lease := h.begin("r")
	h.happened("r", "created")
	h.ask(lease, "i1", "i2", "i3")
	story := []string{"created", "asked i1", "asked i2", "asked i3", "waiting"}
	h.happened("r", story...)

	h.gets(approve("r", "1", "i2", "i1"), store.Accepted)
	lease = h.claimed("w", "r").Lease
	h.effect(lease, "i1")
	h.end("i1", store.Succeeded)
	story = append(story, "decided i2", "decided i1", "effect_begun i1", "effect_ended i1")
	h.happened("r", story...)

	h.rest(lease, store.Rest{Status: store.Waiting, Open: questions("i4"), Applied: []string{"i1", "i2"}})
	h.gets(approve("r", "2", "i4"), store.Accepted)
	lease = h.claimed("w", "r").Lease
	h.rest(lease, store.Rest{Status: store.Waiting, Open: questions("i5", "i3"), Applied: []string{"i4"}})
	story = append(story, "withdrawn i3", "asked i4", "waiting", "decided i4", "asked i3", "asked i5", "waiting")
	h.happened("r", story...)

	h.gets(approve("r", "3", "i3"), store.Accepted)
	h.rest(h.claimed("w", "r").Lease, store.Rest{Status: store.Completed, Applied: []string{"i3"}})
	h.happened("r", append(story, "decided i3", "withdrawn i5", "completed")...)

	after, err := h.store.Now(h.ctx())
	h.must(err)
	for _, e := range h.events("r") {
		if e.At.Before(before.Truncate(time.Millisecond)) || e.At.After(after) {
			t.Errorf("%+v did not happen between %v and %v", e, before, after)
		}
		before = e.At
	}
}

func testEventPolicy(_ *testing.T, h *house) {
	lease := h.begin("r")
	for range 2 {
		_, _, err := h.store.Begin(h.ctx(), lease, allowed("i", 1))
		h.must(err)
	}
	_, _, err := h.store.Begin(h.ctx(), lease, allowed("i", 2))
	h.must(err)
	h.happened("r", "created", "decided i", "effect_begun i", "effect_begun i")
}

func testEventEnds(_ *testing.T, h *house) {
	h.waiting("cancelled", "i1", "i2")
	_, err := h.store.Cancel(h.ctx(), "acme", "cancelled", store.Cancelled, nil, store.Beside{})
	h.must(err)
	h.happened("cancelled", "created", "asked i1", "asked i2", "waiting", "withdrawn i1", "withdrawn i2", "cancelled")

	h.waiting("superseded", "j")
	_, err = h.store.Cancel(h.ctx(), "acme", "superseded", store.Superseded, nil, store.Beside{})
	h.must(err)
	h.happened("superseded", "created", "asked j", "waiting", "withdrawn j", "superseded")

	h.rest(h.begin("failed"), store.Rest{Status: store.Failed})
	h.happened("failed", "created", "failed")

	h.release(h.begin("parked"), store.Release{Park: true})
	h.happened("parked", "created", "parked")

	open := questions("k")
	open[0].Timeout = time.Nanosecond
	h.rest(h.begin("expired"), store.Rest{Status: store.Waiting, Open: open})
	h.later(10 * time.Millisecond)
	_, err = h.store.Expire(h.ctx(), time.Time{}, 10, nil)
	h.must(err)
	h.happened("expired", "created", "asked k", "waiting", "expired k")

	lease := h.begin("late") // an effect may end when its run is over
	_, _, err = h.store.Begin(h.ctx(), lease, allowed("l", 1))
	h.must(err)
	_, err = h.store.Cancel(h.ctx(), "acme", "late", store.Cancelled, nil, store.Beside{})
	h.must(err)
	h.end("l", store.Succeeded)
	h.happened("late", "created", "decided l", "effect_begun l", "cancelled", "effect_ended l")
}

// testEventMoment is about a run that becomes ready in the moment in which it would have waited.
func testEventMoment(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2")
	h.gets(approve("r", "1", "i1"), store.Accepted)
	lease := h.claimed("w", "r").Lease
	h.gets(approve("r", "2", "i2"), store.Accepted)
	if status := h.rest(lease, store.Rest{Status: store.Waiting, Open: questions("i2"), Applied: []string{"i1"}}); status != store.Ready {
		t.Errorf("it is %s", status)
	}
	h.happened("r", "created", "asked i1", "asked i2", "waiting", "decided i1", "decided i2", "waiting")
}

func testEventNothing(_ *testing.T, h *house) {
	h.waiting("r", "i")
	h.gets(approve("r", "1", "i"), store.Accepted)
	lease := h.claimed("w", "r").Lease
	h.effect(lease, "i")
	h.end("i", store.Succeeded)
	story := []string{"created", "asked i", "waiting", "decided i", "effect_begun i", "effect_ended i"}
	h.happened("r", story...)

	h.gets(approve("r", "1", "i"), store.Accepted) // again
	h.gets(approve("r", "2", "i"), store.AlreadyDecided)
	h.end("i", store.Faulted)
	old := store.Lease{Account: "acme", Run: "r", Fence: 1}
	for _, err := range []error{
		h.store.Release(h.ctx(), old, store.Release{Park: true}),
		h.store.Renew(h.ctx(), lease, aWhile), h.store.SetRef(h.ctx(), lease, []byte("ref")), h.store.Release(h.ctx(), lease, store.Release{}),
	} {
		if err != nil {
			h.wants(err, store.ErrFenced)
		}
	}
	_, err := h.store.Rest(h.ctx(), old, store.Rest{Status: store.Completed})
	h.wants(err, store.ErrFenced)
	_, err = h.store.Create(h.ctx(), newRun("r"))
	h.wants(err, store.ErrExists)
	lease = h.claimed("w", "r").Lease
	_, begun, err := h.store.Begin(h.ctx(), lease, store.NewEffect{Interrupt: "i", Number: 1, Digest: "action-i"})
	h.must(err)
	if begun {
		h.t.Error("begun twice")
	}
	h.happened("r", story...)
	h.release(lease, store.Release{Park: true})
	_, err = h.store.Retry(h.ctx(), "acme", "r", store.Beside{})
	h.must(err)
	h.happened("r", append(story, "parked")...)
}

func testEventPages(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2", "i3", "i4")
	all := h.events("r")
	for after := range 8 {
		for limit := 1; limit < 8; limit++ {
			got, err := h.store.Events(h.ctx(), "acme", "r", int64(after), limit)
			h.must(err)
			if want := all[min(after, 6):min(after+limit, 6)]; !slices.EqualFunc(got, want, sameEvent) {
				t.Errorf("%d behind %d are %+v", limit, after, got)
			}
		}
	}
	if list := h.events("unknown"); len(list) > 0 {
		t.Errorf("of an unknown run: %+v", list)
	}
}

func sameEvent(a, b store.Event) bool { return a.At.Equal(b.At) && fmt.Sprint(a) == fmt.Sprint(b) }

func testEventLimit(t *testing.T, h *house) {
	var ids []string
	for n := range 1003 {
		ids = append(ids, fmt.Sprint("i", n))
	}
	h.waiting("r", ids...)
	for limit, want := range map[int]int{0: 1000, 1000: 1000, 1001: 1000, 5000: 1000, 999: 999} {
		if list, err := h.store.Events(h.ctx(), "acme", "r", 0, limit); err != nil || len(list) != want {
			t.Errorf("a limit of %d has %d, %v", limit, len(list), err)
		}
		if list, _, err := h.store.Feed(h.ctx(), "acme", "", limit); err != nil || len(list) != want {
			t.Errorf("a feed of %d has %d, %v", limit, len(list), err)
		}
	}
}

func testEventAccounts(t *testing.T, h *house) {
	h.waiting("r", "i")
	foreign := newRun("r")
	foreign.Account = "other"
	_, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	h.happened("r", "created", "asked i", "waiting")
	for _, account := range []string{"other", "nobody"} {
		for _, run := range []string{"r", ""} {
			list, err := h.store.Events(h.ctx(), account, run, 0, 0)
			h.must(err)
			if account == "other" && run == "r" && len(list) == 1 && list[0].Account == "other" {
				continue
			}
			if len(list) > 0 {
				t.Errorf("%s sees %+v", account, list)
			}
		}
		list, _, err := h.store.Feed(h.ctx(), account, "", 0)
		h.must(err)
		for _, e := range list {
			if e.Account != account {
				t.Errorf("%s is fed %+v", account, e)
			}
		}
	}
}
