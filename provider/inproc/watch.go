package inproc

import (
	"context"
	"errors"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// watch stands between an execution and what its owner keeps for it, and notes when that could not be reached. The engine makes of that an error like
// any other, and a node gets to see it and fails; but it is the execution that has failed then, and not the run. Of a save that failed the engine
// says so itself.
type watch struct {
	store.Checkpoints
	provider.Owner
	ledger fermata.Ledger

	mu    sync.Mutex
	first error
}

// failure is the first error of those that say nothing about the run.
func (w *watch) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// note keeps an error, unless it is an answer.
func (w *watch) note(err error, answers ...error) error {
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil { //mutate:store-error-watched
		w.first = err
	}
	return err
}

func (w *watch) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := w.Checkpoints.Load(ctx, key)
	return checkpoint, w.note(err, store.ErrNotFound)
}

// Ledger is the owner's, if it has one.
func (w *watch) Ledger() fermata.Ledger {
	if w.ledger == nil {
		return nil
	}
	return w
}

func (w *watch) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerLine, bool, error) {
	line, begun, err := w.ledger.Begin(ctx, intent)
	return line, begun, w.note(err, store.ErrNotApproved)
}

func (w *watch) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerLine) error {
	return w.note(w.ledger.End(ctx, intent, line))
}
