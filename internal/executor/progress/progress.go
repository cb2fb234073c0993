// Package progress hands the progress of runs to listeners in the same process.
package progress

import (
	"sync"
	"sync/atomic"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Progress is something that happens in a run right now, as a step or a token of a model. It is not
// stored.
type Progress struct {
	// Run is the id of the run.
	Run string
	provider.Progress
}

// progressQueueSize is how much progress a listener may be behind before it misses some.
const progressQueueSize = 32

// Hub hands the progress of the runs that this process executes to listeners in this process. A
// listener whose queue is full misses some.
type Hub struct {
	mu        sync.Mutex
	listeners map[progressKey]map[chan *Progress]struct{}
	dropped   atomic.Int64
}

// progressKey is what a listener follows: a state key and not a run, so that it can listen before
// the run begins.
type progressKey struct{ account, stateKey string }

// Watch returns the progress of the runs of a state key from now on, as far as this process
// executes them; of what other processes execute there are only events. A listener that is too slow
// misses some of it. The values are shared between listeners and must not be changed. stop has to
// be called.
func (l *Hub) Watch(account, stateKey string) (progress <-chan *Progress, stop func()) {
	key, c := progressKey{account, stateKey}, make(chan *Progress, progressQueueSize)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = make(map[progressKey]map[chan *Progress]struct{})
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

// Reporter is what a provider calls to report the progress of a run.
func (l *Hub) Reporter(run store.Run) func(provider.Progress) {
	key := progressKey{run.Account, run.StateKey}
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
				l.dropped.Add(1)
			}
		}
	}
}

// Dropped returns how many values listeners were too slow for.
func (l *Hub) Dropped() int64 { return l.dropped.Load() }
