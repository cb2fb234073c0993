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

// target is the run whose outcome somebody waits for, and the execution that may bring it, if that is in this process.
type target struct {
	run, stateKey string
	flight        *flight
}

// await waits for a run to come to rest, here or elsewhere: for the end of the execution that applied a resume, or of any.
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
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// outcome is what a run came to, or what the execution came to that applied a resume; nil as long as it is under way.
func (e *Executor) outcome(ctx context.Context, request Request, t target) (fermata.Outcome, error) {
	if request.ResumeID != "" {
		receipt, err := e.store.Resumed(ctx, request.Account, request.Actor, request.ResumeID)
		if err != nil {
			return nil, err
		}
		if receipt.Outcome != nil {
			return e.openOutcome(request.Account, t.run, receipt.Outcome)
		}
	}
	run, err := e.find(ctx, request.Account, t.stateKey)
	switch {
	case errors.Is(err, ErrUnknownRun):
		return Forgotten(t.run), nil
	case err != nil:
		return nil, err
	case run.ID != t.run:
		return Superseded(t.run), nil
	}
	return e.stands(run, request.ResumeID == "")
}

// Superseded is the outcome of a run whose state key another run has by now.
func Superseded(run string) fermata.Failed {
	return fermata.Failed{Run: run, Code: "superseded", Message: "another run took its state key"}
}

// Forgotten is the outcome of a run that is not in the store any more: it was kept long enough, or erased.
func Forgotten(run string) fermata.Failed {
	return fermata.Failed{Run: run, Code: "forgotten", Message: "the run was deleted"}
}

// stands is what a run came to. A run that waits has come to something for whoever started it; whoever resumed it waits for more.
func (e *Executor) stands(run store.Run, waitingCounts bool) (fermata.Outcome, error) {
	switch run.Status {
	case store.Cancelled:
		return failed(run, "cancelled", "somebody ended the run"), nil
	case store.Superseded:
		return Superseded(run.ID), nil
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

// hub hands the hints of the store to those who wait for one run. They look by themselves, too: a hint only saves them waiting.
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

// tell wakes who waits for a run, or everybody if it may be any.
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
		default: // it knows
		}
	}
}

// wait returns when no hint is read any more.
func (h *hub) wait() {
	h.begin.Do(func() {}) // nobody begins now
	h.reading.Wait()
}
