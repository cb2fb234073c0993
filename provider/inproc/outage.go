package inproc

import (
	"context"
	"errors"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// outageDetector wraps the store and the owner of an execution and records when they cannot be
// reached. The engine treats such an error like any other, and a node that sees it fails; but then
// the execution has failed, and not the run. The engine reports failed saves itself.
type outageDetector struct {
	store.Checkpoints
	provider.Owner
	ledger fermata.Ledger

	mu       sync.Mutex
	firstErr error
}

// failure returns the first recorded error, which says nothing about the run.
func (w *outageDetector) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.firstErr
}

// record records an error, unless it is one of the expected answers.
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

// Ledger returns the owner's ledger, if it has one.
func (w *outageDetector) Ledger() fermata.Ledger {
	if w.ledger == nil {
		return nil
	}
	return w
}

func (w *outageDetector) Begin(ctx context.Context, intent fermata.Intent) (fermata.LedgerEntry, bool, error) {
	line, begun, err := w.ledger.Begin(ctx, intent)
	if void, ok := errors.AsType[*fermata.VoidApprovalError](err); ok {
		return line, begun, void
	}
	return line, begun, w.record(err, store.ErrNotApproved)
}

func (w *outageDetector) End(ctx context.Context, intent fermata.Intent, line fermata.LedgerEntry) error {
	return w.record(w.ledger.End(ctx, intent, line))
}
