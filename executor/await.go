package executor

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/store"
)

// awaitTarget is a run whose outcome a caller waits for.
type awaitTarget struct {
	account, run, stateKey string
	// actor and resumeID name the resume whose outcome is wanted; without them it is that of the start.
	actor, resumeID string
	// wait is how long to wait; 0 is Config.Wait, and a negative one does not wait.
	wait time.Duration
	// execution is the run's execution, if it is in this process.
	execution *execution
}

// Await waits for the outcome of a request that [Executor.Run] took before, and begins nothing. A start that is sent again would begin another run if its state key
// was taken and is free again. run is the id of the run that was started or resumed, whichever run has its state key now.
func (e *Executor) Await(ctx context.Context, request RunRequest, run string) (fermata.Outcome, error) {
	return e.awaitOutcome(ctx, awaitTarget{account: request.Account, run: run, stateKey: request.StateKey, actor: request.Actor, resumeID: request.ResumeID, wait: request.Wait})
}

// await waits until a run comes to rest, here or in another process: after a resume until an execution has applied it, after a start until any has ended.
func (e *Executor) awaitOutcome(ctx context.Context, t awaitTarget) (fermata.Outcome, error) {
	deadline := time.NewTimer(max(cmp.Or(t.wait, e.config.Wait), 0))
	defer deadline.Stop()
	pending := &errs.PendingError{Run: t.run, StateKey: t.stateKey}
	if t.execution != nil {
		select {
		case <-t.execution.done:
			if t.execution.outcome != nil {
				return t.execution.outcome, nil
			}
		case <-deadline.C:
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	changed, stop := e.watchers.subscribe(e.background.Ctx, e.store, store.Key{Account: t.account, Run: t.run})
	defer stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.config.Poll) {
		if outcome, err := e.pollOutcome(ctx, t); outcome != nil || err != nil {
			return outcome, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-deadline.C:
			return nil, pending
		case <-e.background.Ctx.Done(): // this process ends; another one may tell
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// outcome is the outcome of the execution that applied a resume or, for a start, that of the run; nil as long as there is none.
func (e *Executor) pollOutcome(ctx context.Context, t awaitTarget) (fermata.Outcome, error) {
	if t.resumeID == "" {
		return e.finalOutcome(ctx, t)
	}
	if applied, err := e.appliedOutcome(ctx, t); applied != nil || err != nil {
		return applied, err
	}
	over, err := e.finalOutcome(ctx, t)
	if over == nil || err != nil { //mutate:await-outcome-of-resume
		return nil, err
	}
	// Between the two looks the resume may have been applied, and the run gone on to its end, with which others were not answered. Now it changes no more.
	if applied, err := e.appliedOutcome(ctx, t); applied != nil || err != nil {
		return applied, err
	}
	return over, nil
}

// applied is the outcome of the execution that applied a resume; nil as long as none has.
func (e *Executor) appliedOutcome(ctx context.Context, t awaitTarget) (fermata.Outcome, error) {
	receipt, err := e.store.Receipt(ctx, t.account, t.actor, t.resumeID)
	switch {
	case isNotFound(err): // it was there, and is gone with its run
		return deletedOutcome(t.run), nil
	case err != nil || receipt.Outcome == nil:
		return nil, err
	}
	return e.decodeOutcome(t.account, t.run, receipt.Outcome)
}

// became is what the run of a request came to; nil while it goes on. For a resume, a run that waits goes on.
func (e *Executor) finalOutcome(ctx context.Context, t awaitTarget) (fermata.Outcome, error) {
	run, err := e.findRun(ctx, t.account, t.stateKey)
	switch {
	case errors.Is(err, errs.ErrRunNotFound), err == nil && run.ID != t.run:
		return e.RunOutcome(ctx, t.account, t.run)
	case err != nil:
		return nil, err
	}
	return e.currentOutcome(run, t.resumeID == "")
}

// Past is what became of a run whose state key another run has by now, or none: it need not have been superseded.
func (e *Executor) RunOutcome(ctx context.Context, account, run string) (fermata.Outcome, error) {
	history, err := e.store.History(ctx, account, run)
	switch {
	case isNotFound(err):
		return deletedOutcome(run), nil
	case err != nil:
		return nil, err
	}
	return e.currentOutcome(history.Run, true)
}

// deletedOutcome is the outcome of a run that is not in the store any more: it was kept long enough, or erased.
func deletedOutcome(run string) fermata.Failed {
	return fermata.Failed{Run: run, Code: "forgotten", Message: "the run was deleted"}
}

// stands is the outcome of a run; nil as long as there is none. That the run waits is an outcome for a start; after a resume it may only mean that the
// resume was not applied yet.
func (e *Executor) currentOutcome(run store.Run, waitingCounts bool) (fermata.Outcome, error) {
	switch run.Status {
	case store.StatusCancelled:
		return failedOutcome(run, "cancelled", "somebody ended the run"), nil
	case store.StatusSuperseded:
		return failedOutcome(run, "superseded", "another run took its state key"), nil
	case store.StatusCompleted, store.StatusFailed:
		return e.decodeOutcome(run.Account, run.ID, run.Outcome)
	case store.StatusWaiting:
		if waitingCounts {
			return e.decodeOutcome(run.Account, run.ID, run.Outcome)
		}
	case store.StatusRunning, store.StatusReady, store.StatusParked:
	}
	return nil, nil
}

func (e *Executor) decodeOutcome(account, run string, sealed []byte) (fermata.Outcome, error) {
	data, err := e.store.Outcome(account, run, sealed)
	if err != nil {
		return nil, err
	}
	return fermata.UnmarshalOutcome(data)
}

// watchHub hands the store's hints that a run has changed to those who wait for the run. Hints may be lost, so those who wait also poll; a hint lets them
// look earlier.
type watchHub struct {
	begin   sync.Once
	reading sync.WaitGroup
	mu      sync.Mutex
	waiting map[store.Key]map[chan struct{}]bool
}

func (h *watchHub) subscribe(ctx context.Context, s store.Events, key store.Key) (changed <-chan struct{}, stop func()) {
	h.begin.Do(func() {
		hints := s.Watch(ctx)
		h.reading.Go(func() {
			for key := range hints {
				h.notify(key)
			}
		})
	})
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = make(map[store.Key]map[chan struct{}]bool)
	}
	if h.waiting[key] == nil {
		h.waiting[key] = make(map[chan struct{}]bool)
	}
	h.waiting[key][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[key], c)
		if len(h.waiting[key]) == 0 {
			delete(h.waiting, key)
		}
	}
}

// tell wakes those who wait for a run; the zero key stands for any run.
func (h *watchHub) notify(key store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key != (store.Key{}) {
		wakeAll(h.waiting[key])
		return
	}
	for _, waiting := range h.waiting {
		wakeAll(waiting)
	}
}

func wakeAll(waiting map[chan struct{}]bool) {
	for c := range waiting {
		select {
		case c <- struct{}{}:
		default: // it was woken already
		}
	}
}

// wait returns when no hint is read any more.
func (h *watchHub) wait() {
	h.begin.Do(func() {}) // so that it cannot begin after this
	h.reading.Wait()
}
