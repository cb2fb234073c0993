package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Whoever looks like a stranger each time, and turns out to be of one account each time, has no more places than anybody else.
func TestGate_WhoComesAsAStrangerEachTimeGetsNoMore(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		g.visit("b")
		for range 20 {
			l, ok := g.gate.enter(g.Context(), strangers)
			if !ok {
				break
			}
			if !l.belongs("noisy") {
				l.leave()
			}
		}
		if got := <-g.comeOf(g.Context(), "b"); !got.in {
			g.Errorf("noisy has %d of 16, and b gets none", g.classes["noisy"].taken)
		}
	})
}

func TestHall_WhoComesAsAStrangerEachTimeGetsNoMore(t *testing.T) {
	h := newHall(16)
	s, _ := h.enter("b")
	s.leave()
	for range 20 {
		if s, ok := h.enter(strangers); ok && !s.belongs("noisy") {
			s.leave()
		}
	}
	if _, ok := h.enter("b"); !ok {
		t.Errorf("noisy has %d of 16, and b gets none", h.by["noisy"])
	}
}

func TestHints_ATokenIsOneHoweverItIsSpelled(t *testing.T) {
	s, seen := new(Server), make(map[credential]bool)
	for _, header := range []string{"Bearer k", "bearer k", "BEARER   k ", "Bearer \tk"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		seen[s.shown(r)] = true
	}
	if len(seen) != 1 {
		t.Errorf("it is taken for %d", len(seen))
	}
}

// What several accounts come with says nothing: a proxy may have one for all.
func TestHints_WhatSeveralComeWithIsNobodys(t *testing.T) {
	var h hints
	for _, account := range []string{"a", "a", "b", "b"} {
		h.learn(credential{1}, account)
	}
	if got := h.account(credential{1}); got != strangers {
		t.Errorf("it is taken for that of %s", got)
	}
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

// Of two that crowd, the one that comes seldom gets its turns, too.
func TestGate_WhoComesOftenDoesNotTakeAllTurns(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		calm, _ := g.gate.enter(g.Context(), "calm")
		defer calm.leave()
		g.mu.Lock()
		for _, account := range []string{"often", "seldom"} {
			c := g.classOf(account, time.Now())
			c.lacked = time.Now()
			g.crowds(c, time.Now())
		}
		g.mu.Unlock()
		end := time.Now().Add(4 * time.Second)
		served := map[string]*atomic.Int64{"often": new(atomic.Int64), "seldom": new(atomic.Int64)}
		done := make(chan struct{})
		come := func(account string, pause time.Duration) {
			for time.Now().Before(end) {
				go func() {
					if l, ok := g.gate.enter(g.Context(), account); ok {
						served[account].Add(1)
						time.Sleep(time.Millisecond)
						l.leave()
					}
				}()
				time.Sleep(pause)
			}
			done <- struct{}{}
		}
		go come("often", time.Millisecond)
		go come("seldom", 97*time.Millisecond)
		<-done
		<-done
		time.Sleep(time.Second)
		if often, seldom := served["often"].Load(), served["seldom"].Load(); seldom < 5 || often == 0 {
			g.Errorf("often got %d turns, seldom %d of 42", often, seldom)
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
