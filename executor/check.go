package executor

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Checked is a run that is not over, and whether this program could go on with it.
type Checked struct {
	store.Run // without what is sealed
	// Err says why not; nil if it could.
	Err error
}

// Check looks at every run that is not over, of all accounts, and says whether this program could go on with it, as far as that can be known
// without doing so; see [provider.Checker]. It runs and changes nothing, while others may.
func (e *Executor) Check(ctx context.Context) iter.Seq2[Checked, error] {
	return func(yield func(Checked, error) bool) {
		accounts, err := e.accounts(ctx)
		if err != nil {
			yield(Checked{}, err)
			return
		}
		for _, account := range accounts {
			if !e.checkAccount(ctx, account, yield) {
				return
			}
		}
	}
}

// accounts lists all accounts. The store has no list of them; but everything that somebody has is sealed, and a look at what is sealed
// changes nothing.
func (e *Executor) accounts(ctx context.Context) ([]string, error) {
	all := make(map[string]bool)
	for after := ""; ; {
		next, err := e.store.Reseal(ctx, after, resealAtOnce, func(v store.Sealed) ([]byte, error) {
			all[v.Account] = true
			return nil, nil
		})
		if err != nil || next == "" {
			return slices.Sorted(maps.Keys(all)), err
		}
		after = next
	}
}

func (e *Executor) checkAccount(ctx context.Context, account string, yield func(Checked, error) bool) bool {
	filter := store.Filter{Status: []store.Status{store.Ready, store.Running, store.Waiting, store.Parked}}
	for {
		runs, err := e.store.List(ctx, account, filter)
		if err != nil {
			yield(Checked{}, err)
			return false
		}
		if len(runs) == 0 {
			return true
		}
		for _, run := range runs {
			if !yield(Checked{Run: run, Err: e.checkRun(ctx, run)}, nil) {
				return false
			}
		}
		last := runs[len(runs)-1]
		filter.Before = store.RunPlace{Created: last.Created, ID: last.ID}
	}
}

func (e *Executor) checkRun(ctx context.Context, run store.Run) error {
	p, err := e.providerOf(run)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(p.Graphs(), func(g provider.Graph) bool { return g.Name == run.Graph }) {
		return fmt.Errorf("%w: this program has no graph %q", ErrUnknownGraph, run.Provider+":"+run.Graph)
	}
	checker, ok := p.(provider.Checker)
	if !ok {
		return nil
	}
	full, err := e.store.Get(ctx, run.Account, run.StateKey) // a list has not what is sealed
	if isNotFound(err) || err == nil && full.ID != run.ID {
		return nil // it is over by now
	}
	if err != nil {
		return err
	}
	named, err := e.runOf(full, e.store)
	if err != nil {
		return err
	}
	return checker.Resumable(ctx, named)
}
