package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// visit is somebody of another account who comes and goes: from then on nobody is alone.
func (g *porter) visit(account string) {
	g.Helper()
	leave, ok := g.enterOf(g.Context(), account)
	if !ok {
		g.Fatalf("%s finds no place", account)
	}
	leave()
}

// takeAll takes as many places for an account as it gets without waiting.
func (g *porter) takeAll(account string) (leave []func()) {
	g.Helper()
	for range 2 * g.places {
		c := g.classOf(account, time.Now())
		if !g.admits(c, time.Now()) {
			break
		}
		l, _ := g.enterOf(g.Context(), account)
		leave = append(leave, l)
	}
	return leave
}

// One account has taken everything and is held up. Whoever has nothing yet gets in all the same, at once; but the gate does not get wider with every account.
func TestGate_WhoHasNoPlaceGetsInAlthoughAllAreTaken(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		g.fill()
		for _, account := range []string{"b", "c"} {
			if got := <-g.comeOf(g.Context(), account); !got.in || got.after != 0 {
				g.Errorf("%s: %+v", account, got)
			}
		}
		if working, _ := g.load(); working != 16+16/spareShare {
			g.Errorf("%d work", working)
		}
		if got := <-g.comeOf(g.Context(), "d"); got.in || got.after != calmPatience {
			g.Errorf("one too many: %+v", got)
		}
		if got := <-g.comeOf(g.Context(), "b"); got.in {
			g.Errorf("a second one of the same: %+v", got)
		}
	})
}

// One account alone has the whole machine; beside others it leaves them as many places as it takes.
func TestGate_BesideOthersNobodyTakesMoreThanAreLeft(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		g.visit("b")
		held := g.takeAll("acme")
		if len(held) != 8 {
			g.Errorf("beside another one it takes %d of 16", len(held))
		}
		if more := g.takeAll("b"); len(more) != 16/3 {
			g.Errorf("the other one takes %d of 16: a third is left to a third one", len(more))
		}
	})
	atGate(t, 16, false, func(g *porter) {
		g.comeOf(g.Context(), "b") // and stays
		if got := len(g.takeAll("acme")); got != 8 {
			g.Errorf("beside one who has a single place it takes %d of 16", got)
		}
	})
	atGate(t, 16, false, func(g *porter) {
		g.visit("b")
		time.Sleep(lately)
		if got := len(g.takeAll("acme")); got != 16 {
			g.Errorf("alone for a while it takes %d of 16", got)
		}
	})
}

// A place that becomes free goes to the account that has the fewest, whoever came first.
func TestGate_AFreePlaceGoesToTheAccountWithTheFewest(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		leave := g.fill()
		g.comeOf(g.Context(), "b") // beyond the sixteen
		first := g.come(g.Context())
		second := g.comeOf(g.Context(), "b")
		leave[0]()
		leave[1]()
		if got := <-second; !got.in || got.after != 0 {
			g.Errorf("the one with one place: %+v", got)
		}
		if got := <-first; got.in {
			g.Errorf("the one with fourteen places: %+v", got)
		}
	})
}

// Of two with as many places the one comes first whose turn is longer ago.
func TestGate_AccountsWithAsManyPlacesTakeTurns(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		now := time.Now()
		a, b := g.classOf("a", now), g.classOf("b", now)
		g.queue, a.given = []*class{a, b}, now
		if got := g.next(now); got != b {
			g.Errorf("it is the turn of %s again", got.account)
		}
	})
}

// Who asks for more than gets done has, beside others, no more places than keep the machine busy: the others would wait behind them, at the store and at the processors.
// While somebody else works, only one of it does, and not at once: whoever is there finds nobody behind them, and it still gets something done.
func TestGate_WhoCrowdsBesideOthersHasFewPlaces(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		leave := g.crowd(g.fill())
		g.visit("b")
		for n, l := range leave {
			waits := g.come(g.Context())
			l()
			synctest.Wait()
			select {
			case got := <-waits:
				if working := len(leave) - n - 1; got.in && working >= g.narrow {
					g.Errorf("it gets another place beside %d", working)
				}
			default:
				if n == len(leave)-1 {
					g.Error("it gets none any more")
				}
				time.Sleep(crowdedPatience)
			}
		}
		if got := g.classes["acme"].taken; got != g.narrow {
			g.Errorf("it has %d places, not %d", got, g.narrow)
		}
	})
	atGate(t, 16, false, func(g *porter) {
		for _, l := range g.crowd(g.fill()) {
			l()
		}
		g.comeOf(g.Context(), "b") // and stays
		for n, wait := range []struct {
			after  time.Duration
			places int
		}{{0, 0}, {crowdedPause - 1, 0}, {1, 1}, {0, 0}, {crowdedPause, 1}} {
			time.Sleep(wait.after)
			got := g.takeAll("acme")
			if len(got) != wait.places {
				g.Errorf("%d: it gets %d places beside one who works, not %d", n, len(got), wait.places)
			}
			for _, l := range got {
				l()
			}
		}
		time.Sleep(crowdedPause)
		g.takeAll("acme") // and stays
		time.Sleep(crowdedPause)
		if got := len(g.takeAll("acme")); got != 0 {
			g.Errorf("it gets %d places beside one who works and one of its own", got)
		}
	})
}

// Alone, who crowds has all places, as it would without all this.
func TestGate_WhoCrowdsAloneHasAllPlaces(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		if got := g.noisy(); got != 0 {
			g.Errorf("%d accounts crowd before there is any", got)
		}
		for _, l := range g.crowd(g.fill()) {
			l()
		}
		if got := g.noisy(); got != 1 {
			g.Errorf("%d accounts crowd, not one", got)
		}
		if got := len(g.takeAll("acme")); got != 16 {
			g.Errorf("it gets %d of 16", got)
		}
	})
}

// Several that crowd share the few places: a noisy account does not get more of them by being two.
func TestGate_ThoseWhoCrowdShareTheFewPlaces(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		now := time.Now()
		for _, account := range []string{"a", "b", "c"} {
			g.crowds(g.classOf(account, now), now)
			g.classOf(account, now).lacked = now
		}
		if a, b, c := len(g.takeAll("a")), len(g.takeAll("b")), len(g.takeAll("c")); a+b+c != g.narrow {
			g.Errorf("they get %d, %d and %d places; there are %d", a, b, c, g.narrow)
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

// That one account crowds is no reason for another one not to wait as patiently as it likes.
func TestGate_OneCrowdsAndTheOthersAreCalm(t *testing.T) {
	atGate(t, 8, false, func(g *porter) {
		g.crowd(g.fill())
		g.comeOf(g.Context(), "b") // beyond the eight
		if got := <-g.comeOf(g.Context(), "b"); got.in || got.after != calmPatience {
			g.Errorf("%+v", got)
		}
	})
}

// Who waits is bounded for all together. An account that has fewer who wait takes the room of the one that has most, whose oldest hears so at once.
func TestGate_WhoHasFewWaitingTakesTheRoomOfWhoHasMany(t *testing.T) {
	atGate(t, 8, false, func(g *porter) {
		g.fill()
		g.comeOf(g.Context(), "b")
		var many []<-chan came
		for range 8 / calmQueue {
			many = append(many, g.come(g.Context()))
		}
		time.Sleep(time.Millisecond)
		few := g.comeOf(g.Context(), "b")
		if got := <-many[0]; got.in || got.after != time.Millisecond {
			g.Errorf("the oldest of those who are many: %+v", got)
		}
		if got := <-few; got.after != calmPatience {
			g.Errorf("the one who took its room: %+v", got)
		}
		if _, waiting := g.load(); waiting != 0 || len(g.queue) != 0 {
			g.Errorf("%d wait, of %d accounts", waiting, len(g.queue))
		}
	})
}

// Whom nobody knows are one account together, whatever they come with, and no company: an account beside them has all places.
func TestGate_StrangersAreOneAndNoCompany(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		g.visit("acme")
		if got := len(g.takeAll(strangers)); got != 8 {
			g.Errorf("beside an account they take %d of 16", got)
		}
		if got := len(g.takeAll("acme")); got != 8 {
			g.Errorf("of what they left it gets %d", got)
		}
	})
}

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

// A stranger who turns out to be somebody has their place, and not one of the strangers'.
func TestGate_APlaceBelongsToWhomItTurnsOutToBe(t *testing.T) {
	atGate(t, 2, false, func(g *porter) {
		l, ok := g.gate.enter(g.Context(), strangers)
		if !ok {
			g.Fatal("the gate is closed")
		}
		l.belongs("acme")
		if of := [2]int{g.classes["acme"].taken, g.classes[strangers].taken}; of != [2]int{1, 0} || g.taken != 1 {
			g.Errorf("acme and strangers have %v, and %d work", of, g.taken)
		}
		l.leave()
		l.belongs("b") // it was given back
		if g.classes["acme"].taken != 0 || g.classes["b"].taken != 0 || g.taken != 0 {
			g.Error("a place is left")
		}
	})
}

// The few places are lent for a short time: an account that calls slow models gets as many of them begun as before.
func TestGate_TheFewPlacesAreLentForAShortTime(t *testing.T) {
	atGate(t, 16, true, func(g *porter) {
		for _, l := range g.crowd(g.fill()) {
			l()
		}
		g.visit("b")
		g.takeAll("acme")
		time.Sleep(narrowLease - crowdedPatience/2)
		if got := <-g.come(g.Context()); !got.in || got.after != crowdedPatience/2 {
			g.Errorf("%+v", got)
		}
	})
}

// Accounts that are gone are forgotten.
func TestGate_ForgetsWhoIsGone(t *testing.T) {
	atGate(t, 16, false, func(g *porter) {
		g.visit("b")
		stays, _ := g.enterOf(g.Context(), "c")
		time.Sleep(lately)
		g.visit("d")
		if _, kept := g.classes["b"]; kept || len(g.classes) != 2 {
			g.Errorf("%d are remembered", len(g.classes))
		}
		stays()
	})
}

// A hall is full for who has most, and not for who has nothing.
func TestHall_OneAccountDoesNotFillIt(t *testing.T) {
	fill := func(h *hall, account string) (taken []*seat) {
		for s, ok := h.enter(account); ok; s, ok = h.enter(account) {
			taken = append(taken, s)
		}
		return taken
	}
	alone := newHall(20)
	if got := len(fill(alone, "acme")); got != 20 {
		t.Errorf("alone it takes %d of 20", got)
	}
	for account, want := range map[string]bool{"acme": false, "b": true} {
		if _, ok := alone.enter(account); ok != want {
			t.Errorf("all is taken; %s gets in: %t", account, ok)
		}
	}
	shared := newHall(20)
	b, _ := shared.enter("b")
	held := fill(shared, "acme")
	if more := fill(shared, "b"); len(held) != 16 || len(more) != 3 {
		t.Errorf("beside the one that has one it takes %d of 19; the one gets %d more", len(held), len(more))
	}
	for _, s := range slices.Concat(held, []*seat{b}) {
		s.leave()
	}
	if shared.taken != 3 || len(shared.by) != 1 {
		t.Errorf("%d are taken, by %v", shared.taken, shared.by)
	}
}

func TestHall_APlaceBelongsToWhomItTurnsOutToBe(t *testing.T) {
	h := newHall(2)
	s, _ := h.enter(strangers)
	s.belongs("acme")
	if h.by["acme"] != 1 || h.by[strangers] != 0 || !h.seen.beside("b", time.Now()) {
		t.Errorf("%v", h.by)
	}
	s.leave()
	if h.taken != 0 || len(h.by) != 0 {
		t.Errorf("%d are taken, by %v", h.taken, h.by)
	}
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

// A request shows its token, or else its session; who shows nothing is not taken for anybody.
func TestHints_GoByTheTokenOrTheSession(t *testing.T) {
	with := func(header, value string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Add(header, value)
		return r
	}
	keysOnly, both := new(Server), &Server{people: new(people)}
	token, cookie := with("Authorization", "Bearer a"), with("Cookie", sessionName+"=a")
	two := with("Authorization", "Bearer a")
	two.Header.Add("Cookie", sessionName+"=a")
	if a := both.shown(token); a == (credential{}) || a != both.shown(two) || a == both.shown(with("Authorization", "Bearer b")) {
		t.Error("a token is not told from another one")
	}
	if a := both.shown(cookie); a == (credential{}) || a == both.shown(with("Cookie", sessionName+"=b")) {
		t.Error("a session is not told from another one")
	}
	if keysOnly.shown(cookie) != (credential{}) || both.shown(with("Cookie", "other=a")) != (credential{}) {
		t.Error("something else passes for a session")
	}
}

// What is remembered of credentials is bounded, whoever comes with how many; what is in use stays, and what is no longer good goes.
func TestHints_AreFewAndFresh(t *testing.T) {
	var h hints
	used, revoked := credential{1}, credential{2}
	h.learn(used, "acme")
	h.learn(revoked, "acme")
	h.forget(revoked)
	if h.account(revoked) != strangers || h.account(used) != "acme" || h.account(credential{3}) != strangers {
		t.Error("it is remembered whose a revoked key was, or not whose a good one is")
	}
	for n := range 5 * mostHints {
		h.learn(credential{4, byte(n), byte(n >> 8), byte(n >> 16)}, "other")
		if n%mostHints == 0 && h.account(used) != "acme" {
			t.Fatalf("after %d others it is forgotten what is in use", n)
		}
	}
	if got := len(h.young) + len(h.old); got > 2*mostHints {
		t.Errorf("%d are remembered", got)
	}
	h.learn(credential{}, "acme")
	if h.account(credential{}) != strangers {
		t.Error("whoever shows nothing is taken for somebody")
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
