package admission

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// arriveAndLeave is a request of another account: from then on no account is alone.
func (g *schedulerTest) arriveAndLeave(account string) {
	g.Helper()
	leave, ok := g.acquireFor(g.Context(), account)
	if !ok {
		g.Fatalf("%s gets no permit", account)
	}
	leave()
}

// acquireAll takes as many permits for an account as it gets without waiting.
func (g *schedulerTest) acquireAll(account string) (leave []func()) {
	g.Helper()
	for range 2 * g.capacity {
		c := g.accountOf(account, time.Now())
		if !g.mayAdmit(c, time.Now()) {
			break
		}
		l, _ := g.acquireFor(g.Context(), account)
		leave = append(leave, l)
	}
	return leave
}

// One account has all permits and is stalled. An account without any is admitted at once; but the
// capacity does not grow with every account.
func TestScheduler_AccountWithoutPermitUsesReserve(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.fill()
		for _, account := range []string{"b", "c"} {
			if got := <-g.arriveFor(g.Context(), account); !got.in || got.after != 0 {
				g.Errorf("%s: %+v", account, got)
			}
		}
		if executing, _ := g.Load(); executing != 16+16/reserveShare {
			g.Errorf("%d work", executing)
		}
		if got := <-g.arriveFor(g.Context(), "d"); got.in || got.after != normalWait {
			g.Errorf("one too many: %+v", got)
		}
		if got := <-g.arriveFor(g.Context(), "b"); got.in {
			g.Errorf("a second one of the same: %+v", got)
		}
	})
}

// An account that is alone has the whole capacity; among others it leaves them as many permits as
// it takes.
func TestScheduler_AccountIsLimitedToFreeShare(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveAndLeave("b")
		held := g.acquireAll("acme")
		if len(held) != 8 {
			g.Errorf("among others it takes %d of 16", len(held))
		}
		if more := g.acquireAll("b"); len(more) != 16/3 {
			g.Errorf("the other one takes %d of 16: a third is left for a third one", len(more))
		}
	})
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveFor(g.Context(), "b") // and stays
		if got := len(g.acquireAll("acme")); got != 8 {
			g.Errorf("with another account that has one permit it takes %d of 16", got)
		}
	})
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveAndLeave("b")
		time.Sleep(recentWindow)
		if got := len(g.acquireAll("acme")); got != 16 {
			g.Errorf("alone for a while it takes %d of 16", got)
		}
	})
}

// A released permit goes to the account with the fewest, whatever the order of arrival.
func TestScheduler_FreePermitGoesToAccountWithFewest(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		leave := g.fill()
		g.arriveFor(g.Context(), "b") // beyond the sixteen
		first := g.arrive(g.Context())
		second := g.arriveFor(g.Context(), "b")
		leave[0]()
		leave[1]()
		if got := <-second; !got.in || got.after != 0 {
			g.Errorf("the one with one permit: %+v", got)
		}
		if got := <-first; got.in {
			g.Errorf("the one with fourteen permits: %+v", got)
		}
	})
}

// Of two accounts with as many permits, the one that was served less recently comes first.
func TestScheduler_EqualAccountsAlternate(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		now := time.Now()
		a, b := g.accountOf("a", now), g.accountOf("b", now)
		g.queue, a.lastGrant = []*accountQueue{a, b}, now
		if got := g.nextAccount(now); got != b {
			g.Errorf("%s is served again", got.account)
		}
	})
}

// An overloaded account among others has only as many permits as keep the machine busy: otherwise
// the others would wait behind them at the store and the processors. While another account is
// active it gets one permit at intervals, so it still makes progress.
func TestScheduler_OverloadedAccountAmongOthersIsRestricted(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		leave := g.overload(g.fill())
		g.arriveAndLeave("b")
		for n, l := range leave {
			waits := g.arrive(g.Context())
			l()
			synctest.Wait()
			select {
			case got := <-waits:
				if executing := len(leave) - n - 1; got.in && executing >= g.overloadedCapacity {
					g.Errorf("it gets another permit with %d", executing)
				}
			default:
				if n == len(leave)-1 {
					g.Error("it gets none any more")
				}
				time.Sleep(overloadedWait)
			}
		}
		if got := g.accounts["acme"].inUse; got != g.overloadedCapacity {
			g.Errorf("it has %d permits, not %d", got, g.overloadedCapacity)
		}
	})
	withScheduler(t, 16, false, func(g *schedulerTest) {
		for _, l := range g.overload(g.fill()) {
			l()
		}
		g.arriveFor(g.Context(), "b") // and stays
		for n, wait := range []struct {
			after  time.Duration
			places int
		}{{0, 0}, {overloadedInterval - 1, 0}, {1, 1}, {0, 0}, {overloadedInterval, 1}} {
			time.Sleep(wait.after)
			got := g.acquireAll("acme")
			if len(got) != wait.places {
				g.Errorf("%d: it gets %d permits while another account works, not %d", n, len(got), wait.places)
			}
			for _, l := range got {
				l()
			}
		}
		time.Sleep(overloadedInterval)
		g.acquireAll("acme") // and stays
		time.Sleep(overloadedInterval)
		if got := len(g.acquireAll("acme")); got != 0 {
			g.Errorf("it gets %d permits while another account and one of its own requests work", got)
		}
	})
}

// An overloaded account that is alone has all permits.
func TestScheduler_OverloadedAccountAloneUsesAllPermits(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		if got := g.OverloadedAccounts(); got != 0 {
			g.Errorf("%d accounts are overloaded before there is any", got)
		}
		for _, l := range g.overload(g.fill()) {
			l()
		}
		if got := g.OverloadedAccounts(); got != 1 {
			g.Errorf("%d accounts are overloaded, not one", got)
		}
		if got := len(g.acquireAll("acme")); got != 16 {
			g.Errorf("it gets %d of 16", got)
		}
	})
}

// Several overloaded accounts share the restricted permits: a client does not get more by using two
// accounts.
func TestScheduler_OverloadedAccountsShareRestrictedPermits(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		now := time.Now()
		for _, account := range []string{"a", "b", "c"} {
			g.markOverloaded(g.accountOf(account, now), now)
			g.accountOf(account, now).lastShortage = now
		}
		if a, b, c := len(g.acquireAll("a")), len(g.acquireAll("b")), len(g.acquireAll("c")); a+b+c != g.overloadedCapacity {
			g.Errorf("they get %d, %d and %d permits; there are %d", a, b, c, g.overloadedCapacity)
		}
	})
}

// Of two overloaded accounts, the one that sends fewer requests also gets its share.
func TestScheduler_FrequentAccountDoesNotStarveOthers(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		calm, _ := g.FairScheduler.Acquire(g.Context(), "calm")
		defer calm.Release()
		g.mu.Lock()
		for _, account := range []string{"often", "seldom"} {
			c := g.accountOf(account, time.Now())
			c.lastShortage = time.Now()
			g.markOverloaded(c, time.Now())
		}
		g.mu.Unlock()
		end := time.Now().Add(4 * time.Second)
		served := map[string]*atomic.Int64{"often": new(atomic.Int64), "seldom": new(atomic.Int64)}
		done := make(chan struct{})
		come := func(account string, pause time.Duration) {
			for time.Now().Before(end) {
				go func() {
					if l, ok := g.FairScheduler.Acquire(g.Context(), account); ok {
						served[account].Add(1)
						time.Sleep(time.Millisecond)
						l.Release()
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
			g.Errorf("often got %d permits, seldom %d of 42", often, seldom)
		}
	})
}

// The overload of one account does not shorten the wait of another.
func TestScheduler_OverloadIsPerAccount(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		g.overload(g.fill())
		g.arriveFor(g.Context(), "b") // beyond the eight
		if got := <-g.arriveFor(g.Context(), "b"); got.in || got.after != normalWait {
			g.Errorf("%+v", got)
		}
	})
}

// The total queue is bounded. An account with fewer queued requests displaces the oldest request of
// the account with most.
func TestScheduler_ShortQueueDisplacesLongQueue(t *testing.T) {
	withScheduler(t, 8, false, func(g *schedulerTest) {
		g.fill()
		g.arriveFor(g.Context(), "b")
		var many []<-chan arrival
		for range 8 / normalQueue {
			many = append(many, g.arrive(g.Context()))
		}
		time.Sleep(time.Millisecond)
		few := g.arriveFor(g.Context(), "b")
		if got := <-many[0]; got.in || got.after != time.Millisecond {
			g.Errorf("the oldest of the longest queue: %+v", got)
		}
		if got := <-few; got.after != normalWait {
			g.Errorf("the request that displaced it: %+v", got)
		}
		if _, waiting := g.Load(); waiting != 0 || len(g.queue) != 0 {
			g.Errorf("%d wait, of %d accounts", waiting, len(g.queue))
		}
	})
}

// Anonymous requests are one account, whatever credentials they have, and do not count as another
// account: another account has all permits.
func TestScheduler_AnonymousIsOneAccountAndNotCountedAsOther(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveAndLeave("acme")
		if got := len(g.acquireAll(anonymousAccount)); got != 8 {
			g.Errorf("besides an account they take %d of 16", got)
		}
		if got := len(g.acquireAll("acme")); got != 8 {
			g.Errorf("of the rest it gets %d", got)
		}
	})
}

// A client that arrives anonymously each time, and belongs to one account each time, has no more
// permits than others.
func TestScheduler_AnonymousArrivalsGainNoExtraPermits(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveAndLeave("b")
		for range 20 {
			l, ok := g.FairScheduler.Acquire(g.Context(), anonymousAccount)
			if !ok {
				break
			}
			if !l.Reassign("noisy") {
				l.Release()
			}
		}
		if got := <-g.arriveFor(g.Context(), "b"); !got.in {
			g.Errorf("noisy has %d of 16, and b gets none", g.accounts["noisy"].inUse)
		}
	})
}

// After authentication a permit counts for the account, not for anonymous requests.
func TestScheduler_PermitIsReassignedAfterAuthentication(t *testing.T) {
	withScheduler(t, 2, false, func(g *schedulerTest) {
		l, ok := g.FairScheduler.Acquire(g.Context(), anonymousAccount)
		if !ok {
			g.Fatal("there is no permit")
		}
		l.Reassign("acme")
		if of := [2]int{g.accounts["acme"].inUse, g.accounts[anonymousAccount].inUse}; of != [2]int{1, 0} || g.inUse != 1 {
			g.Errorf("acme and anonymous have %v, and %d are in use", of, g.inUse)
		}
		l.Release()
		l.Reassign("b") // it was released
		if g.accounts["acme"].inUse != 0 || g.accounts["b"].inUse != 0 || g.inUse != 0 {
			g.Error("a permit is left")
		}
	})
}

// Restricted permits expire sooner: an account that calls slow models starts as many requests as
// before.
func TestScheduler_RestrictedPermitsExpireSooner(t *testing.T) {
	withScheduler(t, 16, true, func(g *schedulerTest) {
		for _, l := range g.overload(g.fill()) {
			l()
		}
		g.arriveAndLeave("b")
		g.acquireAll("acme")
		time.Sleep(restrictedPermit - overloadedWait/2)
		if got := <-g.arrive(g.Context()); !got.in || got.after != overloadedWait/2 {
			g.Errorf("%+v", got)
		}
	})
}

// Inactive accounts are forgotten.
func TestScheduler_ForgetsInactiveAccounts(t *testing.T) {
	withScheduler(t, 16, false, func(g *schedulerTest) {
		g.arriveAndLeave("b")
		stays, _ := g.acquireFor(g.Context(), "c")
		time.Sleep(recentWindow)
		g.arriveAndLeave("d")
		if _, kept := g.accounts["b"]; kept || len(g.accounts) != 2 {
			g.Errorf("%d are remembered", len(g.accounts))
		}
		stays()
	})
}

// The slots are full for the account with most, and not for one with none.
func TestSlotLimiter_OneAccountCannotTakeAllSlots(t *testing.T) {
	fill := func(h *slotLimiter, account string) (taken []*Slot) {
		for s, ok := h.Acquire(account); ok; s, ok = h.Acquire(account) {
			taken = append(taken, s)
		}
		return taken
	}
	alone := newSlotLimiter(20)
	if got := len(fill(alone, "acme")); got != 20 {
		t.Errorf("alone it takes %d of 20", got)
	}
	for account, want := range map[string]bool{"acme": false, "b": true} {
		if _, ok := alone.Acquire(account); ok != want {
			t.Errorf("all are in use; %s is admitted: %t", account, ok)
		}
	}
	shared := newSlotLimiter(20)
	b, _ := shared.Acquire("b")
	held := fill(shared, "acme")
	if more := fill(shared, "b"); len(held) != 16 || len(more) != 3 {
		t.Errorf("with another that has one it takes %d of 19; the other gets %d more", len(held), len(more))
	}
	for _, s := range slices.Concat(held, []*Slot{b}) {
		s.Release()
	}
	if shared.inUse != 3 || len(shared.perAccount) != 1 {
		t.Errorf("%d are in use, by %v", shared.inUse, shared.perAccount)
	}
}

func TestSlotLimiter_SlotIsReassignedAfterAuthentication(t *testing.T) {
	h := newSlotLimiter(2)
	s, _ := h.Acquire(anonymousAccount)
	s.Reassign("acme")
	if h.perAccount["acme"] != 1 || h.perAccount[anonymousAccount] != 0 || !h.recent.othersActive("b", time.Now()) {
		t.Errorf("%v", h.perAccount)
	}
	s.Release()
	if h.inUse != 0 || len(h.perAccount) != 0 {
		t.Errorf("%d are in use, by %v", h.inUse, h.perAccount)
	}
}

func TestSlotLimiter_AnonymousArrivalsGainNoExtraSlots(t *testing.T) {
	h := newSlotLimiter(16)
	s, _ := h.Acquire("b")
	s.Release()
	for range 20 {
		if s, ok := h.Acquire(anonymousAccount); ok && !s.Reassign("noisy") {
			s.Release()
		}
	}
	if _, ok := h.Acquire("b"); !ok {
		t.Errorf("noisy has %d of 16, and b gets none", h.perAccount["noisy"])
	}
}

// The cache is bounded for any number of credentials; used entries stay, and invalid ones are
// removed.
func TestCredentialCache_IsBoundedAndRecent(t *testing.T) {
	var h credentialCache
	used, revoked := CredentialHash{1}, CredentialHash{2}
	h.Remember(used, "acme")
	h.Remember(revoked, "acme")
	h.Forget(revoked)
	if h.Account(revoked) != anonymousAccount || h.Account(used) != "acme" || h.Account(CredentialHash{3}) != anonymousAccount {
		t.Error("a revoked key is remembered, or a valid one is not")
	}
	for n := range 5 * credentialCacheSize {
		h.Remember(CredentialHash{4, byte(n), byte(n >> 8), byte(n >> 16)}, "other")
		if n%credentialCacheSize == 0 && h.Account(used) != "acme" {
			t.Fatalf("after %d others an entry in use is forgotten", n)
		}
	}
	if got := len(h.current) + len(h.previous); got > 2*credentialCacheSize {
		t.Errorf("%d are remembered", got)
	}
	h.Remember(CredentialHash{}, "acme")
	if h.Account(CredentialHash{}) != anonymousAccount {
		t.Error("a request without a credential is not anonymous")
	}
}

// A credential that several accounts use is anonymous: a proxy may have one for all.
func TestCredentialCache_SharedCredentialIsAnonymous(t *testing.T) {
	var h credentialCache
	for _, account := range []string{"a", "a", "b", "b"} {
		h.Remember(CredentialHash{1}, account)
	}
	if got := h.Account(CredentialHash{1}); got != anonymousAccount {
		t.Errorf("it belongs to %s", got)
	}
}
