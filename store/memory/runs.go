package memory

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/hint"
	"github.com/fermata-go/fermata/store"
)

var _ store.Store = (*Runs)(nil)

// Runs keeps the runs of an executor in memory, with their checkpoints and everything else. Make one with NewRuns.
type Runs struct {
	*Store
	clock func() time.Time
	book  book // guarded by the lock of Store
	hints hint.Board[store.Key]
}

// NewRuns returns an empty store of runs, which is all of [store.Store]. A nil clock is time.Now.
func NewRuns(clock func() time.Time) *Runs {
	if clock == nil {
		clock = time.Now
	}
	return &Runs{Store: New(), clock: clock, book: newBook()}
}

// do runs one transaction. Nothing of a failed one is left: the book checks before it writes.
func do[T any](ctx context.Context, r *Runs, fn func(b *book, now time.Time) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result, err := fn(&r.book, r.clock())
	r.hints.Tell(r.book.log.touched...)
	r.book.log.touched = nil
	return result, err
}

// Create begins a run; see [store.Runs].
func (r *Runs) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	if err := run.Beside.Check(); err != nil {
		return store.Lease{}, err
	}
	return do(ctx, r, func(b *book, now time.Time) (store.Lease, error) { return b.create(now, run) })
}

// Get returns the newest run of a state key; see [store.Runs].
func (r *Runs) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.Run, error) {
		if found := b.newest(account, stateKey); found != nil {
			return found.Run, nil
		}
		return store.Run{}, store.ErrNotFound
	})
}

// List returns runs of an account; see [store.Runs].
func (r *Runs) List(ctx context.Context, account string, filter store.Filter) ([]store.Run, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Run, error) { return b.list(account, filter), nil })
}

// Claim takes a run that has something to do; see [store.Runs].
func (r *Runs) Claim(ctx context.Context, claim store.Claim) (*store.Work, error) {
	return do(ctx, r, func(b *book, now time.Time) (*store.Work, error) { return b.claim(now, claim), nil })
}

// Renew extends a lease; see [store.Runs].
func (r *Runs) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	return r.owned(ctx, lease, func(now time.Time, run *bookedRun) { run.Until = now.Add(duration) })
}

// SetRef notes how the provider calls the run; see [store.Runs].
func (r *Runs) SetRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return r.owned(ctx, lease, func(_ time.Time, run *bookedRun) { run.Ref = ref })
}

func (r *Runs) owned(ctx context.Context, lease store.Lease, change func(time.Time, *bookedRun)) error {
	_, err := do(ctx, r, func(b *book, now time.Time) (struct{}, error) {
		run, err := b.owned(lease)
		if err == nil {
			change(now, run)
		}
		return struct{}{}, err
	})
	return err
}

// Rest gives a run back; see [store.Runs].
func (r *Runs) Rest(ctx context.Context, lease store.Lease, rest store.Rest) (store.Status, error) {
	if err := rest.Beside.Check(); err != nil {
		return "", err
	}
	key := store.Key{Account: lease.Account, Run: lease.Run}
	if rest.State != nil && !wellNamed(key, rest.State.Delta) {
		return "", store.ErrKey
	}
	return do(ctx, r, func(b *book, now time.Time) (store.Status, error) {
		if rest.State != nil && (rest.State.Base != r.version(key) || rest.State.Drop && rest.State.Base == 0) {
			return "", store.ErrFenced
		}
		status, err := b.rest(now, lease, rest)
		if err == nil && rest.State != nil && rest.State.Drop {
			delete(r.runs, key)
		} else if err == nil && rest.State != nil {
			_, err = r.save(key, rest.State.Base, rest.State.Delta)
		}
		return status, err
	})
}

// Release gives a run back undone; see [store.Runs].
func (r *Runs) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	_, err := do(ctx, r, func(b *book, now time.Time) (struct{}, error) { return struct{}{}, b.release(now, lease, release) })
	return err
}

// Retry makes a parked run ready; see [store.Runs].
func (r *Runs) Retry(ctx context.Context, account, run string, beside store.Beside) (store.Run, error) {
	if err := beside.Check(); err != nil {
		return store.Run{}, err
	}
	return do(ctx, r, func(b *book, now time.Time) (store.Run, error) { return b.retry(now, account, run, beside) })
}

// Decide records a decision; see [store.Runs].
func (r *Runs) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	if err := decision.Beside.Check(); err != nil {
		return store.Receipt{}, err
	}
	return do(ctx, r, func(b *book, now time.Time) (store.Receipt, error) { return b.decide(now, decision) })
}

// Resumed returns the receipt of a resume id; see [store.Runs].
func (r *Runs) Resumed(ctx context.Context, account, actor, resumeID string) (store.Receipt, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.Receipt, error) {
		if known := b.resumes[resumeKey{account, actor, resumeID}]; known != nil {
			return known.again(), nil
		}
		return store.Receipt{}, store.ErrNotFound
	})
}

// Interrupts returns all interrupts of a run; see [store.Runs].
func (r *Runs) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Interrupt, error) {
		var list []store.Interrupt
		if found := b.runs[store.Key{Account: account, Run: run}]; found != nil {
			for _, i := range found.asked {
				list = append(list, *i)
			}
		}
		return list, nil
	})
}

// Begin writes down that an effect is about to happen; see [store.Runs].
func (r *Runs) Begin(ctx context.Context, lease store.Lease, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	if err := effect.Beside.Check(); err != nil {
		return store.Effect{}, false, err
	}
	line, err = do(ctx, r, func(b *book, now time.Time) (line store.Effect, err error) {
		line, begun, err = b.begin(now, lease, effect)
		return line, err
	})
	return line, begun, err
}

// End writes down how an effect ended; see [store.Runs].
func (r *Runs) End(ctx context.Context, end store.EffectEnd) error {
	if err := end.Beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, r, func(b *book, now time.Time) (struct{}, error) { return struct{}{}, b.end(now, end) })
	return err
}

// Expire decides what is over its deadline; see [store.Runs].
func (r *Runs) Expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Paper) store.Beside) ([]store.Interrupt, error) {
	return do(ctx, r, func(b *book, now time.Time) ([]store.Interrupt, error) { return b.expire(now, until, limit, beside) })
}

// Cancel ends a run that is alive; see [store.Runs].
func (r *Runs) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, beside store.Beside) (store.Run, error) {
	if err := beside.Check(); err != nil {
		return store.Run{}, err
	}
	return do(ctx, r, func(b *book, now time.Time) (store.Run, error) { return b.cancel(now, account, run, as, waits, beside) })
}

// Now is the time of the clock.
func (r *Runs) Now(context.Context) (time.Time, error) { return r.clock(), nil }

// Fenced returns the checkpoints of a run for its owner; see [store.Runs].
func (r *Runs) Fenced(lease store.Lease) store.Checkpoints { return fenced{r, lease} }

type fenced struct {
	*Runs
	lease store.Lease
}

func (f fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if !wellNamed(key, delta) {
		return 0, store.ErrKey
	}
	return do(ctx, f.Runs, func(b *book, _ time.Time) (int64, error) {
		if _, err := b.owned(f.lease); err != nil { //mutate:memory-save-fenced
			return 0, err
		}
		return f.save(key, base, delta)
	})
}
