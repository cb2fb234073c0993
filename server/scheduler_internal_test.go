package server

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// schedulerTest is a gate with people at it. All of it happens in a bubble, where time passes when everybody waits.
type schedulerTest struct {
	*testing.T
	fairScheduler
	storeFast atomic.Bool // the store is
}

func withScheduler(t *testing.T, places int, quick bool, fn func(*schedulerTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &schedulerTest{T: t}
		g.storeFast.Store(quick)
		g.capacity, g.overloadedCapacity, g.storeIsFast = places, 2, g.storeFast.Load
		fn(g)
	})
}

// enter is for somebody of the account most of this is about.
func (g *schedulerTest) acquire(ctx context.Context) (leave func(), ok bool) {
	return g.acquireFor(ctx, "acme")
}

func (g *schedulerTest) acquireFor(ctx context.Context, account string) (leave func(), ok bool) {
	l, ok := g.fairScheduler.acquire(ctx, account)
	if !ok {
		return nil, false
	}
	return l.release, true
}

// idleSite reports whether the account crowds.
func (g *schedulerTest) isOverloaded() bool { return g.accounts["acme"].overloaded }

// fill takes all places.
func (g *schedulerTest) fill() (leave []func()) {
	g.Helper()
	for range g.capacity {
		l, ok := g.acquire(g.Context())
		if !ok {
			g.Fatal("a place is free, and nobody gets in")
		}
		leave = append(leave, l)
	}
	return leave
}

// arrival is somebody at the gate: whether they got in, and after what time. leave is set then.
type arrival struct {
	in      bool
	after   time.Duration
	release func()
}

func (g *schedulerTest) arrive(ctx context.Context) <-chan arrival { return g.arriveFor(ctx, "acme") }

func (g *schedulerTest) arriveFor(ctx context.Context, account string) <-chan arrival {
	answer := make(chan arrival, 1)
	go func() {
		at := time.Now()
		leave, in := g.acquireFor(ctx, account)
		answer <- arrival{in, time.Since(at), leave}
	}()
	synctest.Wait()
	return answer
}

// crowd comes, while one after the other is done, until it is crowded and there is no place.
func (g *schedulerTest) overload(leave []func()) (rest []func()) {
	g.Helper()
	part := max(1, g.capacity/overloadedShare)
	var waiting []<-chan arrival
	for range part {
		waiting = append(waiting, g.arrive(g.Context()))
	}
	time.Sleep(overloadedAfter)
	for _, l := range leave[:part] {
		l()
	}
	for _, w := range waiting {
		if got := <-w; got.in {
			leave = append(leave, got.release)
		}
	}
	if !g.isOverloaded() {
		g.Fatal("it is not crowded")
	}
	for working, _ := g.load(); working < g.capacity; working++ {
		l, _ := g.acquire(g.Context())
		leave = append(leave, l)
	}
	return leave[part:]
}

// A disk holds everybody up for a moment: who comes meanwhile gets in when it goes on, in the order in which they came.
func TestScheduler_NormalLoadQueuesInOrder(t *testing.T) {
	withScheduler(t, 2*overloadedShare, false, func(g *schedulerTest) {
		leave := g.fill()
		first, second := g.arrive(g.Context()), g.arrive(g.Context())
		time.Sleep(normalWait / 2)
		leave[0]()
		if got := <-first; !got.in || got.after != normalWait/2 {
			g.Errorf("the first: %+v", got)
		}
		if got := <-second; got.in || got.after != normalWait {
			g.Errorf("the second waits for as long as anybody does: %+v", got)
		}
	})
}

// Who waits is bounded: the others hear at once that there is no place.
func TestScheduler_QueueIsBounded(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		g.fill()
		for range 8 / normalQueue {
			g.arrive(g.Context())
		}
		if got := <-g.arrive(g.Context()); got.in || got.after != 0 {
			g.Errorf("%+v", got)
		}
	})
}

// More come than get done: to wait would make all of them late. Those who came when it was calm are sent away, few wait, and not for long.
func TestScheduler_OverloadShortensQueue(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		leave := g.overload(g.fill())
		var waiting []<-chan arrival
		for range 16 / overloadedQueue {
			waiting = append(waiting, g.arrive(g.Context()))
		}
		if got := <-g.arrive(g.Context()); got.in || got.after != 0 {
			g.Errorf("one too many: %+v", got)
		}
		leave[0]()
		newest := len(waiting) - 1
		if got := <-waiting[newest]; !got.in || got.after != 0 {
			g.Errorf("the newest: %+v", got)
		}
		for _, w := range waiting[:newest] {
			if got := <-w; got.in || got.after != overloadedWait {
				g.Errorf("another one: %+v", got)
			}
		}
	})
}

func TestScheduler_OverloadRejectsQueuedRequests(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		leave := g.fill()
		old := g.arrive(g.Context())
		time.Sleep(overloadedAfter)
		young := g.arrive(g.Context())
		leave[0]()
		if got := <-old; got.in || got.after != overloadedAfter {
			g.Errorf("the one who has waited for long: %+v", got)
		}
		if got := <-young; !got.in {
			g.Errorf("the one who just came: %+v", got)
		}
	})
}

// It takes a while without anybody who finds no place until it is calm again, but not long.
func TestScheduler_ReturnsToNormal(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		for _, l := range g.overload(g.fill()) {
			l()
		}
		g.accounts["acme"].lastShortage = time.Now()
		time.Sleep(normalAfter - 1)
		if l, ok := g.acquire(g.Context()); !ok || !g.isOverloaded() {
			g.Error("it is calm too early")
		} else {
			l()
		}
		time.Sleep(time.Nanosecond)
		if l, ok := g.acquire(g.Context()); !ok || g.isOverloaded() {
			g.Error("it is crowded for ever")
		} else {
			l()
		}
	})
}

// Nobody works for somebody who is gone.
func TestScheduler_CancelledRequestGetsNoPermit(t *testing.T) {
	withScheduler(t, 1, true, func(g *schedulerTest) {
		leave := g.fill()
		ctx, hangUp := context.WithCancel(g.Context())
		gone := g.arrive(ctx)
		hangUp()
		if got := <-gone; got.in || got.after != 0 {
			g.Errorf("%+v", got)
		}
		leave[0]()
		if working, waiting := g.load(); working != 0 || waiting != 0 {
			g.Errorf("%d work and %d wait", working, waiting)
		}
	})
}

// Who waits for a model, and not for the store, does not stand in the way of others. That it is slow does not say that there are too many.
func TestScheduler_ExpiredPermitIsReused(t *testing.T) {
	withScheduler(t, 2, true, func(g *schedulerTest) {
		slow := g.fill()
		time.Sleep(normalPermit - overloadedAfter)
		if got := <-g.arrive(g.Context()); !got.in || got.after != overloadedAfter || g.isOverloaded() {
			g.Errorf("%+v", got)
		}
		for _, leave := range slow {
			leave() // a place is given back once
		}
		if working, _ := g.load(); working != 1 {
			g.Errorf("%d work", working)
		}
	})
}

// Who waits for the store keeps the place: more of them would make the store no faster.
func TestScheduler_PermitIsKeptWhileStoreIsSlow(t *testing.T) {
	withScheduler(t, 2, false, func(g *schedulerTest) {
		slow := g.fill()
		time.Sleep(10 * normalPermit)
		if got := <-g.arrive(g.Context()); got.in {
			g.Errorf("%+v", got)
		}
		g.storeFast.Store(true)
		time.Sleep(2 * normalPermit)
		if working, _ := g.load(); working != 0 {
			g.Errorf("the store is quick again, and %d places are not given back", working)
		}
		for _, leave := range slow {
			leave()
		}
		if working, _ := g.load(); working != 0 {
			g.Errorf("%d work", working)
		}
	})
}

// Many ask at once whether the store is quick, and it is asked once.
func TestStoreProbe_ConcurrentCallersShareOneResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, takes := 0, time.Duration(0)
		p := &storeProbe{check: func(context.Context) error { asked++; time.Sleep(takes); return nil }}
		first, second := p.ok(), p.ok()
		if !first || !second || asked != 1 {
			t.Errorf("it was asked %d times", asked)
		}
		time.Sleep(probeTTL)
		if takes = fastStore + 1; p.ok() || asked != 2 {
			t.Errorf("%v is quick; asked %d times", takes, asked)
		}
	})
}

// With the few places that an account has when it crowds, somebody is always without one. A store that stood still for a moment must not make that last.
func TestScheduler_ShortStallDoesNotOverload(t *testing.T) {
	withScheduler(t, 64, true, func(g *schedulerTest) {
		begin := time.Now()
		end := begin.Add(40 * time.Second)
		var stalled atomic.Int64 // untilOf when the store is
		time.AfterFunc(5*time.Second, func() { g.storeFast.Store(false); stalled.Store(time.Now().Add(200 * time.Millisecond).UnixNano()) })
		time.AfterFunc(5200*time.Millisecond, func() { g.storeFast.Store(true) })
		go func() {
			for time.Now().Before(end) { // claimsFor else is there, and does next to nothing
				g.arriveAndLeave("b")
				time.Sleep(20 * time.Second)
			}
		}()
		var served [40]atomic.Int64
		done := make(chan struct{})
		for i := range 50 {
			go func() {
				defer func() { done <- struct{}{} }()
				time.Sleep(time.Duration(i) * 197 * time.Microsecond)
				for time.Now().Before(end) {
					l, ok := g.fairScheduler.acquire(g.Context(), "big")
					if !ok {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					served[min(39, int(time.Since(begin)/time.Second))].Add(1)
					time.Sleep(5*time.Millisecond + max(0, time.Until(time.Unix(0, stalled.Load()))))
					l.release()
					time.Sleep(5 * time.Millisecond)
				}
			}()
		}
		for range 50 {
			<-done
		}
		if before, throttled, after := served[3].Load(), served[7].Load(), served[38].Load(); throttled > before/2 || after < before*9/10 {
			g.Errorf("%d a second before, %d when it crowded, %d half a minute later", before, throttled, after)
		}
	})
}

// However places are taken, moved, lent, lost and given back, none is counted that is not there.
func TestScheduler_CountsAreConsistentAfterRandomLoad(t *testing.T) {
	for seed := range uint64(20) {
		withScheduler(t, 1+int(seed%17), seed%2 == 0, func(g *schedulerTest) {
			done := make(chan struct{})
			for i := range uint64(60) {
				go func() {
					defer func() { done <- struct{}{} }()
					r := rand.New(rand.NewPCG(seed, i))
					for range 40 {
						g.randomLoad(r)
					}
				}()
			}
			for range 60 {
				<-done
			}
			time.Sleep(5 * time.Second)
			g.checkCounts(0)
		})
	}
}

// storm is what one request may come to.
func (g *schedulerTest) randomLoad(r *rand.Rand) {
	names := []string{anonymousAccount, "a", "b", "c"}
	upTo := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	ctx, cancel := context.WithTimeout(g.Context(), upTo(300))
	defer cancel()
	if l, ok := g.fairScheduler.acquire(ctx, names[min(r.IntN(5), 3)]); ok {
		for range r.IntN(3) {
			time.Sleep(upTo(10))
			l.reassign(names[r.IntN(4)])
		}
		time.Sleep(upTo([]int{10, 10, 10, 600}[r.IntN(4)]))
		if r.IntN(4) == 0 {
			go l.expire()
		}
		if r.IntN(10) == 0 {
			go l.reassign(names[r.IntN(4)])
		}
		l.release()
		l.release()
	}
	if r.IntN(30) == 0 {
		g.storeFast.Store(r.IntN(2) == 0)
		time.Sleep(upTo(70_000))
	}
	g.checkCounts(-1)
	time.Sleep(upTo(5))
}

// counted compares what the gate believes with what its classes have: so many places, if that is known.
func (g *schedulerTest) checkCounts(known int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, crowding, working, waiting, queued := 0, 0, 0, 0, 0
	for _, c := range g.accounts {
		taken, waiting = taken+c.inUse, waiting+len(c.waiting)
		if c.overloaded {
			crowding += c.inUse
		}
		if c.inUse > 0 {
			working++
		}
		if len(c.waiting) > 0 {
			queued++
		}
		if c.inUse < 0 {
			g.Errorf("%q has %d places", c.account, c.inUse)
		}
	}
	if taken != g.inUse || crowding != g.inUseOverloaded || working != g.activeAccounts || waiting != g.waiting || queued != len(g.queue) || known >= 0 && taken+waiting != known || g.inUse > g.capacity+max(1, g.capacity/reserveShare) {
		g.Errorf("taken %d/%d, crowding %d/%d, working %d/%d, waiting %d/%d, queued %d/%d", g.inUse, taken, g.inUseOverloaded, crowding, g.activeAccounts, working, g.waiting, waiting, len(g.queue), queued)
	}
}
