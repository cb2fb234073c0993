package memory

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// Events returns the events of a run; see [store.Events].
func (r *Store) Events(ctx context.Context, account, run string, after int64, limit int) ([]store.Event, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Event, error) {
		list := b.eventsOf(account, run, after)
		return list[:min(len(list), pageSize(limit, 1000))], nil
	})
}

// Feed returns the events of all runs of an account; see [store.Events].
func (r *Store) Feed(ctx context.Context, account, after string, limit int) (events []store.Event, next string, err error) {
	events, err = update(ctx, r, func(b *tables, _ time.Time) (list []store.Event, err error) {
		list, next, err = b.feed(account, after, pageSize(limit, 1000))
		return list, err
	})
	return events, next, err
}

// Watch returns hints that a run may have changed; see [store.Events].
func (r *Store) Watch(ctx context.Context) <-chan store.Key { return r.hints.Subscribe(ctx) }

// FinishedRuns returns runs that ended before a time; see [store.Maintenance].
func (r *Store) FinishedRuns(ctx context.Context, from, before time.Time, limit int) ([]store.Run, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Run, error) { return b.finishedRuns(from, before, limit), nil })
}

// DeleteRun deletes a run that has ended; see [store.Maintenance].
func (r *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) {
		deleted, err := b.deleteRun(now, account, run, writes)
		if deleted {
			delete(r.Checkpoints.runs, store.Key{Account: account, Run: run})
		}
		return struct{}{}, err
	})
	return err
}

// History returns everything that is stored about a run; see [store.Maintenance].
func (r *Store) History(ctx context.Context, account, run string) (store.History, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.History, error) { return b.history(account, run) })
}

// Vacuum does nothing; the garbage collector frees deleted data.
func (r *Store) Vacuum(ctx context.Context) error { return ctx.Err() }

// PutIfAbsent stores a value under a name unless there is one; see [store.Maintenance].
func (r *Store) PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error) {
	if name == "" {
		return nil, store.ErrInvalid
	}
	return update(ctx, r, func(b *tables, _ time.Time) ([]byte, error) {
		kept, ok := b.named[name]
		if !ok {
			kept = append([]byte{}, value...)
			b.named[name] = kept
		}
		return kept, nil
	})
}
