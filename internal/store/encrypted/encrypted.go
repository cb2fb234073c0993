package encrypted

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/fermata-go/fermata/internal/store"
)

// Store encrypts what is written to another store. It is safe for concurrent use.
type Store struct {
	store.Store
	sealer     Sealer
	log        atomic.Pointer[slog.Logger]
	unreadable atomic.Int64
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.WriteChecker = (*Store)(nil)
)

// New returns a store that encrypts with sealer what it writes to inner. It does not verify the
// key; see [Store.CheckKey].
func New(inner store.Store, sealer Sealer) *Store { return &Store{Store: inner, sealer: sealer} }

// SetLogger sets the logger for values that cannot be decrypted, unless one is set already. The
// default is slog.Default().
func (s *Store) SetLogger(log *slog.Logger) { s.log.CompareAndSwap(nil, log) }

// CheckWritable returns nil if this process may write to the store, or if the inner store cannot
// tell.
func (s *Store) CheckWritable(ctx context.Context) error {
	if w, ok := s.Store.(store.WriteChecker); ok {
		return w.CheckWritable(ctx)
	}
	return nil
}

// Unreadable returns how many times a value could not be decrypted.
func (s *Store) Unreadable() int64 { return s.unreadable.Load() }

// Report counts and logs a value that cannot be read, and returns an ErrUnreadable for it.
func (s *Store) Report(account, what, id string, cause error) error {
	s.unreadable.Add(1)
	log := s.log.Load()
	if log == nil {
		log = slog.Default()
	}
	log.Error("cannot decrypt stored value", "account", account, "what", what, "of", id, "err", cause)
	return fmt.Errorf("%w: the %s of %s: %w", ErrUnreadable, what, id, cause)
}

// Ref decrypts the provider ref of a run.
func (s *Store) Ref(r store.Run) ([]byte, error) {
	return s.open(r.Account, store.SealedRef, r.ID, "", r.ProviderRef)
}

// Input decrypts the input of a run.
func (s *Store) Input(r store.Run) ([]byte, error) {
	return s.open(r.Account, store.SealedInput, r.ID, "", r.Input)
}

// Outcome decrypts an outcome of a run, from the run itself or from a receipt.
func (s *Store) Outcome(account, run string, stored []byte) ([]byte, error) {
	return s.open(account, store.SealedOutcome, run, "", stored)
}

// Data decrypts the data of an interrupt.
func (s *Store) Data(i store.Interrupt) ([]byte, error) {
	return s.open(i.Account, store.SealedData, i.ID, "", i.Data)
}

// Answer decrypts the answer to an interrupt.
func (s *Store) Answer(i store.Interrupt) ([]byte, error) {
	return s.open(i.Account, store.SealedAnswer, i.ID, "", i.Answer)
}

// EffectReceipt decrypts the receipt of an effect.
func (s *Store) EffectReceipt(e store.Effect) ([]byte, error) {
	return s.open(e.Account, store.SealedReceipt, e.Interrupt, "", e.Receipt)
}

// Body decrypts the body of a document.
func (s *Store) Body(p store.Document) ([]byte, error) {
	return s.open(p.Account, store.SealedDocument, p.ID, string(p.Kind), p.Body)
}
