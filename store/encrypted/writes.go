package encrypted

import (
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

// The methods below encrypt copies: callers retry with the values that they passed.

// Create encrypts ref and input.
func (s *Store) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	run.Ref = s.seal(run.Account, store.SealedRef, run.ID, "", run.Ref)
	run.Input = s.seal(run.Account, store.SealedInput, run.ID, "", run.Input)
	run.Beside = s.writes(run.Account, run.Beside)
	return s.Store.Create(ctx, run)
}

// SetRef encrypts the provider ref.
func (s *Store) SetRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return s.Store.SetRef(ctx, lease, s.seal(lease.Account, store.SealedRef, lease.Run, "", ref))
}

// Rest encrypts the outcome, the data of new interrupts and the state.
func (s *Store) Rest(ctx context.Context, lease store.Lease, rest store.Rest) (store.Status, error) {
	rest.Outcome = s.seal(lease.Account, store.SealedOutcome, lease.Run, "", rest.Outcome)
	rest.Open = slices.Clone(rest.Open)
	for i := range rest.Open {
		open := &rest.Open[i]
		open.Data = s.seal(lease.Account, store.SealedData, open.ID, "", open.Data)
	}
	if rest.State != nil {
		state := *rest.State
		state.Delta = s.delta(store.Key{Account: lease.Account, Run: lease.Run}, state.Delta)
		rest.State = &state
	}
	rest.Beside = s.writes(lease.Account, rest.Beside)
	return s.Store.Rest(ctx, lease, rest)
}

// Retry encrypts the writes.
func (s *Store) Retry(ctx context.Context, account, run string, beside store.Beside) (store.Run, error) {
	return s.Store.Retry(ctx, account, run, s.writes(account, beside))
}

// Decide encrypts the answers.
func (s *Store) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	decision.Answers = slices.Clone(decision.Answers)
	for i := range decision.Answers {
		answer := &decision.Answers[i]
		answer.Data = s.seal(decision.Account, store.SealedAnswer, answer.Interrupt, "", answer.Data)
	}
	decision.Beside = s.writes(decision.Account, decision.Beside)
	return s.Store.Decide(ctx, decision)
}

// Begin encrypts the data of an effect that is allowed without a person. The returned line is as
// stored.
func (s *Store) Begin(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	if effect.Allowed != nil {
		allowed := *effect.Allowed
		allowed.Data = s.seal(lease.Account, store.SealedData, effect.Interrupt, "", allowed.Data)
		effect.Allowed = &allowed
	}
	effect.Beside = s.writes(lease.Account, effect.Beside)
	return s.Store.Begin(ctx, lease, effect)
}

// End encrypts the receipt.
func (s *Store) End(ctx context.Context, end store.EffectEnd) error {
	end.Receipt = s.seal(end.Account, store.SealedReceipt, end.Interrupt, "", end.Receipt)
	end.Beside = s.writes(end.Account, end.Beside)
	return s.Store.End(ctx, end)
}

// Expire encrypts the writes that the function returns.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Paper) store.Beside) ([]store.Interrupt, error) {
	return s.Store.Expire(ctx, until, limit, func(i store.Interrupt, p *store.Paper) store.Beside {
		return s.writes(i.Account, beside(i, p))
	})
}

// Cancel encrypts the writes.
func (s *Store) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, beside store.Beside) (store.Run, error) {
	return s.Store.Cancel(ctx, account, run, as, waits, s.writes(account, beside))
}

// Amend encrypts the writes.
func (s *Store) Amend(ctx context.Context, account string, beside store.Beside) error {
	return s.Store.Amend(ctx, account, s.writes(account, beside))
}

// Forget encrypts the writes.
func (s *Store) Forget(ctx context.Context, account, run string, beside store.Beside) error {
	return s.Store.Forget(ctx, account, run, s.writes(account, beside))
}

// AddCredential encrypts the writes. A credential holds a hash, which is stored as it is.
func (s *Store) AddCredential(ctx context.Context, credential store.Credential, beside store.Beside) error {
	return s.Store.AddCredential(ctx, credential, s.writes(credential.Account, beside))
}

// RevokeCredential encrypts the writes.
func (s *Store) RevokeCredential(ctx context.Context, account, id string, beside store.Beside) error {
	return s.Store.RevokeCredential(ctx, account, id, s.writes(account, beside))
}

// Once encrypts the value and decrypts the one that it returns.
func (s *Store) Once(ctx context.Context, name string, value []byte) ([]byte, error) {
	kept, err := s.Store.Once(ctx, name, s.seal("", store.SealedOnce, name, "", value))
	if err != nil {
		return nil, err
	}
	return s.open("", store.SealedOnce, name, "", kept)
}

// writes encrypts the bodies of documents. Audit lines and the index fields of documents are not
// encrypted.
func (s *Store) writes(account string, beside store.Beside) store.Beside {
	if len(beside.Papers) == 0 {
		return beside
	}
	beside.Papers = slices.Clone(beside.Papers)
	for i := range beside.Papers {
		p := &beside.Papers[i]
		if p.Stored {
			p.Body = s.reencrypted(account, *p)
			p.Stored = false
			continue
		}
		p.Body = s.seal(account, store.SealedPaper, p.ID, string(p.Kind), p.Body)
	}
	return beside
}

// reencrypted returns the body of a document that was read from the store and is written back. If
// the key has changed since, the body is encrypted with the new one: written back as it was, it
// would be unreadable once the old key is deleted.
func (s *Store) reencrypted(account string, p store.PaperChange) []byte {
	if p.Body == nil || s.sealer.Current(p.Body) {
		return p.Body
	}
	data, err := s.sealer.Open(label(account, store.SealedPaper, p.ID, string(p.Kind)), p.Body)
	if err != nil {
		return p.Body
	}
	return s.seal(account, store.SealedPaper, p.ID, string(p.Kind), data)
}
