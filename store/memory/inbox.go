package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Asked returns interrupts of all runs of an account; see [store.Inbox].
func (r *Runs) Asked(ctx context.Context, account string, filter store.AskedFilter) ([]store.Asked, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Asked, error) {
		all := b.inbox(account, func(i *store.Interrupt) bool {
			return (filter.State == "" || i.State == filter.State) && (filter.Kind == "" || i.Kind == filter.Kind) &&
				(filter.After == (store.AskedPlace{}) || cmp.Or(i.Created.Compare(filter.After.Created), cmp.Compare(i.ID, filter.After.ID)) > 0)
		})
		return all[:min(len(all), page(filter.Limit, 100))], nil
	})
}

// Question returns one interrupt; see [store.Inbox].
func (r *Runs) Question(ctx context.Context, account, id string) (store.Asked, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.Asked, error) {
		all := b.inbox(account, func(i *store.Interrupt) bool { return i.ID == id })
		if len(all) == 0 {
			return store.Asked{}, store.ErrNotFound
		}
		return all[0], nil
	})
}

// Standing returns where a run stands; see [store.Inbox].
func (r *Runs) Standing(ctx context.Context, account, stateKey string, own store.PaperKind) (store.Standing, error) {
	return do(ctx, r, func(b *book, now time.Time) (store.Standing, error) {
		run := b.newest(account, stateKey)
		if run == nil {
			return store.Standing{}, store.ErrNotFound
		}
		s := store.Standing{Run: run.Run, At: now}
		s.Run.Input, s.Run.Outcome = nil, nil
		for _, i := range run.asked {
			if i.State != store.Pending {
				continue
			}
			s.Open = append(s.Open, *i)
			if request := b.request(i); request != nil {
				s.Papers = append(s.Papers, *request)
			}
		}
		if kept := b.papers[paperKey{account, own, run.ID}]; kept != nil {
			s.Papers = append(s.Papers, *kept)
		}
		return s, nil
	})
}

// Pending counts the interrupts of an account that are open; see [store.Inbox].
func (r *Runs) Pending(ctx context.Context, account string, limit int) (int, error) {
	return do(ctx, r, func(b *book, _ time.Time) (int, error) {
		return min(limit, len(b.inbox(account, func(i *store.Interrupt) bool { return i.State == store.Pending }))), nil
	})
}

// inbox lists interrupts of an account, the oldest first.
func (b *book) inbox(account string, wanted func(*store.Interrupt) bool) []store.Asked {
	var all []store.Asked
	for key, run := range b.runs {
		if key.Account != account {
			continue
		}
		for _, i := range run.asked {
			if wanted(i) {
				all = append(all, store.Asked{Interrupt: *i, StateKey: run.StateKey, Provider: run.Provider, Graph: run.Graph, Request: b.request(i)})
			}
		}
	}
	slices.SortFunc(all, func(a, b store.Asked) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Waits counts the interrupts of all accounts that are open; see [store.Inbox].
func (r *Runs) Waits(ctx context.Context, limit int) ([]store.Wait, error) {
	return do(ctx, r, func(b *book, _ time.Time) ([]store.Wait, error) {
		var open []*store.Interrupt
		for _, run := range b.runs {
			for _, i := range run.asked {
				if i.State == store.Pending {
					open = append(open, i)
				}
			}
		}
		slices.SortFunc(open, func(a, b *store.Interrupt) int { return a.Created.Compare(b.Created) })
		var waits []store.Wait
		for _, i := range open[:min(len(open), max(limit, 0))] {
			at := slices.IndexFunc(waits, func(w store.Wait) bool { return w.Kind == i.Kind })
			if at < 0 {
				at, waits = len(waits), append(waits, store.Wait{Kind: i.Kind, Oldest: i.Created})
			}
			waits[at].Count++
		}
		slices.SortFunc(waits, func(a, b store.Wait) int { return cmp.Compare(a.Kind, b.Kind) })
		return waits, nil
	})
}
