package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Progress is something that happens in a run right now, as a step or a token of a model. It is not stored.
type Progress struct {
	// Run is the id of the run.
	Run string
	provider.Progress
}

// progressBacklog is how much progress a listener may be behind before it misses some.
const progressBacklog = 32

// live hands the progress of the runs that this process executes to listeners in this process. A listener whose queue is full misses some.
type live struct {
	mu        sync.Mutex
	listeners map[listened]map[chan *Progress]struct{}
	missed    atomic.Int64
}

// listened is what somebody listens to: a state key and not a run, so that one can listen before the run begins.
type listened struct{ account, stateKey string }

// Listen returns the progress of the runs of a state key from now on, as far as this process executes them; of what other processes execute there are
// only [Executor.Events]. A listener that is too slow misses some of it. The values are shared between listeners and must not be changed. stop has to be
// called.
func (e *Executor) Listen(account, stateKey string) (progress <-chan *Progress, stop func()) {
	l, key, c := &e.live, listened{account, stateKey}, make(chan *Progress, progressBacklog)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = make(map[listened]map[chan *Progress]struct{})
	}
	if l.listeners[key] == nil {
		l.listeners[key] = make(map[chan *Progress]struct{})
	}
	l.listeners[key][c] = struct{}{}
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.listeners[key], c); len(l.listeners[key]) == 0 {
			delete(l.listeners, key)
		}
	}
}

// reporter is what a provider calls to report the progress of a run.
func (l *live) reporter(run store.Run) func(provider.Progress) {
	key := listened{run.Account, run.StateKey}
	return func(p provider.Progress) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.listeners[key]) == 0 {
			return
		}
		told := &Progress{run.ID, p}
		for c := range l.listeners[key] {
			select {
			case c <- told:
			default:
				l.missed.Add(1)
			}
		}
	}
}

// Events returns the events of a run after a number. It returns [ErrUnknownRun] if the run is not there, perhaps because it was erased meanwhile.
func (e *Executor) Events(ctx context.Context, account, run string, after int64) ([]store.Event, error) {
	// The event before is read as well: each run has a first event, so if there is none at all the run is gone.
	events, err := e.store.Events(ctx, account, run, max(0, after-1), 0)
	if err == nil && len(events) == 0 && after > 1 { // or the run has no event of that number
		events, err = e.store.Events(ctx, account, run, 0, 1)
	}
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("%w: %q", ErrUnknownRun, run)
	}
	return slices.DeleteFunc(events, func(event store.Event) bool { return event.Number <= after }), err
}

// Changes returns hints that there may be new events of a run, here or in another process. A hint may be lost: look now and then without one.
// stop has to be called.
func (e *Executor) Changes(account, run string) (changed <-chan struct{}, stop func()) {
	return e.changes.subscribe(e, store.Key{Account: account, Run: run})
}

// Done is closed when the executor has stopped.
func (e *Executor) Done() <-chan struct{} { return e.life.Done() }

// Deadlines says until when the questions of a run can be answered, by their id. A question without a deadline is not in it.
func (e *Executor) Deadlines(ctx context.Context, account, run string) (map[string]time.Time, error) {
	asked, err := e.store.Interrupts(ctx, account, run)
	deadlines := make(map[string]time.Time)
	for _, i := range asked {
		if !i.Deadline.IsZero() {
			deadlines[i.ID] = i.Deadline
		}
	}
	return deadlines, err
}
