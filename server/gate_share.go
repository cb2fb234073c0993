package server

import "time"

// The places of a gate are shared by accounts, and all whom nobody knows are one account together.
//
//	who comes                                       gets in
//	a class without any place                       at once, even if all are taken: there are a few more for that
//	one that is alone                               while a place is free
//	one beside others                               while it has fewer places than are free, or less than a share that leaves one for somebody else
//	one beside others that crowds (see [gate])      while few work, and only those who crowd; or now and then, if nobody who crowds does
//
// A place that becomes free goes to the class with the fewest. Who crowds has only as many places as are needed to keep the machine busy: it gets as much done
// with them, and whoever comes beside it finds few before them at the store and at the processors, and nobody behind.
type class struct {
	account string
	taken   int
	waiting []*waiter // the oldest first
	given   time.Time // when one of them got in last
	seen    time.Time

	crowded bool
	began   time.Time // when it began to crowd last
	trials  int       // how many times it was tried out whether it still does, and it did
	since   time.Time // since when there was always somebody who waits
	done    int       // how many were done since then
	lacked  time.Time // when somebody came last for whom there was no place
}

const (
	// strangers is the account of those whom nobody knows yet.
	strangers = ""
	// lately is how long others count as being there after they came.
	lately = time.Minute
	// crowdedPause is how long those who crowd wait for somebody else who works, before one of them is let in all the same: longer than most work takes.
	crowdedPause = 20 * time.Millisecond
	// spareShare is which part of the places there is beyond them, for those who have none.
	spareShare = 8
)

// classOf is the class of an account that is there now.
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

// mayWait reports whether there is room for another waiter of a class. If there is none, one of the class that has most has to go, unless it is this one.
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

// letIn gives what is free to those who wait.
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

// next is the class whose turn it is; nil if nobody who waits may come in.
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

// crowds is for a class of which more come than get done.
func (g *gate) crowds(c *class, now time.Time) {
	if c.crowded {
		return
	}
	if now.Sub(c.began) >= 2*c.trial() { // the last trial was a success
		c.trials = 0
	}
	c.crowded, c.began = true, now
	g.crowding += c.taken
}

// calms is for a class that crowds no longer, or perhaps no longer.
func (g *gate) calms(c *class) {
	c.crowded = false
	g.crowding -= c.taken
}

// trial is how long the class crowds before it is tried out whether it still does.
func (c *class) trial() time.Duration { return trialAfter << c.trials }

// belongs says whose place it is: that was found out after it was taken. It is false if they may not have it; then it has to be left. Else whoever looks like
// somebody else each time would take them all.
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

// company knows who came lately, as far as it is needed to say whether somebody is alone.
type company struct {
	account string    // who came last
	at      time.Time // when that was
	before  time.Time // when somebody else came last
}

// see notes that somebody came. Whom nobody knows is no company: they may be anybody, and come for nothing.
func (c *company) see(account string, now time.Time) {
	if account == strangers {
		return
	}
	if account != c.account {
		c.account, c.before = account, c.at
	}
	c.at = now
}

// beside reports whether anybody else was there lately.
func (c *company) beside(account string, now time.Time) bool {
	other := c.at
	if account == c.account {
		other = c.before
	}
	return now.Sub(other) < lately
}

// noisy is how many accounts crowd.
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
