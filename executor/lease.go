package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/executor/internal/storeclock"
	"github.com/fermata-go/fermata/store"
)

// heldLease is the lease of a run that is executed here.
type heldLease struct {
	lease     store.Lease
	cancel    context.CancelFunc // of the execution
	renewedAt time.Time          // when it was renewed last
}

// heldLeases are all of this process.
type heldLeases struct {
	mu  sync.Mutex
	all map[*heldLease]bool
}

func (h *heldLeases) add(lease store.Lease, cancel context.CancelFunc) *heldLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = make(map[*heldLease]bool)
	}
	one := &heldLease{lease: lease, cancel: cancel, renewedAt: time.Now()}
	h.all[one] = true
	return one
}

func (h *heldLeases) remove(one *heldLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, one)
}

func (h *heldLeases) setRenewed(one *heldLease, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one.renewedAt = at
}

// late returns those that were not renewed for so long.
func (h *heldLeases) overdue(now time.Time, long time.Duration) (late []*heldLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.all {
		if storeclock.Elapsed(one.renewedAt, now) > long { //mutate:lease-age-checked
			late = append(late, one)
		}
	}
	return late
}

// renew renews the lease until stop is called, and cancels the execution if the run has another owner. It does not end with ctx: an execution that does
// not heed that is waited for, and until then nobody else may have the run.
func (e *Executor) keepLease(ctx context.Context, cancel context.CancelFunc, lease store.Lease) (stop func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	over, one := make(chan struct{}), e.leases.add(lease, cancel)
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
			if err := e.renewLease(ctx, one); errors.Is(err, store.ErrFenced) {
				return
			}
		}
	}()
	return func() { end(); <-over; e.leases.remove(one) }
}

// extend renews a lease once.
func (e *Executor) renewLease(ctx context.Context, one *heldLease) error {
	begin := time.Now()
	err := e.store.Renew(ctx, one.lease, e.config.Lease)
	switch {
	case err == nil:
		e.leases.setRenewed(one, begin)
	case errors.Is(err, store.ErrFenced):
		e.leases.remove(one)
		one.cancel() //mutate:fenced-execution-cancelled
	}
	return err
}

// keepOwn renews what should have been renewed long ago: this process stood still, or the store was away. Whoever is about to claim a run has to do so first, or
// would take over what is executed in this very process, so that all of it was done twice, and people were asked what had become of its effects.
func (e *Executor) renewOverdue(ctx context.Context) error {
	for _, one := range e.leases.overdue(time.Now(), e.config.Lease/3*2) {
		if err := e.renewLease(ctx, one); err != nil && !errors.Is(err, store.ErrFenced) {
			return err
		}
	}
	return nil
}
