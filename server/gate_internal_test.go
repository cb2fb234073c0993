package server

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// porter is a gate with people at it. All of it happens in a bubble, where time passes when everybody waits.
type porter struct {
	*testing.T
	gate
	fast atomic.Bool // the store is
}

func atGate(t *testing.T, places int, quick bool, fn func(*porter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &porter{T: t}
		g.fast.Store(quick)
		g.places, g.narrow, g.quick = places, 2, g.fast.Load
		fn(g)
	})
}

// enter is for somebody of the account most of this is about.
func (g *porter) enter(ctx context.Context) (leave func(), ok bool) { return g.enterOf(ctx, "acme") }

func (g *porter) enterOf(ctx context.Context, account string) (leave func(), ok bool) {
	l, ok := g.gate.enter(ctx, account)
	if !ok {
		return nil, false
	}
	return l.leave, true
}

// crowded reports whether the account crowds.
func (g *porter) crowded() bool { return g.classes["acme"].crowded }

// fill takes all places.
func (g *porter) fill() (leave []func()) {
	g.Helper()
	for range g.places {
		l, ok := g.enter(g.Context())
		if !ok {
			g.Fatal("a place is free, and nobody gets in")
		}
		leave = append(leave, l)
	}
	return leave
}

// came is somebody at the gate: whether they got in, and after what time. leave is set then.
type came struct {
	in    bool
	after time.Duration
	leave func()
}

func (g *porter) come(ctx context.Context) <-chan came { return g.comeOf(ctx, "acme") }

func (g *porter) comeOf(ctx context.Context, account string) <-chan came {
	answer := make(chan came, 1)
	go func() {
		at := time.Now()
		leave, in := g.enterOf(ctx, account)
		answer <- came{in, time.Since(at), leave}
	}()
	synctest.Wait()
	return answer
}

// crowd comes, while one after the other is done, until it is crowded and there is no place.
func (g *porter) crowd(leave []func()) (rest []func()) {
	g.Helper()
	part := max(1, g.places/crowdedShare)
	var waiting []<-chan came
	for range part {
		waiting = append(waiting, g.come(g.Context()))
	}
	time.Sleep(crowdedAfter)
	for _, l := range leave[:part] {
		l()
	}
	for _, w := range waiting {
		if got := <-w; got.in {
			leave = append(leave, got.leave)
		}
	}
	if !g.crowded() {
		g.Fatal("it is not crowded")
	}
	for working, _ := g.load(); working < g.places; working++ {
		l, _ := g.enter(g.Context())
		leave = append(leave, l)
	}
	return leave[part:]
}

// A disk holds everybody up for a moment: who comes meanwhile gets in when it goes on, in the order in which they came.
func TestGate_WhileItIsCalmPeopleWaitInOrder(t *testing.T) {
	atGate(t, 2*crowdedShare, false, func(g *porter) {
		leave := g.fill()
		first, second := g.come(g.Context()), g.come(g.Context())
		time.Sleep(calmPatience / 2)
		leave[0]()
		if got := <-first; !got.in || got.after != calmPatience/2 {
			g.Errorf("the first: %+v", got)
		}
		if got := <-second; got.in || got.after != calmPatience {
			g.Errorf("the second waits for as long as anybody does: %+v", got)
		}
	})
}

// Who waits is bounded: the others hear at once that there is no place.
func TestGate_OnlySomeWait(t *testing.T) {
	atGate(t, 8, false, func(g *porter) {
		g.fill()
		for range 8 / calmQueue {
			g.come(g.Context())
		}
		if got := <-g.come(g.Context()); got.in || got.after != 0 {
			g.Errorf("%+v", got)
		}
	})
}

// More come than get done: to wait would make all of them late. Those who came when it was calm are sent away, few wait, and not for long.
func TestGate_WhileItIsCrowdedHardlyAnybodyWaits(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		leave := g.crowd(g.fill())
		var waiting []<-chan came
		for range 16 / crowdedQueue {
			waiting = append(waiting, g.come(g.Context()))
		}
		if got := <-g.come(g.Context()); got.in || got.after != 0 {
			g.Errorf("one too many: %+v", got)
		}
		leave[0]()
		newest := len(waiting) - 1
		if got := <-waiting[newest]; !got.in || got.after != 0 {
			g.Errorf("the newest: %+v", got)
		}
		for _, w := range waiting[:newest] {
			if got := <-w; got.in || got.after != crowdedPatience {
				g.Errorf("another one: %+v", got)
			}
		}
	})
}

func TestGate_WhoCameWhenItWasCalmIsSentAwayWhenItIsCrowded(t *testing.T) {
	atGate(t, 8, false, func(g *porter) {
		leave := g.fill()
		old := g.come(g.Context())
		time.Sleep(crowdedAfter)
		young := g.come(g.Context())
		leave[0]()
		if got := <-old; got.in || got.after != crowdedAfter {
			g.Errorf("the one who has waited for long: %+v", got)
		}
		if got := <-young; !got.in {
			g.Errorf("the one who just came: %+v", got)
		}
	})
}

// It takes a while without anybody who finds no place until it is calm again, but not long.
func TestGate_IsCalmAgain(t *testing.T) {
	atGate(t, 8, false, func(g *porter) {
		for _, l := range g.crowd(g.fill()) {
			l()
		}
		g.classes["acme"].lacked = time.Now()
		time.Sleep(calmAfter - 1)
		if l, ok := g.enter(g.Context()); !ok || !g.crowded() {
			g.Error("it is calm too early")
		} else {
			l()
		}
		time.Sleep(time.Nanosecond)
		if l, ok := g.enter(g.Context()); !ok || g.crowded() {
			g.Error("it is crowded for ever")
		} else {
			l()
		}
	})
}

// Nobody works for somebody who is gone.
func TestGate_WhoIsGoneGetsNoPlace(t *testing.T) {
	atGate(t, 1, true, func(g *porter) {
		leave := g.fill()
		ctx, hangUp := context.WithCancel(g.Context())
		gone := g.come(ctx)
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
func TestGate_APlaceOfThoseWhoWaitForSomebodyElseGoesToTheNext(t *testing.T) {
	atGate(t, 2, true, func(g *porter) {
		slow := g.fill()
		time.Sleep(calmLease - crowdedAfter)
		if got := <-g.come(g.Context()); !got.in || got.after != crowdedAfter || g.crowded() {
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
func TestGate_APlaceIsKeptWhileTheStoreIsSlow(t *testing.T) {
	atGate(t, 2, false, func(g *porter) {
		slow := g.fill()
		time.Sleep(10 * calmLease)
		if got := <-g.come(g.Context()); got.in {
			g.Errorf("%+v", got)
		}
		g.fast.Store(true)
		time.Sleep(2 * calmLease)
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
func TestProbe_OneAnswerForAllWhoAskMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, takes := 0, time.Duration(0)
		p := &probe{ask: func(context.Context) error { asked++; time.Sleep(takes); return nil }}
		first, second := p.ok(), p.ok()
		if !first || !second || asked != 1 {
			t.Errorf("it was asked %d times", asked)
		}
		time.Sleep(probeHolds)
		if takes = quickly + 1; p.ok() || asked != 2 {
			t.Errorf("%v is quick; asked %d times", takes, asked)
		}
	})
}

// With the few places that an account has when it crowds, somebody is always without one. A store that stood still for a moment must not make that last.
func TestGate_OneHiccupIsForgotten(t *testing.T) {
	atGate(t, 64, true, func(g *porter) {
		begin := time.Now()
		end := begin.Add(40 * time.Second)
		var stalled atomic.Int64 // until when the store is
		time.AfterFunc(5*time.Second, func() { g.fast.Store(false); stalled.Store(time.Now().Add(200 * time.Millisecond).UnixNano()) })
		time.AfterFunc(5200*time.Millisecond, func() { g.fast.Store(true) })
		go func() {
			for time.Now().Before(end) { // somebody else is there, and does next to nothing
				g.visit("b")
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
					l, ok := g.gate.enter(g.Context(), "big")
					if !ok {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					served[min(39, int(time.Since(begin)/time.Second))].Add(1)
					time.Sleep(5*time.Millisecond + max(0, time.Until(time.Unix(0, stalled.Load()))))
					l.leave()
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
func TestGate_CountsAreRightAfterAStorm(t *testing.T) {
	for seed := range uint64(20) {
		atGate(t, 1+int(seed%17), seed%2 == 0, func(g *porter) {
			done := make(chan struct{})
			for i := range uint64(60) {
				go func() {
					defer func() { done <- struct{}{} }()
					r := rand.New(rand.NewPCG(seed, i))
					for range 40 {
						g.storm(r)
					}
				}()
			}
			for range 60 {
				<-done
			}
			time.Sleep(5 * time.Second)
			g.counted(0)
		})
	}
}

// storm is what one request may come to.
func (g *porter) storm(r *rand.Rand) {
	names := []string{strangers, "a", "b", "c"}
	upTo := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	ctx, cancel := context.WithTimeout(g.Context(), upTo(300))
	defer cancel()
	if l, ok := g.gate.enter(ctx, names[min(r.IntN(5), 3)]); ok {
		for range r.IntN(3) {
			time.Sleep(upTo(10))
			l.belongs(names[r.IntN(4)])
		}
		time.Sleep(upTo([]int{10, 10, 10, 600}[r.IntN(4)]))
		if r.IntN(4) == 0 {
			go l.expire()
		}
		if r.IntN(10) == 0 {
			go l.belongs(names[r.IntN(4)])
		}
		l.leave()
		l.leave()
	}
	if r.IntN(30) == 0 {
		g.fast.Store(r.IntN(2) == 0)
		time.Sleep(upTo(70_000))
	}
	g.counted(-1)
	time.Sleep(upTo(5))
}

// counted compares what the gate believes with what its classes have: so many places, if that is known.
func (g *porter) counted(known int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, crowding, working, waiting, queued := 0, 0, 0, 0, 0
	for _, c := range g.classes {
		taken, waiting = taken+c.taken, waiting+len(c.waiting)
		if c.crowded {
			crowding += c.taken
		}
		if c.taken > 0 {
			working++
		}
		if len(c.waiting) > 0 {
			queued++
		}
		if c.taken < 0 {
			g.Errorf("%q has %d places", c.account, c.taken)
		}
	}
	if taken != g.taken || crowding != g.crowding || working != g.working || waiting != g.waiting || queued != len(g.queue) || known >= 0 && taken+waiting != known || g.taken > g.places+max(1, g.places/spareShare) {
		g.Errorf("taken %d/%d, crowding %d/%d, working %d/%d, waiting %d/%d, queued %d/%d", g.taken, taken, g.crowding, crowding, g.working, working, g.waiting, waiting, len(g.queue), queued)
	}
}
