package admission

import "time"

// accountQueue is the share of one account in a [FairScheduler]. All requests without a known
// credential count as one account.
//
//	an account                       gets a permit
//	without any permit               even if all are in use, from a small reserve
//	alone (no other account recent)  if one is free
//	among others                     if it has fewer permits than are free, or fewer than
//	                                 an equal share that leaves space for one more account
//	among others and overloaded      if only overloaded accounts have permits, and few;
//	                                 or every overloadedInterval, if no overloaded account has one
//
// A released permit goes to the waiting account with the fewest permits. An overloaded account gets
// only as many permits as keep the machine busy. It completes as much with them as with more, and
// requests of other accounts meet little competition for the store and the processors.
//
// A fixed number of permits for each account among others would be simpler. With it the median of a
// quiet account was twice as high in the benchmark http/sqlite/noisy.
type accountQueue struct {
	account     string
	inUse       int
	waiting     []*queuedRequest // the oldest first
	lastGrant   time.Time        // when a request last got a permit
	lastArrival time.Time        // when the last request arrived

	overloaded      bool
	overloadedSince time.Time // when it last became overloaded
	queuedSince     time.Time // when its queue began
	completed       int       // requests completed since then
	lastShortage    time.Time // when a request last found no permit
}

const (
	// anonymousAccount is the account of requests whose credential is not known yet.
	anonymousAccount = ""
	// recentWindow is how long an account counts as active after its last request.
	recentWindow = time.Minute
	// overloadedInterval is how often an overloaded account gets a permit while others are active.
	// It is longer than most requests take.
	overloadedInterval = 20 * time.Millisecond
	// reserveShare sets the size of the reserve for accounts without a permit: an eighth of the
	// capacity.
	reserveShare = 8
)

// accountOf returns the queue of an account and notes the arrival of a request.
func (g *FairScheduler) accountOf(account string, now time.Time) *accountQueue {
	if g.accounts == nil {
		g.accounts = make(map[string]*accountQueue)
	}
	if now.Sub(g.lastSweep) >= recentWindow {
		for name, c := range g.accounts {
			if c.inUse == 0 && len(c.waiting) == 0 && now.Sub(c.lastArrival) >= recentWindow {
				delete(g.accounts, name)
			}
		}
		g.lastSweep = now
	}
	c := g.accounts[account]
	if c == nil {
		c = &accountQueue{account: account}
		g.accounts[account] = c
	}
	c.lastArrival = now
	g.recent.note(account, now)
	return c
}

// mayAdmit reports whether an account may take a permit now.
func (g *FairScheduler) mayAdmit(c *accountQueue, now time.Time) bool {
	switch {
	case c.inUse == 0 && !c.overloaded:
		return g.inUse < g.capacity+max(1, g.capacity/reserveShare)
	case g.inUse >= g.capacity:
		return false
	case !g.recent.othersActive(c.account, now):
		return true
	case c.overloaded && g.inUseOverloaded == g.inUse:
		return g.inUseOverloaded < g.overloadedCapacity
	case c.overloaded:
		return g.inUseOverloaded == 0 && now.Sub(g.lastOverloadedGrant) >= overloadedInterval
	}
	return c.inUse < max(g.capacity-g.inUse, g.capacity/(g.activeAccounts+1))
}

// mayQueue reports whether another request may wait. If too many wait, the oldest request of the
// account with the longest queue is rejected instead, unless that is this account.
func (g *FairScheduler) mayQueue(c *accountQueue) bool {
	if g.waiting < max(1, g.capacity/normalQueue) {
		return true
	}
	longest := c
	for _, q := range g.queue {
		if len(q.waiting) > len(longest.waiting) {
			longest = q
		}
	}
	if longest == c {
		return false
	}
	g.dequeue(longest, 0, false)
	return true
}

// admitQueued gives free permits to queued requests.
func (g *FairScheduler) admitQueued(now time.Time) {
	for c := g.nextAccount(now); c != nil; c = g.nextAccount(now) {
		g.take(c, now)
		waiter := 0
		if c.overloaded {
			waiter = len(c.waiting) - 1
		}
		g.dequeue(c, waiter, true)
	}
}

// nextAccount returns the waiting account that gets the next permit; nil if none may have it.
func (g *FairScheduler) nextAccount(now time.Time) (next *accountQueue) {
	for _, c := range g.queue {
		if !g.mayAdmit(c, now) {
			continue
		}
		if next == nil || c.inUse < next.inUse || c.inUse == next.inUse && c.lastGrant.Before(next.lastGrant) {
			next = c
		}
	}
	return next
}

func (g *FairScheduler) take(c *accountQueue, now time.Time) {
	g.adjust(c, 1)
	c.lastGrant = now
	if c.overloaded {
		g.lastOverloadedGrant = now
	}
}

func (g *FairScheduler) giveBack(c *accountQueue) { g.adjust(c, -1) }

func (g *FairScheduler) adjust(c *accountQueue, delta int) {
	if c.inUse == 0 {
		g.activeAccounts++
	}
	c.inUse += delta
	g.inUse += delta
	if c.inUse == 0 {
		g.activeAccounts--
	}
	if c.overloaded {
		g.inUseOverloaded += delta
	}
}

// markOverloaded makes an account overloaded.
func (g *FairScheduler) markOverloaded(c *accountQueue, now time.Time) {
	if c.overloaded {
		return
	}
	c.overloaded, c.overloadedSince = true, now
	g.inUseOverloaded += c.inUse
}

// markNormal makes an account normal, permanently or on trial.
func (g *FairScheduler) markNormal(c *accountQueue) {
	c.overloaded = false
	g.inUseOverloaded -= c.inUse
}

// Reassign moves a permit to the authenticated account of the request. It returns false if that
// account may not have the permit; then the caller must release it. Otherwise a client with a new
// credential for each request could take all permits.
func (l *Permit) Reassign(account string) bool {
	g := l.scheduler
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	c := g.accountOf(account, now)
	if c == l.account || l.released.Load() {
		return true
	}
	g.giveBack(l.account)
	ok := g.mayAdmit(c, now)
	if ok {
		l.account = c
	} else {
		c.lastShortage = now
	}
	g.take(l.account, now)
	g.admitQueued(now)
	return ok
}

// recentAccounts tracks recent arrivals, as far as needed to know whether an account is alone.
type recentAccounts struct {
	account        string    // the account that arrived last
	lastSeen       time.Time // when it arrived
	othersLastSeen time.Time // when any other account last arrived
}

// note records the arrival of a request. Anonymous requests do not count, because any client can
// send them.
func (c *recentAccounts) note(account string, now time.Time) {
	if account == anonymousAccount {
		return
	}
	if account != c.account {
		c.account, c.othersLastSeen = account, c.lastSeen
	}
	c.lastSeen = now
}

// othersActive reports whether another account arrived recently.
func (c *recentAccounts) othersActive(account string, now time.Time) bool {
	other := c.lastSeen
	if account == c.account {
		other = c.othersLastSeen
	}
	return now.Sub(other) < recentWindow
}

// OverloadedAccounts returns the number of overloaded accounts.
func (g *FairScheduler) OverloadedAccounts() (count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, c := range g.accounts {
		if c.overloaded && now.Sub(c.lastShortage) < normalAfter {
			count++
		}
	}
	return count
}
