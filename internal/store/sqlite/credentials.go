package sqlite

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	credentialColumns = `id, account, name, role, hash, created_at, expires_at, revoked_at`

	credentialSQL    = `SELECT ` + credentialColumns + ` FROM credentials WHERE id = ?1`
	credentialsOfSQL = `
SELECT ` + credentialColumns + ` FROM credentials INDEXED BY credentials_of_account WHERE account = ?1 ORDER BY created_at DESC, id`

	addCredentialSQL = `
INSERT INTO credentials (id, account, name, role, hash, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`

	revokeCredentialSQL = `UPDATE credentials SET revoked_at = ?3 WHERE id = ?1 AND account = ?2 AND revoked_at IS NULL`
)

func scanCredential(row rowScanner) (c store.Credential, err error) {
	err = row.Scan(&c.ID, &c.Account, &c.Name, &c.Role, &c.Hash, timeScanner{&c.Created}, timeScanner{&c.Expires}, timeScanner{&c.Revoked})
	return c, err
}

// AddCredential stores a new credential; see [store.Credentials].
func (s *Store) AddCredential(ctx context.Context, c store.Credential, writes store.Writes) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, s, "add a credential to", func(ctx context.Context, t txn) (struct{}, error) {
		if c.ID == "" {
			return struct{}{}, store.ErrInvalid
		}
		if known, err := t.exists(ctx, credentialExistsSQL, c.ID); err != nil || known {
			return struct{}{}, asErrExists(err)
		}
		var expires any
		if !c.Expires.IsZero() {
			expires = c.Expires.UnixMicro()
		}
		if _, err := t.exec(ctx, addCredentialSQL, c.ID, c.Account, c.Name, c.Role, c.Hash, t.now, expires); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, t.applyWrites(ctx, c.Account, writes) //mutate:sqlite-key-creation-audited
	})
	return err
}

const credentialExistsSQL = `SELECT 1 FROM credentials WHERE id = ?1`

func asErrExists(err error) error {
	if err == nil {
		return store.ErrExists
	}
	return err
}

// Credential returns a credential by its id; see [store.Credentials].
func (s *Store) Credential(ctx context.Context, id string) (store.Credential, error) {
	found, err := queryAll(ctx, s.view(), scanCredential, credentialSQL, id)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Credential{}, s.fail(ctx, "read a credential in", err)
	}
	return found[0], nil
}

// Credentials lists the credentials of an account; see [store.Credentials].
func (s *Store) Credentials(ctx context.Context, account string) ([]store.Credential, error) {
	all, err := queryAll(ctx, s.view(), scanCredential, credentialsOfSQL, account)
	if err != nil {
		return nil, s.fail(ctx, "list credentials of", err)
	}
	return all, nil
}

// RevokeCredential revokes a credential; see [store.Credentials].
func (s *Store) RevokeCredential(ctx context.Context, account, id string, writes store.Writes) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, s, "revoke a credential in", func(ctx context.Context, t txn) (struct{}, error) {
		changed, err := t.exec(ctx, revokeCredentialSQL, id, account, t.now)
		if err != nil {
			return struct{}{}, err
		}
		if changed > 0 {
			return struct{}{}, t.applyWrites(ctx, account, writes) //mutate:sqlite-key-revocation-audited
		}
		known, err := t.exists(ctx, credentialOfAccountSQL, id, account)
		if err == nil && !known {
			err = store.ErrNotFound
		}
		return struct{}{}, err
	})
	return err
}

const credentialOfAccountSQL = `SELECT 1 FROM credentials WHERE id = ?1 AND account = ?2`

// Ids with a common prefix are adjacent in the index, so nothing else is read; substr finds their
// end.
const purgeCredentialsSQL = `
DELETE FROM credentials WHERE id IN (
    SELECT id FROM credentials WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 AND (expires_at < ?2 OR revoked_at < ?2) LIMIT ?3)`

// PurgeCredentials deletes credentials that ended before a time; see [store.Credentials].
func (s *Store) PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (int, error) {
	return update(ctx, s, "purge credentials of", func(ctx context.Context, t txn) (int, error) {
		forgotten, err := t.exec(ctx, purgeCredentialsSQL, prefix, before.UnixMicro(), limit)
		return int(forgotten), err
	})
}
