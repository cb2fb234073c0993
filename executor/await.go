package executor

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/store"
)

// awaitTarget is the run whose outcome a caller waits for. flight is its execution, if that is in this process.
type awaitTarget struct {
	run, stateKey string
	execution     *execution
}

// Await waits for what becomes of a request that [Executor.Run] took before, and begins nothing: a start that is sent again would be another run, if its state key
// was taken and is free again. run is the one that was begun or resumed, whatever has its state key by now.
func (e *Executor) Await(ctx context.Context, request RunRequest, run string) (fermata.Outcome, error) {
	return e.awaitOutcome(ctx, request, awaitTarget{run: run, stateKey: request.StateKey})
}

// await waits until a run comes to rest, here or in another process: after a resume until an execution has applied it, after a start until any has ended.
func (e *Executor) awaitOutcome(ctx context.Context, request RunRequest, t awaitTarget) (fermata.Outcome, error) {
	deadline := time.NewTimer(max(cmp.Or(request.Wait, e.config.Wait), 0))
	defer deadline.Stop()
	pending := &PendingError{Run: t.run, StateKey: t.stateKey}
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
	changed, stop := e.watchers.subscribe(e, store.Key{Account: request.Account, Run: t.run})
	defer stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.config.Poll) {
		if outcome, err := e.pollOutcome(ctx, request, t); outcome != nil || err != nil {
			return outcome, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-deadline.C:
			return nil, pending
		case <-e.ctx.Done(): // this process ends; another one may tell
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// outcome is the outcome of the execution that applied a resume or, for a start, that of the run; nil as long as there is none.
func (e *Executor) pollOutcome(ctx context.Context, request RunRequest, t awaitTarget) (fermata.Outcome, error) {
	if request.ResumeID == "" {
		return e.finalOutcome(ctx, request, t)
	}
	if applied, err := e.appliedOutcome(ctx, request, t); applied != nil || err != nil {
		return applied, err
	}
	over, err := e.finalOutcome(ctx, request, t)
	if over == nil || err != nil { //mutate:await-outcome-of-resume
		return nil, err
	}
	// Between the two looks the resume may have been applied, and the run gone on to its end, with which others were not answered. Now it changes no more.
	if applied, err := e.appliedOutcome(ctx, request, t); applied != nil || err != nil {
		return applied, err
	}
	return over, nil
}

// applied is the outcome of the execution that applied a resume; nil as long as none has.
func (e *Executor) appliedOutcome(ctx context.Context, request RunRequest, t awaitTarget) (fermata.Outcome, error) {
	receipt, err := e.store.Receipt(ctx, request.Account, request.Actor, request.ResumeID)
	switch {
	case isNotFound(err): // it was there, and is gone with its run
		return deletedOutcome(t.run), nil
	case err != nil || receipt.Outcome == nil:
		return nil, err
	}
	return e.decodeOutcome(request.Account, t.run, receipt.Outcome)
}

// became is what the run of a request came to; nil while it goes on. For a resume, a run that waits goes on.
func (e *Executor) finalOutcome(ctx context.Context, request RunRequest, t awaitTarget) (fermata.Outcome, error) {
	run, err := e.findRun(ctx, request.Account, t.stateKey)
	switch {
	case errors.Is(err, ErrRunNotFound), err == nil && run.ID != t.run:
		return e.RunOutcome(ctx, request.Account, t.run)
	case err != nil:
		return nil, err
	}
	return e.currentOutcome(run, request.ResumeID == "")
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
	data, err := e.decrypt(account, store.SealedOutcome, run, sealed)
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

func (h *watchHub) subscribe(e *Executor, key store.Key) (changed <-chan struct{}, stop func()) {
	h.begin.Do(func() {
		hints := e.store.Watch(e.ctx)
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
