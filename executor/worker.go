package executor

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/executor/internal/stats"
	"github.com/fermata-go/fermata/executor/internal/storeclock"
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
		if e.background.IsStopping() {
			e.wakeWorker() // a nudge wakes one worker, and all have to stop
		}
	case <-e.background.Ctx.Done():
	}
}

// seek is a worker: it claims runs and executes them, one at a time. What only waits for somebody elsewhere it leaves to itself.
func (e *Executor) workLoop() {
	for !e.background.IsStopping() {
		work, err := e.claimNext()
		e.background.LogRepeated("claiming work", e.background.NoteWriteError(err))
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
	if err := e.renewOverdue(e.background.Ctx); err != nil {
		return nil, err
	}
	if waits, err := e.contact.InGracePeriod(e.background.Ctx); waits || err != nil { //mutate:takeover-pause-after-outage
		return nil, err
	}
	work, err := e.store.Claim(e.background.Ctx, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease})
	if err == nil {
		e.contact.NoteReply()
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
	if e.detachedNow.Add(1) <= maxDetached && e.background.Go(func() {
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
	var guard storeclock.Guard
	var last heartbeat
	for !e.background.IsStopping() {
		expired, spared, err := e.expireDue(&guard, &last)
		e.background.LogRepeated("expiring questions", e.background.NoteWriteError(err))
		if expired > 0 {
			e.wakeWorker()
		}
		if err != nil || expired+spared < expirePerTx {
			e.background.Sleep(e.config.Poll)
		}
	}
}

// expire lets questions expire, and spares those whose deadline fell into an outage.
func (e *Executor) expireDue(guard *storeclock.Guard, last *heartbeat) (expired, spared int, err error) {
	now, err := e.store.Now(e.background.Ctx)
	if err != nil {
		return 0, 0, err
	}
	e.contact.NoteReply()
	if !guard.IsTrusted(now) { //mutate:clock-jump-guard
		e.background.LogRepeated("nothing expires for now", errClockJumped, "ahead", guard.Jump.Round(time.Second))
		//mutate:clock-behind-guard
		if guard.IsBehind() { // what is asked by it would be over when it is right: the heartbeat makes that leap an outage
			err = e.refreshHeartbeat(e.background.Ctx, now, last)
		}
		return 0, 0, err
	}
	if err := e.refreshHeartbeat(e.background.Ctx, now, last); err != nil {
		return 0, 0, err
	}
	if last.At.After(now) {
		now = last.At // another process wrote it after we asked for the time; an outage may have ended then
	}
	// If this process is suspended in the middle, its knowledge of outages is outdated, and it must not go on.
	ctx, cancel := context.WithTimeout(e.background.Ctx, e.config.OutageAfter/2)
	defer cancel()
	otherwise := make(map[stats.RequestKey]bool)
	// Nothing that is due after now: the store's clock may have jumped since it was checked.
	over, err := e.store.Expire(ctx, now, expirePerTx, func(i store.Interrupt, request *store.Document) store.Writes {
		beside, other := e.expiryWrites(i, request, now, last.Outages)
		if beside.Postpones(i.ID) {
			spared++
		}
		otherwise[stats.RequestKey{Account: i.Account, ID: i.ID}] = other
		return beside
	})
	e.stats.NoteExpired(over, otherwise)
	return len(over), spared, err
}

var errClockJumped = errors.New("the clock of the store has jumped")
