package server

import "time"

// accountQueue is the share of one account in a gate. All requests without a known credential are one account together.
//
//	an account                              gets a place
//	without any place                       even if all are taken: there are a few spare places for that
//	alone (nobody else came lately)         if one is free
//	beside others                           if it has fewer places than are free, or fewer than an equal share that leaves room for one more account
//	beside others and crowded (see [fairScheduler])  if only crowded accounts have places, and few; or every overloadedInterval, if no crowded account has one
//
// A place that is released goes to the waiting account with the fewest places. A crowded account only gets as many places as keep the machine busy. It
// gets as much done with them as with more, and requests of other accounts meet little competition at the store and the processors.
type accountQueue struct {
	account     string
	inUse       int
	waiting     []*queuedRequest // the oldest first
	lastGrant   time.Time        // when a request got a place last
	lastArrival time.Time        // when a request came last

	overloaded      bool
	overloadedSince time.Time // when it became crowded last
	trials          int       // how many trials have failed in a row
	queuedSince     time.Time // when its queue began
	completed       int       // how many of its requests were done since then
	lastShortage    time.Time // when a request came last that found no place
}

const (
	// anonymousAccount is the account of requests whose credential is not known yet.
	anonymousAccount = ""
	// recentWindow is how long an account counts as present after its last request.
	recentWindow = time.Minute
	// overloadedInterval is after how long a crowded account gets a place although others are at work: longer than most work takes.
	overloadedInterval = 20 * time.Millisecond
	// reserveShare says how many spare places there are, for accounts without one: an 8th of the others.
	reserveShare = 8
)

// classOf is the class of an account from which a request came just now.
func (g *fairScheduler) accountOf(account string, now time.Time) *accountQueue {
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

// admits reports whether a class may take a place now.
func (g *fairScheduler) mayAdmit(c *accountQueue, now time.Time) bool {
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

// mayWait reports whether another request may wait. If too many do, the oldest of the account with the longest queue is refused in its place, unless that
// is this account.
func (g *fairScheduler) mayQueue(c *accountQueue) bool {
	if g.waiting < max(1, g.capacity/normalQueue) {
		return true
	}
	most := c
	for _, q := range g.queue {
		if len(q.waiting) > len(most.waiting) {
			most = q
		}
	}
	if most == c {
		return false
	}
	g.dequeue(most, 0, false)
	return true
}

// letIn gives free places to requests that wait.
func (g *fairScheduler) admitQueued(now time.Time) {
	for c := g.nextAccount(now); c != nil; c = g.nextAccount(now) {
		g.take(c, now)
		waiter := 0
		if c.overloaded {
			waiter = len(c.waiting) - 1
		}
		g.dequeue(c, waiter, true)
	}
}

// next is the waiting account that gets the next place; nil if none may have it.
func (g *fairScheduler) nextAccount(now time.Time) (next *accountQueue) {
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

func (g *fairScheduler) take(c *accountQueue, now time.Time) {
	g.adjust(c, 1)
	c.lastGrant = now
	if c.overloaded {
		g.lastOverloadedGrant = now
	}
}

func (g *fairScheduler) giveBack(c *accountQueue) { g.adjust(c, -1) }

func (g *fairScheduler) adjust(c *accountQueue, places int) {
	if c.inUse == 0 {
		g.activeAccounts++
	}
	c.inUse += places
	g.inUse += places
	if c.inUse == 0 {
		g.activeAccounts--
	}
	if c.overloaded {
		g.inUseOverloaded += places
	}
}

// crowds makes an account crowded.
func (g *fairScheduler) markOverloaded(c *accountQueue, now time.Time) {
	if c.overloaded {
		return
	}
	if now.Sub(c.overloadedSince) >= 2*c.trialInterval() { // the last trial did not fail
		c.trials = 0
	}
	c.overloaded, c.overloadedSince = true, now
	g.inUseOverloaded += c.inUse
}

// calms makes an account calm, for good or on trial.
func (g *fairScheduler) markNormal(c *accountQueue) {
	c.overloaded = false
	g.inUseOverloaded -= c.inUse
}

// trial is how long the account is crowded before the next trial.
func (c *accountQueue) trialInterval() time.Duration { return trialAfter << c.trials }

// belongs moves a place to the account that the request is really from, which is known only after it was authenticated. It returns false if that account may
// not have the place; then it has to be released. Otherwise a client with a new credential for each request could take all places.
func (l *permit) reassign(account string) bool {
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

// recentAccounts knows who came lately, as far as that is needed to say whether an account is alone.
type recentAccounts struct {
	account        string    // principalOf came last
	lastSeen       time.Time // when that was
	othersLastSeen time.Time // when somebody else came last
}

// see notes that a request came. Strangers do not count: anybody can send requests without a good credential.
func (c *recentAccounts) note(account string, now time.Time) {
	if account == anonymousAccount {
		return
	}
	if account != c.account {
		c.account, c.othersLastSeen = account, c.lastSeen
	}
	c.lastSeen = now
}

// beside reports whether any other account came lately.
func (c *recentAccounts) othersActive(account string, now time.Time) bool {
	other := c.lastSeen
	if account == c.account {
		other = c.othersLastSeen
	}
	return now.Sub(other) < recentWindow
}

// noisy is how many accounts are crowded.
func (g *fairScheduler) overloadedAccounts() (count int) {
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
