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

// target is the run whose outcome a caller waits for. flight is its execution, if that is in this process.
type target struct {
	run, stateKey string
	flight        *flight
}

// Await waits for what becomes of a request that [Executor.Run] took before, and begins nothing: a start that is sent again would be another run, if its state key
// was taken and is free again. run is the one that was begun or resumed, whatever has its state key by now.
func (e *Executor) Await(ctx context.Context, request Request, run string) (fermata.Outcome, error) {
	return e.await(ctx, request, target{run: run, stateKey: request.StateKey})
}

// await waits until a run comes to rest, here or in another process: after a resume until an execution has applied it, after a start until any has ended.
func (e *Executor) await(ctx context.Context, request Request, t target) (fermata.Outcome, error) {
	deadline := time.NewTimer(max(cmp.Or(request.Wait, e.config.Wait), 0))
	defer deadline.Stop()
	pending := &PendingError{Run: t.run, StateKey: t.stateKey}
	if t.flight != nil {
		select {
		case <-t.flight.done:
			if t.flight.outcome != nil {
				return t.flight.outcome, nil
			}
		case <-deadline.C:
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	changed, stop := e.changes.subscribe(e, store.Key{Account: request.Account, Run: t.run})
	defer stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.config.Poll) {
		if outcome, err := e.outcome(ctx, request, t); outcome != nil || err != nil {
			return outcome, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-deadline.C:
			return nil, pending
		case <-e.life.Done(): // this process ends; another one may tell
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// outcome is the outcome of the execution that applied a resume or, for a start, that of the run; nil as long as there is none.
func (e *Executor) outcome(ctx context.Context, request Request, t target) (fermata.Outcome, error) {
	if request.ResumeID == "" {
		return e.became(ctx, request, t)
	}
	if applied, err := e.applied(ctx, request, t); applied != nil || err != nil {
		return applied, err
	}
	over, err := e.became(ctx, request, t)
	if over == nil || err != nil { //mutate:await-outcome-of-resume
		return nil, err
	}
	// Between the two looks the resume may have been applied, and the run gone on to its end, with which others were not answered. Now it changes no more.
	if applied, err := e.applied(ctx, request, t); applied != nil || err != nil {
		return applied, err
	}
	return over, nil
}

// applied is the outcome of the execution that applied a resume; nil as long as none has.
func (e *Executor) applied(ctx context.Context, request Request, t target) (fermata.Outcome, error) {
	receipt, err := e.store.Resumed(ctx, request.Account, request.Actor, request.ResumeID)
	switch {
	case isNotFound(err): // it was there, and is gone with its run
		return forgotten(t.run), nil
	case err != nil || receipt.Outcome == nil:
		return nil, err
	}
	return e.openOutcome(request.Account, t.run, receipt.Outcome)
}

// became is what the run of a request came to; nil while it goes on. For a resume, a run that waits goes on.
func (e *Executor) became(ctx context.Context, request Request, t target) (fermata.Outcome, error) {
	run, err := e.find(ctx, request.Account, t.stateKey)
	switch {
	case errors.Is(err, ErrUnknownRun), err == nil && run.ID != t.run:
		return e.Past(ctx, request.Account, t.run)
	case err != nil:
		return nil, err
	}
	return e.stands(run, request.ResumeID == "")
}

// Past is what became of a run whose state key another run has by now, or none: it need not have been superseded.
func (e *Executor) Past(ctx context.Context, account, run string) (fermata.Outcome, error) {
	history, err := e.store.History(ctx, account, run)
	switch {
	case isNotFound(err):
		return forgotten(run), nil
	case err != nil:
		return nil, err
	}
	return e.stands(history.Run, true)
}

// forgotten is the outcome of a run that is not in the store any more: it was kept long enough, or erased.
func forgotten(run string) fermata.Failed {
	return fermata.Failed{Run: run, Code: "forgotten", Message: "the run was deleted"}
}

// stands is the outcome of a run; nil as long as there is none. That the run waits is an outcome for a start; after a resume it may only mean that the
// resume was not applied yet.
func (e *Executor) stands(run store.Run, waitingCounts bool) (fermata.Outcome, error) {
	switch run.Status {
	case store.Cancelled:
		return failed(run, "cancelled", "somebody ended the run"), nil
	case store.Superseded:
		return failed(run, "superseded", "another run took its state key"), nil
	case store.Completed, store.Failed:
		return e.openOutcome(run.Account, run.ID, run.Outcome)
	case store.Waiting:
		if waitingCounts {
			return e.openOutcome(run.Account, run.ID, run.Outcome)
		}
	case store.Running, store.Ready, store.Parked:
	}
	return nil, nil
}

func (e *Executor) openOutcome(account, run string, sealed []byte) (fermata.Outcome, error) {
	data, err := e.open(account, store.SealedOutcome, run, sealed)
	if err != nil {
		return nil, err
	}
	return fermata.UnmarshalOutcome(data)
}

// hub hands the store's hints that a run has changed to those who wait for the run. Hints may be lost, so those who wait also poll; a hint lets them
// look earlier.
type hub struct {
	begin   sync.Once
	reading sync.WaitGroup
	mu      sync.Mutex
	waiting map[store.Key]map[chan struct{}]bool
}

func (h *hub) subscribe(e *Executor, key store.Key) (changed <-chan struct{}, stop func()) {
	h.begin.Do(func() {
		hints := e.store.Watch(e.life)
		h.reading.Go(func() {
			for key := range hints {
				h.tell(key)
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
func (h *hub) tell(key store.Key) {
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
func (h *hub) wait() {
	h.begin.Do(func() {}) // so that it cannot begin after this
	h.reading.Wait()
}
