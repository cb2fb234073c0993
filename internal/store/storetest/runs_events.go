package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func (h *storeTester) events(run string) []store.Event {
	h.t.Helper()
	list, err := h.store.Events(h.ctx(), "acme", run, 0, 0)
	h.must(err)
	return list
}

// wantEvents checks all events of a run: kind and interrupt.
func (h *storeTester) wantEvents(run string, want ...string) {
	h.t.Helper()
	var got []string
	for n, e := range h.events(run) {
		if e.Account != "acme" || e.Run != run || e.Seq != int64(n+1) || e.At.IsZero() {
			h.t.Errorf("event %d of %s is %+v", n+1, run, e)
		}
		got = append(got, eventText(e))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("the events of %s are\n%q, not\n%q", run, got, want)
	}
}

func eventText(e store.Event) string {
	if e.Interrupt == "" {
		return string(e.Kind)
	}
	return string(e.Kind) + " " + e.Interrupt
}

func testEventsOfARun(t *testing.T, h *storeTester) {
	before, err := h.store.Now(h.ctx())
	h.must(err)
	lease := h.create("r")
	h.wantEvents("r", "created")
	h.endWaiting(lease, "i1", "i2", "i3")
	story := []string{"created", "asked i1", "asked i2", "asked i3", "waiting"}
	h.wantEvents("r", story...)

	h.wantResult(approve("r", "1", "i2", "i1"), store.ResultAccepted)
	lease = h.claimed("w", "r").Lease
	h.beginEffect(lease, "i1")
	h.endEffect("i1", store.EffectSucceeded)
	story = append(story, "decided i2", "decided i1", "effect_begun i1", "effect_ended i1")
	h.wantEvents("r", story...)

	h.endExecution(lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i4"), Applied: []string{"i1", "i2"}})
	h.wantResult(approve("r", "2", "i4"), store.ResultAccepted)
	lease = h.claimed("w", "r").Lease
	h.endExecution(lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i5", "i3"), Applied: []string{"i4"}})
	story = append(story, "withdrawn i3", "asked i4", "waiting", "decided i4", "asked i3", "asked i5", "waiting")
	h.wantEvents("r", story...)

	h.wantResult(approve("r", "3", "i3"), store.ResultAccepted)
	h.endExecution(h.claimed("w", "r").Lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i3"}})
	h.wantEvents("r", append(story, "decided i3", "withdrawn i5", "completed")...)

	after, err := h.store.Now(h.ctx())
	h.must(err)
	for _, e := range h.events("r") {
		if e.At.Before(before.Truncate(time.Millisecond)) || e.At.After(after) {
			t.Errorf("%+v did not happen between %v and %v", e, before, after)
		}
		before = e.At
	}
}

func testEventPolicy(_ *testing.T, h *storeTester) {
	lease := h.create("r")
	for range 2 {
		_, _, err := h.store.BeginEffect(h.ctx(), lease, allowedEffect("i", 1))
		h.must(err)
	}
	_, _, err := h.store.BeginEffect(h.ctx(), lease, allowedEffect("i", 2))
	h.must(err)
	h.wantEvents("r", "created", "decided i", "effect_begun i", "effect_begun i")
}

func testEventEnds(_ *testing.T, h *storeTester) {
	h.waiting("cancelled", "i1", "i2")
	_, err := h.store.Cancel(h.ctx(), "acme", "cancelled", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	h.wantEvents("cancelled", "created", "asked i1", "asked i2", "waiting", "withdrawn i1", "withdrawn i2", "cancelled")

	h.waiting("superseded", "j")
	_, err = h.store.Cancel(h.ctx(), "acme", "superseded", store.StatusSuperseded, nil, store.Writes{})
	h.must(err)
	h.wantEvents("superseded", "created", "asked j", "waiting", "withdrawn j", "superseded")

	h.endExecution(h.create("failed"), store.ExecutionEnd{Status: store.StatusFailed})
	h.wantEvents("failed", "created", "failed")

	h.release(h.create("parked"), store.Release{Park: true})
	h.wantEvents("parked", "created", "parked")

	open := newInterrupts("k")
	open[0].Timeout = time.Nanosecond
	h.endExecution(h.create("expired"), store.ExecutionEnd{Status: store.StatusWaiting, Open: open})
	h.waitForClock(10 * time.Millisecond)
	_, err = h.store.Expire(h.ctx(), time.Time{}, 10, nil)
	h.must(err)
	h.wantEvents("expired", "created", "asked k", "waiting", "expired k")

	lease := h.create("late") // an effect may end after its run
	_, _, err = h.store.BeginEffect(h.ctx(), lease, allowedEffect("l", 1))
	h.must(err)
	_, err = h.store.Cancel(h.ctx(), "acme", "late", store.StatusCancelled, nil, store.Writes{})
	h.must(err)
	h.endEffect("l", store.EffectSucceeded)
	h.wantEvents("late", "created", "decided l", "effect_begun l", "cancelled", "effect_ended l")
}

// testEventReadyAtOnce checks a run that becomes ready at the moment when it would wait.
func testEventReadyAtOnce(t *testing.T, h *storeTester) {
	h.waiting("r", "i1", "i2")
	h.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	lease := h.claimed("w", "r").Lease
	h.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	if status := h.endExecution(lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i2"), Applied: []string{"i1"}}); status != store.StatusReady {
		t.Errorf("it is %s", status)
	}
	h.wantEvents("r", "created", "asked i1", "asked i2", "waiting", "decided i1", "decided i2", "waiting")
}

func testEventsOfRejectedCalls(_ *testing.T, h *storeTester) {
	h.waiting("r", "i")
	h.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	lease := h.claimed("w", "r").Lease
	h.beginEffect(lease, "i")
	h.endEffect("i", store.EffectSucceeded)
	story := []string{"created", "asked i", "waiting", "decided i", "effect_begun i", "effect_ended i"}
	h.wantEvents("r", story...)

	h.wantResult(approve("r", "1", "i"), store.ResultAccepted) // again
	h.wantResult(approve("r", "2", "i"), store.ResultAlreadyDecided)
	h.endEffect("i", store.EffectFailed)
	old := store.Lease{Account: "acme", Run: "r", Fence: 1}
	for _, err := range []error{
		h.store.Release(h.ctx(), old, store.Release{Park: true}),
		h.store.Renew(h.ctx(), lease, leaseDuration), h.store.SetProviderRef(h.ctx(), lease, []byte("ref")), h.store.Release(h.ctx(), lease, store.Release{}),
	} {
		if err != nil {
			h.wantErr(err, store.ErrFenced)
		}
	}
	_, err := h.store.EndExecution(h.ctx(), old, store.ExecutionEnd{Status: store.StatusCompleted})
	h.wantErr(err, store.ErrFenced)
	_, err = h.store.Create(h.ctx(), newRun("r"))
	h.wantErr(err, store.ErrExists)
	lease = h.claimed("w", "r").Lease
	_, begun, err := h.store.BeginEffect(h.ctx(), lease, store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "action-i"})
	h.must(err)
	if begun {
		h.t.Error("begun twice")
	}
	h.wantEvents("r", story...)
	h.release(lease, store.Release{Park: true})
	_, err = h.store.Retry(h.ctx(), "acme", "r", store.Writes{})
	h.must(err)
	h.wantEvents("r", append(story, "parked")...)
}

func testEventPages(t *testing.T, h *storeTester) {
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

func testEventLimit(t *testing.T, h *storeTester) {
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

func testEventAccounts(t *testing.T, h *storeTester) {
	h.waiting("r", "i")
	foreign := newRun("r")
	foreign.Account = "other"
	_, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	h.wantEvents("r", "created", "asked i", "waiting")
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
