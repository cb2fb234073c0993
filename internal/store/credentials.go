package store

import (
	"context"
	"time"
)

// Credentials stores API keys and sessions.
type Credentials interface {
	// AddCredential stores a new credential together with writes. It returns ErrExists if the id is
	// taken.
	AddCredential(ctx context.Context, credential Credential, writes Writes) error

	// Credential returns a credential by its id, also if it was revoked, or ErrNotFound. Ids are
	// unique in the whole store, because the account is not known yet during authentication.
	Credential(ctx context.Context, id string) (Credential, error)

	// Credentials lists the credentials of an account, newest first.
	Credentials(ctx context.Context, account string) ([]Credential, error)

	// RevokeCredential revokes a credential permanently and applies writes in the same transaction.
	// It returns ErrNotFound if the account has no such credential, and does nothing if it was
	// revoked before.
	RevokeCredential(ctx context.Context, account, id string, writes Writes) error

	// PurgeCredentials deletes credentials of all accounts whose ids have the prefix and which
	// expired or were revoked before a time. It deletes at most limit, in no particular order, and
	// returns how many. Credentials that a concurrent call deletes are counted once.
	PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (deleted int, err error)
}

// Credential describes a key. The store has only the hash of the key, not the key itself.
type Credential struct {
	ID, Account string
	// Name identifies the user of the key in records. Role limits what the user may do.
	Name, Role string
	Hash       []byte
	Created    time.Time // set by the store
	Expires    time.Time // zero: never
	Revoked    time.Time // zero: not revoked
}

// EndedBefore reports whether the credential expired or was revoked before t.
func (c Credential) EndedBefore(t time.Time) bool {
	return !c.Expires.IsZero() && c.Expires.Before(t) || !c.Revoked.IsZero() && c.Revoked.Before(t)
}
