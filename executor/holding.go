package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// holding is the lease of a run that is executed here.
type holding struct {
	lease  store.Lease
	cancel context.CancelFunc // of the execution
	at     time.Time          // when it was renewed last
}

// holdings are all of this process.
type holdings struct {
	mu  sync.Mutex
	all map[*holding]bool
}

func (h *holdings) add(lease store.Lease, cancel context.CancelFunc) *holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = make(map[*holding]bool)
	}
	one := &holding{lease: lease, cancel: cancel, at: time.Now()}
	h.all[one] = true
	return one
}

func (h *holdings) remove(one *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, one)
}

func (h *holdings) renewed(one *holding, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one.at = at
}

// late returns those that were not renewed for so long.
func (h *holdings) late(now time.Time, long time.Duration) (late []*holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.all {
		if passed(one.at, now) > long { //mutate:lease-age-checked
			late = append(late, one)
		}
	}
	return late
}

// passed is how much time has passed at the store, as far as it can be known here: the monotonic clock stands still while the machine sleeps, and the other
// one may be set.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// renew renews the lease until stop is called, and cancels the execution if the run has another owner. It does not end with ctx: an execution that does
// not heed that is waited for, and until then nobody else may have the run.
func (e *Executor) renew(ctx context.Context, cancel context.CancelFunc, lease store.Lease) (stop func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	over, one := make(chan struct{}), e.held.add(lease, cancel)
	go func() {
		defer close(over)
		tick := time.NewTicker(e.config.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := e.extend(ctx, one); errors.Is(err, store.ErrFenced) {
				return
			}
		}
	}()
	return func() { end(); <-over; e.held.remove(one) }
}

// extend renews a lease once.
func (e *Executor) extend(ctx context.Context, one *holding) error {
	begin := time.Now()
	err := e.store.Renew(ctx, one.lease, e.config.Lease)
	switch {
	case err == nil:
		e.held.renewed(one, begin)
	case errors.Is(err, store.ErrFenced):
		e.held.remove(one)
		one.cancel() //mutate:fenced-execution-cancelled
	}
	return err
}

// keepOwn renews what should have been renewed long ago: this process stood still, or the store was away. Whoever is about to claim a run has to do so first, or
// would take over what is executed in this very process, so that all of it was done twice, and people were asked what had become of its effects.
func (e *Executor) keepOwn(ctx context.Context) error {
	for _, one := range e.held.late(time.Now(), e.config.Lease/3*2) {
		if err := e.extend(ctx, one); err != nil && !errors.Is(err, store.ErrFenced) {
			return err
		}
	}
	return nil
}
