package executor

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/suspend"
	"github.com/fermata-go/fermata/store"
)

// nudge wakes one idle worker.
func (e *Executor) wakeWorker() {
	select {
	case e.workReady <- struct{}{}:
	default:
	}
}

// idle waits until there may be work, but no longer than saturatingAdd.
func (e *Executor) waitForWork(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.workReady:
		if e.isStopping() {
			e.wakeWorker() // a nudge wakes one worker, and all have to stop
		}
	case <-e.ctx.Done():
	}
}

// rests waits, or until the executor is stopped. Nudges do not wake it: they are for workers.
func (e *Executor) sleep(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.stopping:
	}
}

// seek is a worker: it claims runs and executes them, one at a time. What only waits for somebody elsewhere it leaves to itself.
func (e *Executor) workLoop() {
	for !e.isStopping() {
		work, err := e.claimNext()
		e.logRepeated("claiming work", e.noteWriteError(err))
		if work == nil {
			e.waitForWork(e.config.Poll)
			continue
		}
		if !e.runDetached(work) {
			e.execute(work, preloaded{})
		}
	}
}

// take claims a run, if one has something to do.
func (e *Executor) claimNext() (*store.ClaimedRun, error) {
	if err := e.renewOverdue(e.ctx); err != nil {
		return nil, err
	}
	if waits, err := e.inGracePeriod(); waits || err != nil { //mutate:takeover-pause-after-outage
		return nil, err
	}
	work, err := e.store.Claim(e.ctx, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease})
	if err == nil {
		e.noteStoreReply()
	}
	return work, err
}

// maxDetached is how many executions that only wait for somebody elsewhere have no worker. Each renews its lease meanwhile. If there are more, they take
// workers.
const maxDetached = 512

// aside executes a claimed run without its worker, if all that it does is to wait. It returns false if the worker has to execute it.
func (e *Executor) runDetached(work *store.ClaimedRun) bool {
	p, err := e.providerOf(work.Run)
	if err != nil || !p.Capabilities().Remote {
		return false
	}
	if e.detachedNow.Add(1) <= maxDetached && e.goTracked(func() {
		defer e.detachedNow.Add(-1)
		e.execute(work, preloaded{})
	}) {
		return true
	}
	e.detachedNow.Add(-1)
	return false
}

// expirePerTx is how many questions expire in one transaction, if the store has one for all of them. Whoever decides meanwhile waits for it.
const expirePerTx = 10

// sweep lets questions expire. The store's clock has to agree with how much time has passed in this process: a clock that jumps must not let all questions
// expire.
func (e *Executor) expireLoop() {
	var guard clockGuard
	var last heartbeat
	for !e.isStopping() {
		expired, spared, err := e.expireDue(&guard, &last)
		e.logRepeated("expiring questions", e.noteWriteError(err))
		if expired > 0 {
			e.wakeWorker()
		}
		if err != nil || expired+spared < expirePerTx {
			e.sleep(e.config.Poll)
		}
	}
}

// expire lets questions expire, and spares those whose deadline fell into an outage.
func (e *Executor) expireDue(guard *clockGuard, last *heartbeat) (expired, spared int, err error) {
	now, err := e.store.Now(e.ctx)
	if err != nil {
		return 0, 0, err
	}
	e.noteStoreReply()
	if !guard.isTrusted(now) { //mutate:clock-jump-guard
		e.logRepeated("nothing expires for now", errClockJumped, "ahead", guard.jumpOffset.Round(time.Second))
		//mutate:clock-behind-guard
		if guard.isBehind() { // what is asked by it would be over when it is right: the heartbeat makes that leap an outage
			err = e.refreshHeartbeat(e.ctx, now, last)
		}
		return 0, 0, err
	}
	if err := e.refreshHeartbeat(e.ctx, now, last); err != nil {
		return 0, 0, err
	}
	if last.At.After(now) {
		now = last.At // another process wrote it after we asked for the time; an outage may have ended then
	}
	// If this process is suspended in the middle, its knowledge of outages is outdated, and it must not go on.
	ctx, cancel := context.WithTimeout(e.ctx, e.config.OutageAfter/2)
	defer cancel()
	otherwise := make(map[requestKey]bool)
	// Nothing that is due after now: the store's clock may have jumped since it was checked.
	over, err := e.store.Expire(ctx, now, expirePerTx, func(i store.Interrupt, request *store.Document) store.Writes {
		beside, other := e.expiryWrites(i, request, now, last.Outages)
		if beside.Postpones(i.ID) {
			spared++
		}
		otherwise[requestKey{i.Account, i.ID}] = other
		return beside
	})
	e.stats.noteExpired(over, otherwise)
	return len(over), spared, err
}

var errClockJumped = errors.New("the clock of the store has jumped")

// clockGuard says whether the store's clock can be trusted. It is compared with the time that has passed here, and at first with the wall clock. After
// a jump it is trusted again when it has jumped back, or when it has stayed for so long that operators will have noticed.
type clockGuard struct {
	startedAt        time.Time     // of the first look, here
	suspendedAtStart time.Duration // how long this machine had slept by then
	offset           time.Duration // how far the store is ahead of here, as far as it is believed
	jumpOffset       time.Duration // how far it is ahead after a jump
	jumpSeenAt       time.Time     // when that jump was seen; zero if there was none
}

const (
	maxClockSkew      = time.Minute // how far the two clocks may differ in the beginning, and drift apart between two looks: a machine that was moved stood still for seconds
	jumpAcceptedAfter = time.Hour   // how long a jump is not believed
)

func (g *clockGuard) isTrusted(store time.Time) bool {
	return g.check(store, time.Now(), suspend.Total())
}

func (g *clockGuard) check(store, here time.Time, slept time.Duration) bool {
	if g.startedAt.IsZero() {
		g.startedAt, g.suspendedAtStart = here, slept
	}
	offset := store.Sub(g.startedAt.Round(0)) - here.Sub(g.startedAt) - (slept - g.suspendedAtStart) // the wall clock as it was, and the time since, which is monotonic
	switch {
	case (offset - g.offset).Abs() <= maxClockSkew:
		g.offset, g.jumpSeenAt = offset, time.Time{}
	case g.jumpSeenAt.IsZero() || (offset-g.jumpOffset).Abs() > maxClockSkew:
		g.jumpOffset, g.jumpSeenAt = offset, here
	case here.Sub(g.jumpSeenAt) >= jumpAcceptedAfter:
		g.offset, g.jumpSeenAt = offset, time.Time{}
	}
	return g.jumpSeenAt.IsZero()
}

// behind reports whether a clock that is not trusted was set back.
func (g *clockGuard) isBehind() bool { return g.jumpOffset < g.offset }
