package store

import (
	"context"
	"time"
)

// Credentials are what programs sign in with.
type Credentials interface {
	// AddCredential keeps a new one, with what is written beside it. It returns ErrExists if there is one of that id.
	AddCredential(ctx context.Context, credential Credential, beside Writes) error

	// Credential returns one by its id, also if it was revoked, or ErrNotFound. Ids are unique in the whole store: whoever signs in has not
	// said yet whose account it is.
	Credential(ctx context.Context, id string) (Credential, error)

	// Credentials lists those of an account, the newest first.
	Credentials(ctx context.Context, account string) ([]Credential, error)

	// RevokeCredential ends one, for ever, with what is written beside that. It returns ErrNotFound if the account has none of that id, and does
	// nothing if it was revoked.
	RevokeCredential(ctx context.Context, account, id string, beside Writes) error

	// ForgetCredentials deletes those of all accounts whose ids begin with a prefix and that were over before a time, because they expired or were
	// revoked: a limit of them, and any. It returns how many. Those that somebody else deletes at the same time are deleted once.
	PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (forgotten int, err error)
}

// Credential is what is known of a key. The key itself is not: only its hash.
type Credential struct {
	ID, Account string
	// Name is who uses it, as it stands in records; Role what they may do.
	Name, Role string
	Hash       []byte
	Created    time.Time // set by the store
	Expires    time.Time // zero: never
	Revoked    time.Time // zero: not
}

// OverBefore reports whether a credential was over before a time.
func (c Credential) EndedBefore(moment time.Time) bool {
	return !c.Expires.IsZero() && c.Expires.Before(moment) || !c.Revoked.IsZero() && c.Revoked.Before(moment)
}
