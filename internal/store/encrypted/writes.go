package encrypted

import (
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// The methods below encrypt copies: callers retry with the values that they passed.

// Create encrypts the provider ref and the input.
func (s *Store) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	run.ProviderRef = s.seal(run.Account, store.SealedRef, run.ID, "", run.ProviderRef)
	run.Input = s.seal(run.Account, store.SealedInput, run.ID, "", run.Input)
	run.Writes = s.writes(run.Account, run.Writes)
	return s.Store.Create(ctx, run)
}

// SetProviderRef encrypts the provider ref.
func (s *Store) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return s.Store.SetProviderRef(ctx, lease, s.seal(lease.Account, store.SealedRef, lease.Run, "", ref))
}

// EndExecution encrypts the outcome, the data of new interrupts and the checkpoint.
func (s *Store) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	end.Outcome = s.seal(lease.Account, store.SealedOutcome, lease.Run, "", end.Outcome)
	end.Open = slices.Clone(end.Open)
	for i := range end.Open {
		open := &end.Open[i]
		open.Data = s.seal(lease.Account, store.SealedData, open.ID, "", open.Data)
	}
	if end.Checkpoint != nil {
		state := *end.Checkpoint
		state.Delta = s.delta(store.Key{Account: lease.Account, Run: lease.Run}, state.Delta)
		end.Checkpoint = &state
	}
	end.Writes = s.writes(lease.Account, end.Writes)
	return s.Store.EndExecution(ctx, lease, end)
}

// Retry encrypts the writes.
func (s *Store) Retry(ctx context.Context, account, run string, writes store.Writes) (store.Run, error) {
	return s.Store.Retry(ctx, account, run, s.writes(account, writes))
}

// Decide encrypts the answers.
func (s *Store) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	decision.Answers = slices.Clone(decision.Answers)
	for i := range decision.Answers {
		answer := &decision.Answers[i]
		answer.Data = s.seal(decision.Account, store.SealedAnswer, answer.Interrupt, "", answer.Data)
	}
	decision.Writes = s.writes(decision.Account, decision.Writes)
	return s.Store.Decide(ctx, decision)
}

// BeginEffect encrypts the data of an effect that a policy allows. The returned entry is as stored.
func (s *Store) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	if effect.Ruling != nil {
		allowed := *effect.Ruling
		allowed.Data = s.seal(lease.Account, store.SealedData, effect.Interrupt, "", allowed.Data)
		effect.Ruling = &allowed
	}
	effect.Writes = s.writes(lease.Account, effect.Writes)
	return s.Store.BeginEffect(ctx, lease, effect)
}

// EndEffect encrypts the receipt.
func (s *Store) EndEffect(ctx context.Context, end store.EffectEnd) error {
	end.Receipt = s.seal(end.Account, store.SealedReceipt, end.Interrupt, "", end.Receipt)
	end.Writes = s.writes(end.Account, end.Writes)
	return s.Store.EndEffect(ctx, end)
}

// Expire encrypts the writes that the function returns.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	return s.Store.Expire(ctx, until, limit, func(i store.Interrupt, p *store.Document) store.Writes {
		return s.writes(i.Account, writes(i, p))
	})
}

// Cancel encrypts the writes.
func (s *Store) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, writes store.Writes) (store.Run, error) {
	return s.Store.Cancel(ctx, account, run, as, waits, s.writes(account, writes))
}

// CommitWrites encrypts the writes.
func (s *Store) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	return s.Store.CommitWrites(ctx, account, s.writes(account, writes))
}

// DeleteRun encrypts the writes.
func (s *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	return s.Store.DeleteRun(ctx, account, run, s.writes(account, writes))
}

// AddCredential encrypts the writes. A credential holds a hash, which is stored as it is.
func (s *Store) AddCredential(ctx context.Context, credential store.Credential, writes store.Writes) error {
	return s.Store.AddCredential(ctx, credential, s.writes(credential.Account, writes))
}

// RevokeCredential encrypts the writes.
func (s *Store) RevokeCredential(ctx context.Context, account, id string, writes store.Writes) error {
	return s.Store.RevokeCredential(ctx, account, id, s.writes(account, writes))
}

// PutIfAbsent encrypts the value and decrypts the one that it returns.
func (s *Store) PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error) {
	kept, err := s.Store.PutIfAbsent(ctx, name, s.seal("", store.SealedNamedValue, name, "", value))
	if err != nil {
		return nil, err
	}
	return s.open("", store.SealedNamedValue, name, "", kept)
}

// writes encrypts the bodies of documents. Audit lines and the index fields of documents are not
// encrypted.
func (s *Store) writes(account string, beside store.Writes) store.Writes {
	if len(beside.Documents) == 0 {
		return beside
	}
	beside.Documents = slices.Clone(beside.Documents)
	for i := range beside.Documents {
		p := &beside.Documents[i]
		if p.Stored {
			p.Body = s.reencrypted(account, *p)
			p.Stored = false
			continue
		}
		//mutate:ruling-encrypted
		p.Body = s.seal(account, store.SealedDocument, p.ID, string(p.Kind), p.Body)
	}
	return beside
}

// reencrypted returns the body of a document that was read from the store and is written back. If
// the key has changed since, the body is encrypted with the new one: written back as it was, it
// would be unreadable once the old key is deleted.
func (s *Store) reencrypted(account string, p store.DocumentChange) []byte {
	if p.Body == nil || s.sealer.Current(p.Body) {
		return p.Body
	}
	data, err := s.sealer.Open(label(account, store.SealedDocument, p.ID, string(p.Kind)), p.Body)
	if err != nil {
		return p.Body
	}
	return s.seal(account, store.SealedDocument, p.ID, string(p.Kind), data)
}
