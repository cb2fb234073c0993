package inproc

import (
	"context"
	"errors"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// outageDetector stands between an execution and what its owner keeps for it, and notes when that could not be reached. The engine makes of that an error like
// any other, and a node gets to see it and fails; but it is the execution that has failed then, and not the run. Of a save that failed the engine
// says so itself.
type outageDetector struct {
	store.Checkpoints
	provider.Owner
	ledger fermata.Ledger

	mu       sync.Mutex
	firstErr error
}

// failure is the first error of those that say nothing about the run.
func (w *outageDetector) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.firstErr
}

// note keeps an error, unless it is an answer.
func (w *outageDetector) record(err error, answers ...error) error {
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.firstErr == nil { //mutate:store-error-watched
		w.firstErr = err
	}
	return err
}

func (w *outageDetector) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := w.Checkpoints.Load(ctx, key)
	return checkpoint, w.record(err, store.ErrNotFound)
}

// Ledger is the owner's, if it has one.
func (w *outageDetector) Ledger() fermata.Ledger {
	if w.ledger == nil {
		return nil
	}
	return w
}

func (w *outageDetector) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	line, begun, err := w.ledger.Begin(ctx, intent)
	return line, begun, w.record(err, store.ErrNotApproved)
}

func (w *outageDetector) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	return w.record(w.ledger.End(ctx, intent, line))
}
