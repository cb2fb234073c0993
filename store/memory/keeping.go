package memory

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Events returns the events of a run; see [store.Events].
func (r *Runs) Events(ctx context.Context, account, run string, after int64, limit int) ([]store.Event, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Event, error) {
		list := b.eventsOf(account, run, after)
		return list[:min(len(list), page(limit, 1000))], nil
	})
}

// Feed returns events of all runs of an account; see [store.Events].
func (r *Runs) Feed(ctx context.Context, account, after string, limit int) (events []store.Event, next string, err error) {
	events, err = do(ctx, r, func(b *book, _ time.Time) (list []store.Event, err error) {
		list, next, err = b.feed(account, after, page(limit, 1000))
		return list, err
	})
	return events, next, err
}

// Watch returns hints that something has happened to a run; see [store.Events].
func (r *Runs) Watch(ctx context.Context) <-chan store.Key { return r.hints.Watch(ctx) }

// Finished returns runs that were over before a time; see [store.Keeping].
func (r *Runs) Finished(ctx context.Context, from, before time.Time, limit int) ([]store.Run, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Run, error) { return b.finished(from, before, limit), nil })
}

// Forget deletes a run that is over; see [store.Keeping].
func (r *Runs) Forget(ctx context.Context, account, run string, beside store.Beside) error {
	if err := beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, r, func(b *book, now time.Time) (struct{}, error) {
		forgotten, err := b.forget(now, account, run, beside)
		if forgotten {
			delete(r.Store.runs, store.Key{Account: account, Run: run})
		}
		return struct{}{}, err
	})
	return err
}

// History returns everything that is known of a run; see [store.Keeping].
func (r *Runs) History(ctx context.Context, account, run string) (store.History, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.History, error) { return b.history(account, run) })
}

// Vacuum has nothing to do: what was deleted is the garbage collector's.
func (r *Runs) Vacuum(ctx context.Context) error { return ctx.Err() }

// Once keeps a value under a name, unless there is one already; see [store.Keeping].
func (r *Runs) Once(ctx context.Context, name string, value []byte) ([]byte, error) {
	if name == "" {
		return nil, store.ErrKey
	}
	return do(ctx, r, func(b *book, _ time.Time) ([]byte, error) {
		kept, ok := b.once[name]
		if !ok {
			kept = append([]byte{}, value...)
			b.once[name] = kept
		}
		return kept, nil
	})
}
