package memory

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/broadcast"
	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Store = (*Store)(nil)

// Store implements [store.Store] in memory. Use NewStore to create one.
type Store struct {
	*Checkpoints
	clock  func() time.Time
	tables tables // guarded by the lock of Checkpoints
	hints  broadcast.Hub[store.Key]
}

// NewStore returns an empty store. A nil clock means time.Now.
func NewStore(clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{Checkpoints: New(), clock: clock, tables: newTables()}
}

// update runs one transaction. A failed one changes nothing, because tables checks before it
// writes.
func update[T any](ctx context.Context, r *Store, fn func(b *tables, now time.Time) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result, err := fn(&r.tables, r.clock())
	r.hints.Publish(r.tables.events.touched...)
	r.tables.events.touched = nil
	return result, err
}

// Create creates a run; see [store.Runs].
func (r *Store) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	if err := run.Writes.Validate(); err != nil {
		return store.Lease{}, err
	}
	return update(ctx, r, func(b *tables, now time.Time) (store.Lease, error) { return b.create(now, run) })
}

// Get returns the newest run of a state key; see [store.Runs].
func (r *Store) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.Run, error) {
		if found := b.newest(account, stateKey); found != nil {
			return found.Run, nil
		}
		return store.Run{}, store.ErrNotFound
	})
}

// List returns runs of an account; see [store.Runs].
func (r *Store) List(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Run, error) { return b.list(account, filter), nil })
}

// Claim takes ownership of a run that has work; see [store.Runs].
func (r *Store) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	return update(ctx, r, func(b *tables, now time.Time) (*store.ClaimedRun, error) { return b.claim(now, claim), nil })
}

// Renew extends a lease; see [store.Runs].
func (r *Store) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	return r.owned(ctx, lease, func(now time.Time, run *runRow) { run.LeaseUntil = now.Add(duration) })
}

// SetProviderRef stores the provider's reference of the run; see [store.Runs].
func (r *Store) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return r.owned(ctx, lease, func(_ time.Time, run *runRow) { run.ProviderRef = ref })
}

func (r *Store) owned(ctx context.Context, lease store.Lease, change func(time.Time, *runRow)) error {
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) {
		run, err := b.owned(lease)
		if err == nil {
			change(now, run)
		}
		return struct{}{}, err
	})
	return err
}

// EndExecution ends an execution; see [store.Runs].
func (r *Store) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	if err := end.Writes.Validate(); err != nil {
		return "", err
	}
	key := store.Key{Account: lease.Account, Run: lease.Run}
	if end.Checkpoint != nil && !validNames(key, end.Checkpoint.Delta) {
		return "", store.ErrInvalid
	}
	return update(ctx, r, func(b *tables, now time.Time) (store.Status, error) {
		if end.Checkpoint != nil && (end.Checkpoint.BaseVersion != r.version(key) || end.Checkpoint.Drop && end.Checkpoint.BaseVersion == 0) {
			return "", store.ErrFenced
		}
		status, err := b.endExecution(now, lease, end)
		if err == nil && end.Checkpoint != nil && end.Checkpoint.Drop {
			delete(r.runs, key)
		} else if err == nil && end.Checkpoint != nil {
			_, err = r.save(key, end.Checkpoint.BaseVersion, end.Checkpoint.Delta)
		}
		return status, err
	})
}

// Release ends an execution without a result; see [store.Runs].
func (r *Store) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) { return struct{}{}, b.release(now, lease, release) })
	return err
}

// Retry makes a parked run ready; see [store.Runs].
func (r *Store) Retry(ctx context.Context, account, run string, writes store.Writes) (store.Run, error) {
	if err := writes.Validate(); err != nil {
		return store.Run{}, err
	}
	return update(ctx, r, func(b *tables, now time.Time) (store.Run, error) { return b.retry(now, account, run, writes) })
}

// Decide records a decision; see [store.Runs].
func (r *Store) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	if err := decision.Writes.Validate(); err != nil {
		return store.DecisionReceipt{}, err
	}
	return update(ctx, r, func(b *tables, now time.Time) (store.DecisionReceipt, error) { return b.decide(now, decision) })
}

// Receipt returns the receipt of a resume id; see [store.Runs].
func (r *Store) Receipt(ctx context.Context, account, actor, resumeID string) (store.DecisionReceipt, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.DecisionReceipt, error) {
		if known := b.resumes[resumeKey{account, actor, resumeID}]; known != nil {
			return known.replay(), nil
		}
		return store.DecisionReceipt{}, store.ErrNotFound
	})
}

// Interrupts returns all interrupts of a run; see [store.Runs].
func (r *Store) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Interrupt, error) {
		var list []store.Interrupt
		if found := b.runs[store.Key{Account: account, Run: run}]; found != nil {
			for _, i := range found.interrupts {
				list = append(list, *i)
			}
		}
		return list, nil
	})
}

// BeginEffect records that an effect is about to be called; see [store.Runs].
func (r *Store) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := effect.Writes.Validate(); err != nil {
		return store.Effect{}, false, err
	}
	line, err = update(ctx, r, func(b *tables, now time.Time) (line store.Effect, err error) {
		line, begun, err = b.beginEffect(now, lease, effect)
		return line, err
	})
	return line, begun, err
}

// EndEffect records how an effect ended; see [store.Runs].
func (r *Store) EndEffect(ctx context.Context, end store.EffectEnd) error {
	if err := end.Writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) { return struct{}{}, b.endEffect(now, end) })
	return err
}

// Expire expires interrupts whose deadline has passed; see [store.Runs].
func (r *Store) Expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	return update(ctx, r, func(b *tables, now time.Time) ([]store.Interrupt, error) { return b.expire(now, until, limit, writes) })
}

// Cancel ends an active run; see [store.Runs].
func (r *Store) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	if err := writes.Validate(); err != nil {
		return store.Run{}, err
	}
	return update(ctx, r, func(b *tables, now time.Time) (store.Run, error) {
		return b.cancel(now, account, run, as, waits, writes)
	})
}

// Now returns the time of the clock.
func (r *Store) Now(context.Context) (time.Time, error) { return r.clock(), nil }

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (r *Store) Fenced(lease store.Lease) store.Checkpoints { return fenced{r, lease} }

type fenced struct {
	*Store
	lease store.Lease
}

func (f fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if !validNames(key, delta) {
		return 0, store.ErrInvalid
	}
	return update(ctx, f.Store, func(b *tables, _ time.Time) (int64, error) {
		if _, err := b.owned(f.lease); err != nil { //mutate:memory-save-fenced
			return 0, err
		}
		return f.save(key, base, delta)
	})
}
