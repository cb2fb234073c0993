package server

import "time"

// class is the share of one account in a gate. All requests without a known credential are one account together.
//
//	an account                              gets a place
//	without any place                       even if all are taken: there are a few spare places for that
//	alone (nobody else came lately)         if one is free
//	beside others                           if it has fewer places than are free, or fewer than an equal share that leaves room for one more account
//	beside others and crowded (see [gate])  if only crowded accounts have places, and few; or every crowdedPause, if no crowded account has one
//
// A place that is released goes to the waiting account with the fewest places. A crowded account only gets as many places as keep the machine busy. It
// gets as much done with them as with more, and requests of other accounts meet little competition at the store and the processors.
type class struct {
	account string
	taken   int
	waiting []*waiter // the oldest first
	given   time.Time // when a request got a place last
	seen    time.Time // when a request came last

	crowded bool
	began   time.Time // when it became crowded last
	trials  int       // how many trials have failed in a row
	since   time.Time // when its queue began
	done    int       // how many of its requests were done since then
	lacked  time.Time // when a request came last that found no place
}

const (
	// strangers is the account of requests whose credential is not known yet.
	strangers = ""
	// lately is how long an account counts as present after its last request.
	lately = time.Minute
	// crowdedPause is after how long a crowded account gets a place although others are at work: longer than most work takes.
	crowdedPause = 20 * time.Millisecond
	// spareShare says how many spare places there are, for accounts without one: an 8th of the others.
	spareShare = 8
)

// classOf is the class of an account from which a request came just now.
func (g *gate) classOf(account string, now time.Time) *class {
	if g.classes == nil {
		g.classes = make(map[string]*class)
	}
	if now.Sub(g.swept) >= lately {
		for name, c := range g.classes {
			if c.taken == 0 && len(c.waiting) == 0 && now.Sub(c.seen) >= lately {
				delete(g.classes, name)
			}
		}
		g.swept = now
	}
	c := g.classes[account]
	if c == nil {
		c = &class{account: account}
		g.classes[account] = c
	}
	c.seen = now
	g.seen.see(account, now)
	return c
}

// admits reports whether a class may take a place now.
func (g *gate) admits(c *class, now time.Time) bool {
	switch {
	case c.taken == 0 && !c.crowded:
		return g.taken < g.places+max(1, g.places/spareShare)
	case g.taken >= g.places:
		return false
	case !g.seen.beside(c.account, now):
		return true
	case c.crowded && g.crowding == g.taken:
		return g.crowding < g.narrow
	case c.crowded:
		return g.crowding == 0 && now.Sub(g.fed) >= crowdedPause
	}
	return c.taken < max(g.places-g.taken, g.places/(g.working+1))
}

// mayWait reports whether another request may wait. If too many do, the oldest of the account with the longest queue is refused in its place, unless that
// is this account.
func (g *gate) mayWait(c *class) bool {
	if g.waiting < max(1, g.places/calmQueue) {
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
	g.tell(most, 0, false)
	return true
}

// letIn gives free places to requests that wait.
func (g *gate) letIn(now time.Time) {
	for c := g.next(now); c != nil; c = g.next(now) {
		g.take(c, now)
		waiter := 0
		if c.crowded {
			waiter = len(c.waiting) - 1
		}
		g.tell(c, waiter, true)
	}
}

// next is the waiting account that gets the next place; nil if none may have it.
func (g *gate) next(now time.Time) (next *class) {
	for _, c := range g.queue {
		if !g.admits(c, now) {
			continue
		}
		if next == nil || c.taken < next.taken || c.taken == next.taken && c.given.Before(next.given) {
			next = c
		}
	}
	return next
}

func (g *gate) take(c *class, now time.Time) {
	g.count(c, 1)
	c.given = now
	if c.crowded {
		g.fed = now
	}
}

func (g *gate) give(c *class) { g.count(c, -1) }

func (g *gate) count(c *class, places int) {
	if c.taken == 0 {
		g.working++
	}
	c.taken += places
	g.taken += places
	if c.taken == 0 {
		g.working--
	}
	if c.crowded {
		g.crowding += places
	}
}

// crowds makes an account crowded.
func (g *gate) crowds(c *class, now time.Time) {
	if c.crowded {
		return
	}
	if now.Sub(c.began) >= 2*c.trial() { // the last trial did not fail
		c.trials = 0
	}
	c.crowded, c.began = true, now
	g.crowding += c.taken
}

// calms makes an account calm, for good or on trial.
func (g *gate) calms(c *class) {
	c.crowded = false
	g.crowding -= c.taken
}

// trial is how long the account is crowded before the next trial.
func (c *class) trial() time.Duration { return trialAfter << c.trials }

// belongs moves a place to the account that the request is really from, which is known only after it was authenticated. It returns false if that account may
// not have the place; then it has to be released. Otherwise a client with a new credential for each request could take all places.
func (l *lease) belongs(account string) bool {
	g := l.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	c := g.classOf(account, now)
	if c == l.class || l.over.Load() {
		return true
	}
	g.give(l.class)
	ok := g.admits(c, now)
	if ok {
		l.class = c
	} else {
		c.lacked = now
	}
	g.take(l.class, now)
	g.letIn(now)
	return ok
}

// company knows who came lately, as far as that is needed to say whether an account is alone.
type company struct {
	account string    // who came last
	at      time.Time // when that was
	before  time.Time // when somebody else came last
}

// see notes that a request came. Strangers do not count: anybody can send requests without a good credential.
func (c *company) see(account string, now time.Time) {
	if account == strangers {
		return
	}
	if account != c.account {
		c.account, c.before = account, c.at
	}
	c.at = now
}

// beside reports whether any other account came lately.
func (c *company) beside(account string, now time.Time) bool {
	other := c.at
	if account == c.account {
		other = c.before
	}
	return now.Sub(other) < lately
}

// noisy is how many accounts are crowded.
func (g *gate) noisy() (count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, c := range g.classes {
		if c.crowded && now.Sub(c.lacked) < calmAfter {
			count++
		}
	}
	return count
}
