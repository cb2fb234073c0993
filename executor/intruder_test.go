package executor_test

import (
	"context"

	"github.com/fermata-go/fermata/store"
)

// intruder is a store that does something else first, where it is told to.
type intruder struct {
	store.Store
	amend, rest, decided func()
	save                 func(context.Context) error
}

func first(what func()) {
	if what != nil {
		what()
	}
}

func (i *intruder) Amend(ctx context.Context, account string, beside store.Beside) error {
	first(i.amend)
	return i.Store.Amend(ctx, account, beside)
}

func (i *intruder) Rest(ctx context.Context, lease store.Lease, rest store.Rest) (store.Status, error) {
	first(i.rest)
	return i.Store.Rest(ctx, lease, rest)
}

func (i *intruder) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	receipt, err := i.Store.Decide(ctx, decision)
	first(i.decided)
	return receipt, err
}

func (i *intruder) Fenced(lease store.Lease) store.Checkpoints {
	return &intruded{i.Store.Fenced(lease), i}
}

type intruded struct {
	store.Checkpoints
	by *intruder
}

func (i *intruded) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if i.by.save != nil {
		if err := i.by.save(ctx); err != nil {
			return 0, err
		}
	}
	return i.Checkpoints.Save(ctx, key, base, delta)
}
