package sqlite

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/store"
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

func scanCredential(row scanner) (c store.Credential, err error) {
	err = row.Scan(&c.ID, &c.Account, &c.Name, &c.Role, &c.Hash, moment{&c.Created}, moment{&c.Expires}, moment{&c.Revoked})
	return c, err
}

// AddCredential keeps a new credential; see [store.Credentials].
func (s *Store) AddCredential(ctx context.Context, c store.Credential, beside store.Beside) error {
	if err := beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, s, "add a credential to", func(ctx context.Context, t turn) (struct{}, error) {
		if c.ID == "" {
			return struct{}{}, store.ErrKey
		}
		if known, err := t.exists(ctx, credentialExistsSQL, c.ID); err != nil || known {
			return struct{}{}, orExists(err)
		}
		var expires any
		if !c.Expires.IsZero() {
			expires = c.Expires.UnixMicro()
		}
		if _, err := t.exec(ctx, addCredentialSQL, c.ID, c.Account, c.Name, c.Role, c.Hash, t.now, expires); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, t.beside(ctx, c.Account, beside) //mutate:sqlite-key-creation-audited
	})
	return err
}

const credentialExistsSQL = `SELECT 1 FROM credentials WHERE id = ?1`

func orExists(err error) error {
	if err == nil {
		return store.ErrExists
	}
	return err
}

// Credential returns a credential by its id; see [store.Credentials].
func (s *Store) Credential(ctx context.Context, id string) (store.Credential, error) {
	found, err := list(ctx, s.look(), scanCredential, credentialSQL, id)
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Credential{}, s.fail(ctx, "look up a credential in", err)
	}
	return found[0], nil
}

// Credentials lists those of an account; see [store.Credentials].
func (s *Store) Credentials(ctx context.Context, account string) ([]store.Credential, error) {
	all, err := list(ctx, s.look(), scanCredential, credentialsOfSQL, account)
	if err != nil {
		return nil, s.fail(ctx, "list credentials of", err)
	}
	return all, nil
}

// RevokeCredential ends a credential; see [store.Credentials].
func (s *Store) RevokeCredential(ctx context.Context, account, id string, beside store.Beside) error {
	if err := beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, s, "revoke a credential in", func(ctx context.Context, t turn) (struct{}, error) {
		changed, err := t.exec(ctx, revokeCredentialSQL, id, account, t.now)
		if err != nil {
			return struct{}{}, err
		}
		if changed > 0 {
			return struct{}{}, t.beside(ctx, account, beside) //mutate:sqlite-key-revocation-audited
		}
		known, err := t.exists(ctx, credentialHereSQL, id, account)
		if err == nil && !known {
			err = store.ErrNotFound
		}
		return struct{}{}, err
	})
	return err
}

const credentialHereSQL = `SELECT 1 FROM credentials WHERE id = ?1 AND account = ?2`

// The ids of one prefix are neighbours, so nothing else is read; substr stands for the end of them.
const forgetCredentialsSQL = `
DELETE FROM credentials WHERE id IN (
    SELECT id FROM credentials WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 AND (expires_at < ?2 OR revoked_at < ?2) LIMIT ?3)`

// ForgetCredentials deletes those that were over before a time; see [store.Credentials].
func (s *Store) ForgetCredentials(ctx context.Context, prefix string, before time.Time, limit int) (int, error) {
	return do(ctx, s, "forget credentials of", func(ctx context.Context, t turn) (int, error) {
		forgotten, err := t.exec(ctx, forgetCredentialsSQL, prefix, before.UnixMicro(), limit)
		return int(forgotten), err
	})
}
