package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// InboxItems returns interrupts of all runs of an account; see [store.Inbox].
func (r *Store) InboxItems(ctx context.Context, account string, filter store.InboxFilter) ([]store.InboxItem, error) {
	if err := filter.Validate(); err != nil {
		return nil, err
	}
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.InboxItem, error) {
		none := store.InboxPosition{}
		all := b.inboxItems(account, func(i *store.Interrupt) bool {
			return (filter.State == "" || i.State == filter.State) && (filter.Kind == "" || i.Kind == filter.Kind) &&
				(filter.After == none || filter.Position(*i).Compare(filter.After) > 0) &&
				(filter.Before == none || filter.Position(*i).Compare(filter.Before) < 0)
		})
		slices.SortFunc(all, func(a, b store.InboxItem) int {
			return filter.Position(a.Interrupt).Compare(filter.Position(b.Interrupt))
		})
		if filter.Newest {
			slices.Reverse(all)
		}
		return all[:min(len(all), pageSize(filter.Limit, 100))], nil
	})
}

// InboxItem returns one interrupt; see [store.Inbox].
func (r *Store) InboxItem(ctx context.Context, account, id string) (store.InboxItem, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.InboxItem, error) {
		all := b.inboxItems(account, func(i *store.Interrupt) bool { return i.ID == id })
		if len(all) == 0 {
			return store.InboxItem{}, store.ErrNotFound
		}
		return all[0], nil
	})
}

// RunSnapshot returns a run with its open interrupts and documents, read in one transaction; see
// [store.Inbox].
func (r *Store) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	return update(ctx, r, func(b *tables, now time.Time) (store.RunSnapshot, error) {
		run := b.newest(account, stateKey)
		if run == nil {
			return store.RunSnapshot{}, store.ErrNotFound
		}
		s := store.RunSnapshot{Run: run.Run, ReadAt: now}
		s.Run.Input, s.Run.Outcome = nil, nil
		for _, i := range run.interrupts {
			if i.State != store.InterruptPending {
				continue
			}
			s.Open = append(s.Open, *i)
			if request := b.request(i); request != nil {
				s.Documents = append(s.Documents, *request)
			}
		}
		if kept := b.documents[documentKey{account, own, run.ID}]; kept != nil {
			s.Documents = append(s.Documents, *kept)
		}
		return s, nil
	})
}

// CountPending counts the open interrupts of an account; see [store.Inbox].
func (r *Store) CountPending(ctx context.Context, account string, without []string, limit int) (int, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (int, error) {
		return min(limit, len(b.inboxItems(account, func(i *store.Interrupt) bool {
			return i.State == store.InterruptPending && !slices.Contains(without, i.Kind)
		}))), nil
	})
}

// inboxItems lists the matching interrupts of an account, in no order.
func (b *tables) inboxItems(account string, wanted func(*store.Interrupt) bool) []store.InboxItem {
	var all []store.InboxItem
	for key, run := range b.runs {
		if key.Account != account {
			continue
		}
		for _, i := range run.interrupts {
			if wanted(i) {
				all = append(all, store.InboxItem{Interrupt: *i, StateKey: run.StateKey, Provider: run.Provider, Graph: run.Graph, Request: b.request(i)})
			}
		}
	}
	return all
}

// PendingByKind counts the open interrupts of all accounts by kind; see [store.Inbox].
func (r *Store) PendingByKind(ctx context.Context, limit int) ([]store.PendingCount, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.PendingCount, error) {
		var open []*store.Interrupt
		for _, run := range b.runs {
			for _, i := range run.interrupts {
				if i.State == store.InterruptPending {
					open = append(open, i)
				}
			}
		}
		slices.SortFunc(open, func(a, b *store.Interrupt) int { return a.Created.Compare(b.Created) })
		var waits []store.PendingCount
		for _, i := range open[:min(len(open), max(limit, 0))] {
			at := slices.IndexFunc(waits, func(w store.PendingCount) bool { return w.Kind == i.Kind })
			if at < 0 {
				at, waits = len(waits), append(waits, store.PendingCount{Kind: i.Kind, Oldest: i.Created})
			}
			waits[at].Count++
		}
		slices.SortFunc(waits, func(a, b store.PendingCount) int { return cmp.Compare(a.Kind, b.Kind) })
		return waits, nil
	})
}
