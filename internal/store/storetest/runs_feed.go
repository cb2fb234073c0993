package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func (h *storeTester) feed(after string, limit int) ([]store.Event, string) {
	h.t.Helper()
	list, next, err := h.store.Feed(h.ctx(), "acme", after, limit)
	h.must(err)
	return list, next
}

func testFeed(t *testing.T, h *storeTester) {
	if list, next := h.feed("", 10); len(list) > 0 || next != "" {
		t.Fatalf("an empty feed has %+v and the cursor %q", list, next)
	}
	h.waiting("r1", "i1")
	h.waiting("r2", "i2")
	h.wantResult(approve("r1", "1", "i1"), store.ResultAccepted)
	want := []string{"r1 created", "r1 asked i1", "r1 waiting", "r2 created", "r2 asked i2", "r2 waiting", "r1 decided i1"}
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		for after := ""; ; {
			list, next := h.feed(after, limit)
			if len(list) == 0 {
				if next != after {
					t.Errorf("at the end, the cursor went from %q to %q", after, next)
				}
				break
			}
			if len(list) > limit || len(got) > len(want) {
				t.Fatalf("a page of %d has %d, after %q", limit, len(list), got)
			}
			for _, e := range list {
				got = append(got, e.Run+" "+eventText(e))
			}
			after = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages of %d have %q, not %q", limit, got, want)
		}
	}
	_, end := h.feed("", 0)
	h.wantResult(approve("r2", "2", "i2"), store.ResultAccepted)
	list, _ := h.feed(end, 0)
	if all := h.events("r2"); len(list) != 1 || !sameEvent(list[0], all[len(all)-1]) {
		t.Errorf("what came next is %+v", list)
	}
}

func testFeedCursor(t *testing.T, h *storeTester) {
	h.waiting("r", "i")
	for _, after := range []string{"foreign cursor", "\x00", " ", "9999999999999999999999"} {
		list, _, err := h.store.Feed(h.ctx(), "acme", after, 0)
		if len(list) > 0 {
			t.Errorf("%q leads to %+v", after, list)
		}
		h.wantErr(err, store.ErrInvalid)
	}
}

// testFeedWriters follows the feed during concurrent writes. A store that numbers events before the
// commit loses some here.
func testFeedWriters(t *testing.T, h *storeTester) {
	const writers, rounds = 6, 8
	var wg sync.WaitGroup
	defer wg.Wait() // also if the test fails
	var writing atomic.Int64
	writing.Store(writers)
	for n := range writers {
		wg.Go(func() {
			defer writing.Add(-1)
			for round := range rounds {
				if err := writeEvents(h.ctx(), h.store, fmt.Sprintf("r%d-%d", n, round)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	seen := map[string][]string{}
	for after, last := "", false; !last; {
		last = writing.Load() == 0
		for {
			list, next := h.feed(after, 7)
			for _, e := range list {
				if seen[e.Run] = append(seen[e.Run], fmt.Sprint(e.Seq, eventText(e))); len(seen[e.Run]) > 6 {
					t.Fatalf("the feed has %q of %s", seen[e.Run], e.Run)
				}
			}
			if after = next; len(list) == 0 {
				break
			}
		}
	}
	wg.Wait()
	for n := range writers {
		for round := range rounds {
			run := fmt.Sprintf("r%d-%d", n, round)
			var want []string
			for _, e := range h.events(run) {
				want = append(want, fmt.Sprint(e.Seq, eventText(e)))
			}
			if len(want) != 6 || !slices.Equal(seen[run], want) {
				t.Errorf("the feed has %q of %s, and it has %q", seen[run], run, want)
			}
		}
	}
}

// testFeedOneRun decides many interrupts of one run concurrently. A store whose transactions get
// their feed position before they have the run's lock returns events out of order.
func testFeedOneRun(t *testing.T, h *storeTester) {
	const runs, asked = 4, 24
	for n := range runs {
		run := fmt.Sprint("r", n)
		var ids []string
		for i := range asked {
			ids = append(ids, fmt.Sprintf("i%d-%d", n, i))
		}
		h.waiting(run, ids...)
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				if _, err := h.store.Decide(h.ctx(), approve(run, id, id)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	list, _ := h.feed("", 1000)
	last := make(map[string]int64)
	for _, e := range list {
		if e.Seq != last[e.Run]+1 {
			t.Errorf("event %d of %s comes after event %d", e.Seq, e.Run, last[e.Run])
		}
		last[e.Run] = e.Seq
	}
	if want := runs * (2*asked + 2); len(list) != want {
		t.Errorf("the feed has %d events, not %d", len(list), want)
	}
}

// writeEvents creates six events of a run in four transactions.
func writeEvents(ctx context.Context, s store.Store, run string) error {
	lease, err := s.Create(ctx, newRun(run))
	if err != nil {
		return err
	}
	if _, err := s.EndExecution(ctx, lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("i-" + run)}); err != nil {
		return err
	}
	if _, err := s.Decide(ctx, approve(run, run, "i-"+run)); err != nil {
		return err
	}
	work, err := s.Claim(ctx, store.Claim{Owner: "w", Lease: leaseDuration, Account: "acme", Run: run})
	if err != nil || work == nil {
		return fmt.Errorf("claimed %+v, %w", work, err)
	}
	if _, _, err := s.BeginEffect(ctx, work.Lease, store.NewEffect{Interrupt: "i-" + run, Attempt: 1, ActionDigest: "action-i-" + run}); err != nil {
		return err
	}
	_, err = s.EndExecution(ctx, work.Lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i-" + run}})
	return err
}

// waitForHint waits for a hint at a run. A zero key also counts.
func waitForHint(t *testing.T, hints <-chan store.Key, what, run string) {
	t.Helper()
	patience := time.NewTimer(30 * time.Second) // a failing test must not hang
	defer patience.Stop()
	for {
		select {
		case key, open := <-hints:
			if !open {
				t.Fatalf("%s: the channel was closed", what)
			}
			if key == (store.Key{Account: "acme", Run: run}) || key == (store.Key{}) {
				return
			}
		case <-patience.C:
			t.Fatalf("%s: no hint at %s", what, run)
		}
	}
}

func testWatch(t *testing.T, h *storeTester) {
	var lease store.Lease
	due := newInterrupts("i1", "i2", "i3")
	due[2].Timeout = time.Millisecond
	first, second := h.store.Watch(h.ctx()), h.store.Watch(h.ctx())
	for n, step := range []struct {
		name string
		do   func()
	}{
		{"Create", func() { lease = h.create("r") }},
		{"EndExecution", func() { h.endExecution(lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: due}) }},
		{"Decide", func() { h.wantResult(approve("r", "1", "i1"), store.ResultAccepted) }},
		{"BeginEffect", func() { lease = h.claimed("w", "r").Lease; h.beginEffect(lease, "i1") }},
		{"EndEffect", func() { h.endEffect("i1", store.EffectSucceeded) }},
		{"Release", func() { h.release(lease, store.Release{}) }},
		{"Release to park", func() { h.release(h.claimed("w", "r").Lease, store.Release{Park: true}) }},
		{"Retry", func() { _, err := h.store.Retry(h.ctx(), "acme", "r", store.Writes{}); h.must(err) }},
		{"Expire", func() {
			h.waitForClock(2 * time.Millisecond)
			expired, err := h.store.Expire(h.ctx(), time.Time{}, 1, nil)
			h.must(err)
			if len(expired) != 1 {
				t.Errorf("%d expired", len(expired))
			}
		}},
		{"Cancel", func() {
			_, err := h.store.Cancel(h.ctx(), "acme", "r", store.StatusCancelled, nil, store.Writes{})
			h.must(err)
		}},
	} {
		// When the hint at another run arrives, those at this one were read: the next is from the
		// step.
		mark := fmt.Sprint("mark", n)
		h.create(mark)
		for _, hints := range []<-chan store.Key{first, second} {
			waitForHint(t, hints, "before "+step.name, mark)
		}
		step.do()
		for _, hints := range []<-chan store.Key{first, second} {
			waitForHint(t, hints, step.name, "r")
		}
	}
}

// testWatchWrites: writes without a change of a run are a hint at their account.
func testWatchWrites(t *testing.T, h *storeTester) {
	hints := h.store.Watch(h.ctx())
	h.create("mark")
	waitForHint(t, hints, "Create", "mark")
	h.must(h.store.CommitWrites(h.ctx(), "acme", store.Writes{Audit: [][]byte{[]byte(`{"kind":"x"}`)}}))
	waitForHint(t, hints, "CommitWrites", "")
}

func testWatchEnds(t *testing.T, h *storeTester) {
	ctx, cancel := context.WithCancel(h.ctx())
	defer cancel()
	hints, others := h.store.Watch(ctx), h.store.Watch(h.ctx())
	h.create("r1")
	waitForHint(t, hints, "Create", "r1")
	cancel()
	for range hints { // until it is closed
	}
	h.create("r2")
	waitForHint(t, others, "Create", "r2")
	for range h.store.Watch(ctx) { // with an ended context
	}
}

// testWatchSlow has a watcher that does not read while more changes happen than a store buffers.
func testWatchSlow(t *testing.T, h *storeTester) {
	hints := h.store.Watch(h.ctx())
	for n := range 150 {
		h.release(h.create(fmt.Sprint("r", n)), store.Release{Park: true})
	}
	h.create("last")
	waitForHint(t, hints, "after many", "last")
}
