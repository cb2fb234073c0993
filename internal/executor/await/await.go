package await

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// Target is a run whose outcome a caller waits for.
type Target struct {
	Account, Run, StateKey string
	// Actor and resumeID name the resume whose outcome is wanted; without them it is that of the
	// start.
	Actor, ResumeID string
	// Wait is how long to wait; 0 is Config.Wait, and a negative one does not wait.
	Wait time.Duration
	// Execution is the run's execution, if it is in this process.
	Execution *Execution
}

// Await waits until an execution of the run has ended, here or in another process: after a
// resume until an execution has applied it, after a start until any has ended.
func (w *Waiter) Await(ctx context.Context, t Target) (fermata.Outcome, error) {
	deadline := time.NewTimer(max(cmp.Or(t.Wait, w.config.Wait), 0))
	defer deadline.Stop()
	pending := &errs.PendingError{Run: t.Run, StateKey: t.StateKey}
	if t.Execution != nil {
		select {
		case <-t.Execution.Done:
			if t.Execution.Outcome != nil {
				return t.Execution.Outcome, nil
			}
		case <-deadline.C:
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	changed, stop := w.watchers.Subscribe(w.background.Ctx, w.store, store.Key{Account: t.Account, Run: t.Run})
	defer stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, w.config.Poll) {
		if outcome, err := w.pollOutcome(ctx, t); outcome != nil || err != nil {
			return outcome, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-deadline.C:
			return nil, pending
		case <-w.background.Ctx.Done(): // this process ends; another one may tell
			return nil, pending
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// pollOutcome is the outcome of the execution that applied a resume or, for a start, that of the
// run; nil as long as there is none.
func (w *Waiter) pollOutcome(ctx context.Context, t Target) (fermata.Outcome, error) {
	if t.ResumeID == "" {
		return w.finalOutcome(ctx, t)
	}
	if applied, err := w.appliedOutcome(ctx, t); applied != nil || err != nil {
		return applied, err
	}
	over, err := w.finalOutcome(ctx, t)
	if over == nil || err != nil { //mutate:await-outcome-of-resume
		return nil, err
	}
	// Between the two looks the resume may have been applied, and the run gone on to its end, with
	// which others were not answered. Now it changes no more.
	if applied, err := w.appliedOutcome(ctx, t); applied != nil || err != nil {
		return applied, err
	}
	return over, nil
}

// appliedOutcome is the outcome of the execution that applied a resume; nil as long as none has.
func (w *Waiter) appliedOutcome(ctx context.Context, t Target) (fermata.Outcome, error) {
	receipt, err := w.store.Receipt(ctx, t.Account, t.Actor, t.ResumeID)
	switch {
	case docs.IsNotFound(err): // it was there, and is gone with its run
		return deletedOutcome(t.Run), nil
	case err != nil || receipt.Outcome == nil:
		return nil, err
	}
	return w.decodeOutcome(t.Account, t.Run, receipt.Outcome)
}

// finalOutcome returns the outcome of a run that has ended, or nil. For a resume, a waiting run has
// not ended.
func (w *Waiter) finalOutcome(ctx context.Context, t Target) (fermata.Outcome, error) {
	run, err := w.docs.FindRun(ctx, t.Account, t.StateKey)
	switch {
	case errors.Is(err, errs.ErrRunNotFound), err == nil && run.ID != t.Run:
		return w.RunOutcome(ctx, t.Account, t.Run)
	case err != nil:
		return nil, err
	}
	return w.CurrentOutcome(run, t.ResumeID == "")
}

// RunOutcome is what became of a run whose state key another run has by now, or none: it need not
// have been superseded.
func (w *Waiter) RunOutcome(ctx context.Context, account, run string) (fermata.Outcome, error) {
	history, err := w.store.History(ctx, account, run)
	switch {
	case docs.IsNotFound(err):
		return deletedOutcome(run), nil
	case err != nil:
		return nil, err
	}
	return w.CurrentOutcome(history.Run, true)
}

// deletedOutcome is the outcome of a run that is not in the store any more: it was kept long
// enough, or erased.
func deletedOutcome(run string) fermata.Failed {
	return fermata.Failed{Run: run, Code: "deleted", Message: "the run was deleted"}
}

// CurrentOutcome is the outcome of a run; nil as long as there is none. That the run waits is an
// outcome for a start; after a resume it may only mean that the resume was not applied yet.
func (w *Waiter) CurrentOutcome(run store.Run, waitingCounts bool) (fermata.Outcome, error) {
	switch run.Status {
	case store.StatusCancelled:
		return FailedOutcome(run, "cancelled", "the run was cancelled"), nil
	case store.StatusSuperseded:
		return FailedOutcome(run, "superseded", "another run took its state key"), nil
	case store.StatusCompleted, store.StatusFailed:
		return w.decodeOutcome(run.Account, run.ID, run.Outcome)
	case store.StatusWaiting:
		if waitingCounts {
			return w.decodeOutcome(run.Account, run.ID, run.Outcome)
		}
	case store.StatusRunning, store.StatusReady, store.StatusParked:
	}
	return nil, nil
}

func (w *Waiter) decodeOutcome(account, run string, sealed []byte) (fermata.Outcome, error) {
	data, err := w.store.Outcome(account, run, sealed)
	if err != nil {
		return nil, err
	}
	return fermata.UnmarshalOutcome(data)
}

// WatchHub distributes hints of the store that a run has changed. Hints may be lost, so subscribers
// also poll.
type WatchHub struct {
	begin   sync.Once
	reading sync.WaitGroup
	mu      sync.Mutex
	waiting map[store.Key]map[chan struct{}]bool
}

// Subscribe returns a channel that gets a value when the run may have changed. stop has to be
// called.
func (h *WatchHub) Subscribe(ctx context.Context, s store.Events, key store.Key) (changed <-chan struct{}, stop func()) {
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

// notify wakes the subscribers of a run and of its account; the zero key means any run. A
// subscriber of an account has a key without a run.
func (h *WatchHub) notify(key store.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key != (store.Key{}) {
		wakeAll(h.waiting[key])
		wakeAll(h.waiting[store.Key{Account: key.Account}])
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

// Wait returns when no hint is read any more.
func (h *WatchHub) Wait() {
	h.begin.Do(func() {}) // so that it cannot begin after this
	h.reading.Wait()
}
