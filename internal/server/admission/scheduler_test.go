package admission

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// schedulerTest is a scheduler with simulated requests, in a synctest bubble.
type schedulerTest struct {
	*testing.T
	FairScheduler
	storeFast atomic.Bool // whether the store is fast
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

// acquire is for the main account of a test.
func (g *schedulerTest) acquire(ctx context.Context) (leave func(), ok bool) {
	return g.acquireFor(ctx, "acme")
}

func (g *schedulerTest) acquireFor(ctx context.Context, account string) (leave func(), ok bool) {
	l, ok := g.FairScheduler.Acquire(ctx, account)
	if !ok {
		return nil, false
	}
	return l.Release, true
}

// isOverloaded reports whether the account is overloaded.
func (g *schedulerTest) isOverloaded() bool { return g.accounts["acme"].overloaded }

// fill takes all permits.
func (g *schedulerTest) fill() (leave []func()) {
	g.Helper()
	for range g.capacity {
		l, ok := g.acquire(g.Context())
		if !ok {
			g.Fatal("a permit is free, but the request is not admitted")
		}
		leave = append(leave, l)
	}
	return leave
}

// arrival is a request: whether it was admitted, and after what time. release is set then.
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

// overload sends requests while others complete, until the account is overloaded and there is no
// permit.
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
		g.Fatal("it is not overloaded")
	}
	for inUse, _ := g.Load(); inUse < g.capacity; inUse++ {
		l, _ := g.acquire(g.Context())
		leave = append(leave, l)
	}
	return leave[part:]
}

// After a short stall, requests that arrived during it are admitted in order.
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
			g.Errorf("the second waits for the maximum time: %+v", got)
		}
	})
}

// The queue is bounded: other requests are rejected at once.
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

// More requests arrive than complete. Queued requests are rejected, few wait, and only briefly.
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
			g.Errorf("the request that has waited long: %+v", got)
		}
		if got := <-young; !got.in {
			g.Errorf("the newest request: %+v", got)
		}
	})
}

// The account is normal again after a short time without a shortage.
func TestScheduler_ReturnsToNormal(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		for _, l := range g.overload(g.fill()) {
			l()
		}
		g.accounts["acme"].lastShortage = time.Now()
		time.Sleep(normalAfter - 1)
		if l, ok := g.acquire(g.Context()); !ok || !g.isOverloaded() {
			g.Error("it is normal too early")
		} else {
			l()
		}
		time.Sleep(time.Nanosecond)
		if l, ok := g.acquire(g.Context()); !ok || g.isOverloaded() {
			g.Error("it stays overloaded")
		} else {
			l()
		}
	})
}

// A cancelled request is not executed.
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
		if inUse, waiting := g.Load(); inUse != 0 || waiting != 0 {
			g.Errorf("%d have a permit and %d wait", inUse, waiting)
		}
	})
}

// A request that waits for a model, and not for the store, does not block others, and does not
// count as overload.
func TestScheduler_ExpiredPermitIsReused(t *testing.T) {
	withScheduler(t, 2, true, func(g *schedulerTest) {
		slow := g.fill()
		time.Sleep(normalPermit - overloadedAfter)
		if got := <-g.arrive(g.Context()); !got.in || got.after != overloadedAfter || g.isOverloaded() {
			g.Errorf("%+v", got)
		}
		for _, leave := range slow {
			leave() // a permit is released once
		}
		if inUse, _ := g.Load(); inUse != 1 {
			g.Errorf("%d work", inUse)
		}
	})
}

// A request that waits for the store keeps its permit: more requests would make the store slower.
func TestScheduler_PermitIsKeptWhileStoreIsSlow(t *testing.T) {
	withScheduler(t, 2, false, func(g *schedulerTest) {
		slow := g.fill()
		time.Sleep(10 * normalPermit)
		if got := <-g.arrive(g.Context()); got.in {
			g.Errorf("%+v", got)
		}
		g.storeFast.Store(true)
		time.Sleep(2 * normalPermit)
		if inUse, _ := g.Load(); inUse != 0 {
			g.Errorf("the store is fast again, and %d permits are not released", inUse)
		}
		for _, leave := range slow {
			leave()
		}
		if inUse, _ := g.Load(); inUse != 0 {
			g.Errorf("%d work", inUse)
		}
	})
}

// Concurrent callers share one check of the store.
func TestStoreProbe_ConcurrentCallersShareOneResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, takes := 0, time.Duration(0)
		p := &StoreProbe{Check: func(context.Context) error { asked++; time.Sleep(takes); return nil }}
		first, second := p.OK(), p.OK()
		if !first || !second || asked != 1 {
			t.Errorf("it was checked %d times", asked)
		}
		time.Sleep(probeTTL)
		if takes = fastStore + 1; p.OK() || asked != 2 {
			t.Errorf("%v is fast; checked %d times", takes, asked)
		}
	})
}

// An overloaded account has so few permits that some request always lacks one. A short stall must
// not make the overload permanent.
func TestScheduler_ShortStallDoesNotOverload(t *testing.T) {
	withScheduler(t, 64, true, func(g *schedulerTest) {
		begin := time.Now()
		end := begin.Add(40 * time.Second)
		var stalled atomic.Int64 // until when the store stalls
		time.AfterFunc(5*time.Second, func() { g.storeFast.Store(false); stalled.Store(time.Now().Add(200 * time.Millisecond).UnixNano()) })
		time.AfterFunc(5200*time.Millisecond, func() { g.storeFast.Store(true) })
		go func() {
			for time.Now().Before(end) { // another account is active, with almost no load
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
					l, ok := g.FairScheduler.Acquire(g.Context(), "big")
					if !ok {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					served[min(39, int(time.Since(begin)/time.Second))].Add(1)
					time.Sleep(5*time.Millisecond + max(0, time.Until(time.Unix(0, stalled.Load()))))
					l.Release()
					time.Sleep(5 * time.Millisecond)
				}
			}()
		}
		for range 50 {
			<-done
		}
		if before, throttled, after := served[3].Load(), served[7].Load(), served[38].Load(); throttled > before/2 || after < before*9/10 {
			g.Errorf("%d a second before, %d during the overload, %d half a minute later", before, throttled, after)
		}
	})
}

// The counts stay consistent however permits are acquired, reassigned, expired and released.
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

// randomLoad is a random request.
func (g *schedulerTest) randomLoad(r *rand.Rand) {
	names := []string{anonymousAccount, "a", "b", "c"}
	upTo := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	ctx, cancel := context.WithTimeout(g.Context(), upTo(300))
	defer cancel()
	if l, ok := g.FairScheduler.Acquire(ctx, names[min(r.IntN(5), 3)]); ok {
		for range r.IntN(3) {
			time.Sleep(upTo(10))
			l.Reassign(names[r.IntN(4)])
		}
		time.Sleep(upTo([]int{10, 10, 10, 600}[r.IntN(4)]))
		if r.IntN(4) == 0 {
			go l.expire()
		}
		if r.IntN(10) == 0 {
			go l.Reassign(names[r.IntN(4)])
		}
		l.Release()
		l.Release()
	}
	if r.IntN(30) == 0 {
		g.storeFast.Store(r.IntN(2) == 0)
		time.Sleep(upTo(70_000))
	}
	g.checkCounts(-1)
	time.Sleep(upTo(5))
}

// checkCounts compares the scheduler's counts with its accounts: known permits in use, if that is
// known.
func (g *schedulerTest) checkCounts(known int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, crowding, executing, waiting, queued := 0, 0, 0, 0, 0
	for _, c := range g.accounts {
		taken, waiting = taken+c.inUse, waiting+len(c.waiting)
		if c.overloaded {
			crowding += c.inUse
		}
		if c.inUse > 0 {
			executing++
		}
		if len(c.waiting) > 0 {
			queued++
		}
		if c.inUse < 0 {
			g.Errorf("%q has %d places", c.account, c.inUse)
		}
	}
	if taken != g.inUse || crowding != g.inUseOverloaded || executing != g.activeAccounts || waiting != g.waiting || queued != len(g.queue) || known >= 0 && taken+waiting != known || g.inUse > g.capacity+max(1, g.capacity/reserveShare) {
		g.Errorf("taken %d/%d, crowding %d/%d, working %d/%d, waiting %d/%d, queued %d/%d", g.inUse, taken, g.inUseOverloaded, crowding, g.activeAccounts, executing, g.waiting, waiting, len(g.queue), queued)
	}
}
