package executor

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/awake"
	"github.com/fermata-go/fermata/store"
)

// nudge wakes one idle worker.
func (e *Executor) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// idle waits until there may be work, but no longer than atMost.
func (e *Executor) idle(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.wake:
		if e.closing() {
			e.nudge() // a nudge wakes one worker, and all have to stop
		}
	case <-e.life.Done():
	}
}

// rests waits, or until the executor is stopped. Nudges do not wake it: they are for workers.
func (e *Executor) rests(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.over:
	}
}

// seek is a worker: it claims runs and executes them, one at a time. What only waits for somebody elsewhere it leaves to itself.
func (e *Executor) seek() {
	for !e.closing() {
		work, err := e.take()
		e.complain("claiming work", e.noteRoom(err))
		if work == nil {
			e.idle(e.config.Poll)
			continue
		}
		if !e.aside(work) {
			e.execute(work, atHand{})
		}
	}
}

// take claims a run, if one has something to do.
func (e *Executor) take() (*store.Work, error) {
	if err := e.keepOwn(e.life); err != nil {
		return nil, err
	}
	if waits, err := e.givesTime(); waits || err != nil { //mutate:takeover-pause-after-outage
		return nil, err
	}
	work, err := e.store.Claim(e.life, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease})
	if err == nil {
		e.heard()
	}
	return work, err
}

// callsAtOnce is how many executions that only wait for somebody elsewhere have no worker. Each renews its lease meanwhile. If there are more, they take
// workers.
const callsAtOnce = 512

// aside executes a claimed run without its worker, if all that it does is to wait. It returns false if the worker has to execute it.
func (e *Executor) aside(work *store.Work) bool {
	p, err := e.providerOf(work.Run)
	if err != nil || !p.Capabilities().Calls {
		return false
	}
	if e.calling.Add(1) <= callsAtOnce && e.begins(func() {
		defer e.calling.Add(-1)
		e.execute(work, atHand{})
	}) {
		return true
	}
	e.calling.Add(-1)
	return false
}

// expireAtOnce is how many questions expire in one transaction, if the store has one for all of them. Whoever decides meanwhile waits for it.
const expireAtOnce = 10

// sweep lets questions expire. The store's clock has to agree with how much time has passed in this process: a clock that jumps must not let all questions
// expire.
func (e *Executor) sweep() {
	var guard clockGuard
	var last beat
	for !e.closing() {
		expired, spared, err := e.expire(&guard, &last)
		e.complain("expiring questions", e.noteRoom(err))
		if expired > 0 {
			e.nudge()
		}
		if err != nil || expired+spared < expireAtOnce {
			e.rests(e.config.Poll)
		}
	}
}

// expire lets questions expire, and spares those whose deadline fell into an outage.
func (e *Executor) expire(guard *clockGuard, last *beat) (expired, spared int, err error) {
	now, err := e.store.Now(e.life)
	if err != nil {
		return 0, 0, err
	}
	e.heard()
	if !guard.trusts(now) { //mutate:clock-jump-guard
		e.complain("nothing expires for now", errJumped, "ahead", guard.jumped.Round(time.Second))
		//mutate:clock-behind-guard
		if guard.behind() { // what is asked by it would be over when it is right: the heartbeat makes that leap an outage
			err = e.pulse(e.life, now, last)
		}
		return 0, 0, err
	}
	if err := e.pulse(e.life, now, last); err != nil {
		return 0, 0, err
	}
	if last.At.After(now) {
		now = last.At // another process wrote it after we asked for the time; an outage may have ended then
	}
	// If this process is suspended in the middle, its knowledge of outages is outdated, and it must not go on.
	ctx, cancel := context.WithTimeout(e.life, e.config.Outage/2)
	defer cancel()
	otherwise := make(map[question]bool)
	// Nothing that is due after now: the store's clock may have jumped since it was checked.
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

var errJumped = errors.New("the clock of the store has jumped")

// clockGuard says whether the store's clock can be trusted. It is compared with the time that has passed here, and at first with the wall clock. After
// a jump it is trusted again when it has jumped back, or when it has stayed for so long that operators will have noticed.
type clockGuard struct {
	begun  time.Time     // of the first look, here
	slept  time.Duration // how long this machine had slept by then
	offset time.Duration // how far the store is ahead of here, as far as it is believed
	jumped time.Duration // how far it is ahead after a jump
	since  time.Time     // when that jump was seen; zero if there was none
}

const (
	maxSkew  = time.Minute // how far the two clocks may differ in the beginning, and drift apart between two looks: a machine that was moved stood still for seconds
	patience = time.Hour   // how long a jump is not believed
)

func (g *clockGuard) trusts(store time.Time) bool { return g.agrees(store, time.Now(), awake.Slept()) }

func (g *clockGuard) agrees(store, here time.Time, slept time.Duration) bool {
	if g.begun.IsZero() {
		g.begun, g.slept = here, slept
	}
	offset := store.Sub(g.begun.Round(0)) - here.Sub(g.begun) - (slept - g.slept) // the wall clock as it was, and the time since, which is monotonic
	switch {
	case (offset - g.offset).Abs() <= maxSkew:
		g.offset, g.since = offset, time.Time{}
	case g.since.IsZero() || (offset-g.jumped).Abs() > maxSkew:
		g.jumped, g.since = offset, here
	case here.Sub(g.since) >= patience:
		g.offset, g.since = offset, time.Time{}
	}
	return g.since.IsZero()
}

// behind reports whether a clock that is not trusted was set back.
func (g *clockGuard) behind() bool { return g.jumped < g.offset }
