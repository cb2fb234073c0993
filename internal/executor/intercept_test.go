package executor_test

import (
	"context"

	"github.com/fermata-go/fermata/internal/store"
)

// intruder is a store that runs a function of the test before a write, or right after a decision or
// a read.
type intruder struct {
	store.Store
	amend, rest, forget  func()
	decided, got, loaded func()
	listed               func()
	save                 func(context.Context) error
}

func happens(what func()) {
	if what != nil {
		what()
	}
}

func (i *intruder) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	happens(i.amend)
	return i.Store.CommitWrites(ctx, account, beside)
}

func (i *intruder) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	happens(i.rest)
	return i.Store.EndExecution(ctx, lease, rest)
}

func (i *intruder) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	receipt, err := i.Store.Decide(ctx, decision)
	happens(i.decided)
	return receipt, err
}

func (i *intruder) DeleteRun(ctx context.Context, account, run string, beside store.Writes) error {
	happens(i.forget)
	return i.Store.DeleteRun(ctx, account, run, beside)
}

func (i *intruder) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := i.Store.Get(ctx, account, stateKey)
	happens(i.got)
	return run, err
}

func (i *intruder) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := i.Store.Load(ctx, key)
	happens(i.loaded)
	return checkpoint, err
}

func (i *intruder) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	asked, err := i.Store.Interrupts(ctx, account, run)
	happens(i.listed)
	return asked, err
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
