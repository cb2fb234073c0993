package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// AddCredential stores a new credential; see [store.Credentials].
func (r *Store) AddCredential(ctx context.Context, c store.Credential, writes store.Writes) error {
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) {
		if c.ID == "" || writes.Validate() != nil {
			return struct{}{}, store.ErrInvalid
		}
		if _, known := b.credentials[c.ID]; known {
			return struct{}{}, store.ErrExists
		}
		write, err := b.prepareWrites(now, c.Account, writes)
		if err != nil {
			return struct{}{}, err
		}
		write()
		c.Created, c.Revoked = now, time.Time{}
		if b.credentials == nil {
			b.credentials = make(map[string]store.Credential)
		}
		b.credentials[c.ID] = c
		return struct{}{}, nil
	})
	return err
}

// Credential returns a credential by its id; see [store.Credentials].
func (r *Store) Credential(ctx context.Context, id string) (store.Credential, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.Credential, error) {
		c, known := b.credentials[id]
		if !known {
			return c, store.ErrNotFound
		}
		return c, nil
	})
}

// Credentials lists the credentials of an account; see [store.Credentials].
func (r *Store) Credentials(ctx context.Context, account string) ([]store.Credential, error) {
	return update(ctx, r, func(b *tables, _ time.Time) ([]store.Credential, error) {
		var list []store.Credential
		for _, c := range b.credentials {
			if c.Account == account {
				list = append(list, c)
			}
		}
		slices.SortFunc(list, func(a, b store.Credential) int {
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
		})
		return list, nil
	})
}

// RevokeCredential revokes a credential; see [store.Credentials].
func (r *Store) RevokeCredential(ctx context.Context, account, id string, writes store.Writes) error {
	_, err := update(ctx, r, func(b *tables, now time.Time) (struct{}, error) {
		if err := writes.Validate(); err != nil {
			return struct{}{}, err
		}
		c, known := b.credentials[id]
		if !known || c.Account != account {
			return struct{}{}, store.ErrNotFound
		}
		if !c.Revoked.IsZero() {
			return struct{}{}, nil
		}
		write, err := b.prepareWrites(now, account, writes)
		if err != nil {
			return struct{}{}, err
		}
		write()
		c.Revoked = now
		b.credentials[id] = c
		return struct{}{}, nil
	})
	return err
}

// PurgeCredentials deletes credentials that ended before a time; see [store.Credentials].
func (r *Store) PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (int, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (forgotten int, err error) {
		for id, c := range b.credentials {
			if forgotten < limit && strings.HasPrefix(id, prefix) && c.EndedBefore(before) {
				delete(b.credentials, id)
				forgotten++
			}
		}
		return forgotten, nil
	})
}
