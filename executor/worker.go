package executor

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/store"
)

// nudge wakes one idle worker.
func (e *Executor) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// idle waits until there may be work, or for as long as it should.
func (e *Executor) idle(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.wake:
		if e.closing() {
			e.nudge() // one nudge wakes one, and the end concerns all
		}
	case <-e.life.Done():
	}
}

// rests waits for a while, or until the executor is stopped. It is for those who look at the clock: a nudge is for those who execute.
func (e *Executor) rests(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.over:
	}
}

// seek looks for runs to execute.
func (e *Executor) seek() {
	for !e.closing() {
		work, err := e.store.Claim(e.life, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease})
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("claiming work", "err", err)
		}
		if work == nil {
			e.idle(e.config.Poll)
			continue
		}
		e.execute(work, atHand{})
	}
}

// expireAtOnce is how many questions expire in one transaction, if the store has one for all of them. Whoever decides meanwhile waits for it.
const expireAtOnce = 10

// sweep lets questions expire. A clock that jumps must not empty an inbox: what the store's clock says has to agree with how much time has
// passed here.
func (e *Executor) sweep() {
	var guard clockGuard
	var last beat
	for !e.closing() {
		expired, spared, err := e.expire(&guard, &last)
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("expiring questions", "err", err)
		}
		if expired > 0 {
			e.nudge()
		}
		if expired+spared < expireAtOnce {
			e.rests(e.config.Poll)
		}
	}
}

// expire lets questions expire, and spares those whose time was over while nobody was there.
func (e *Executor) expire(guard *clockGuard, last *beat) (expired, spared int, err error) {
	now, err := e.store.Now(e.life)
	if err != nil {
		return 0, 0, err
	}
	if !guard.trusts(now, time.Now()) {
		e.config.Log.Error("the clock of the store has jumped: nothing expires for now", "ahead", guard.jumped)
		return 0, 0, nil
	}
	if err := e.pulse(e.life, now, last); err != nil {
		return 0, 0, err
	}
	if last.At.After(now) {
		now = last.At // somebody looked at the clock a moment after us, and found an outage that ended then
	}
	// A process that sleeps in the middle of this must not go on with what it knew before.
	ctx, cancel := context.WithTimeout(e.life, e.config.Outage/2)
	defer cancel()
	// Nothing by a clock that has jumped since it was looked at.
	otherwise := make(map[question]bool)
	over, err := e.store.Expire(ctx, now, expireAtOnce, func(i store.Interrupt, request *store.Paper) store.Beside {
		beside, other := e.lapse(i, request, now, last.Outages)
		if beside.PutsOff(i.ID) {
			spared++
		}
		otherwise[question{i.Account, i.ID}] = other
		return beside
	})
	e.stats.lapsed(over, otherwise)
	return len(over), spared, err
}

// clockGuard says whether the store's clock can be believed when it says that time is up. It goes by the monotonic clock of this process,
// and in the beginning by its wall clock. After a jump it believes the store again when the clock is back, or when it has been where it is for so
// long that somebody will have noticed.
type clockGuard struct {
	begun  time.Time     // of the first look, here
	offset time.Duration // how far the store is ahead of here, as far as it is believed
	jumped time.Duration // how far it is ahead after a jump
	since  time.Time     // when that jump was seen; zero if there was none
}

const (
	maxSkew  = time.Minute     // how far the two clocks may differ in the beginning
	maxDrift = 5 * time.Second // how far they may drift apart between two looks
	patience = time.Hour       // how long a jump is not believed
)

func (g *clockGuard) trusts(store, here time.Time) bool {
	tolerance := maxDrift
	if g.begun.IsZero() {
		g.begun, tolerance = here, maxSkew
	}
	offset := store.Sub(g.begun.Round(0)) - here.Sub(g.begun) // the wall clock as it was, and monotonic time since
	switch {
	case (offset - g.offset).Abs() <= tolerance:
		g.offset, g.since = offset, time.Time{}
	case g.since.IsZero() || (offset-g.jumped).Abs() > maxDrift:
		g.jumped, g.since = offset, here
	case here.Sub(g.since) >= patience:
		g.offset, g.since = offset, time.Time{}
	}
	return g.since.IsZero()
}
