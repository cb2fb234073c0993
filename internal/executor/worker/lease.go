package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/store"
)

// heldLease is the lease of a run that is executed here.
type heldLease struct {
	lease     store.Lease
	cancel    context.CancelFunc // of the execution
	renewedAt time.Time          // when it was renewed last
}

// heldLeases are the leases of this process.
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

// overdue returns the leases that were not renewed for so long.
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

// keepLease renews the lease until stop is called, and cancels the execution if the run has another
// owner. It does not end with ctx: an execution that ignores its cancellation is waited for, and
// until then no other process may have the run.
func (w *Worker) keepLease(ctx context.Context, cancel context.CancelFunc, lease store.Lease) (stop func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	over, one := make(chan struct{}), w.leases.add(lease, cancel)
	go func() {
		defer close(over)
		tick := time.NewTicker(w.config.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := w.renewLease(ctx, one); errors.Is(err, store.ErrFenced) {
				return
			}
		}
	}()
	return func() { end(); <-over; w.leases.remove(one) }
}

// renewLease renews a lease once.
func (w *Worker) renewLease(ctx context.Context, one *heldLease) error {
	begin := time.Now()
	err := w.store.Renew(ctx, one.lease, w.config.Lease)
	switch {
	case err == nil:
		w.leases.setRenewed(one, begin)
	case errors.Is(err, store.ErrFenced):
		w.leases.remove(one)
		one.cancel() //mutate:fenced-execution-cancelled
	}
	return err
}

// RenewOverdue renews overdue leases: this process was suspended, or the store was unavailable. It
// must be called before a claim. Otherwise this process could take over a run that it executes
// itself, so that everything would be done twice.
func (w *Worker) RenewOverdue(ctx context.Context) error {
	for _, one := range w.leases.overdue(time.Now(), w.config.Lease/3*2) {
		if err := w.renewLease(ctx, one); err != nil && !errors.Is(err, store.ErrFenced) {
			return err
		}
	}
	return nil
}
