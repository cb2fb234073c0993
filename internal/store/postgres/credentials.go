package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	credentialColumns = `c.id, c.account, c.name, c.role, c.hash, c.created_at, c.expires_at, c.revoked_at`

	credentialSQL    = `SELECT ` + credentialColumns + ` FROM credentials AS c WHERE c.id = $1`
	credentialsOfSQL = `
SELECT ` + credentialColumns + ` FROM credentials AS c
WHERE sha256(c.account) = sha256($1) AND c.account = $1 ORDER BY c.created_at DESC, c.id`

	addCredentialSQL = `
INSERT INTO credentials (account, id, name, role, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6)
ON CONFLICT (id) DO NOTHING RETURNING ` + markChanged

	revokeCredentialSQL = `
UPDATE credentials SET revoked_at = clock_timestamp() WHERE id = $1 AND account = $2 AND revoked_at IS NULL RETURNING ` + markChanged
	credentialOfAccountSQL = `SELECT 1 FROM credentials WHERE id = $1 AND account = $2`
)

func scanCredential(rows pgx.CollectableRow) (c store.Credential, err error) {
	err = rows.Scan(nameScanner{&c.ID}, nameScanner{&c.Account}, nameScanner{&c.Name}, nameScanner{&c.Role}, &c.Hash, timeScanner{&c.Created}, timeScanner{&c.Expires}, timeScanner{&c.Revoked})
	return c, err
}

// AddCredential stores a new credential; see [store.Credentials].
func (s *Store) AddCredential(ctx context.Context, c store.Credential, writes store.Writes) error {
	if c.ID == "" {
		return store.ErrInvalid
	}
	var t txn
	added := false
	var made string
	expires := pgtype.Timestamptz{Time: c.Expires, Valid: !c.Expires.IsZero()}
	t.queryRow(&added, []any{&made}, addCredentialSQL, c.Account, c.ID, c.Name, c.Role, c.Hash, expires)
	if err := t.applyWrites(c.Account, writes); err != nil {
		return err
	}
	if err := s.update(ctx, "add a credential to", &t); err != nil {
		return err
	}
	if !added {
		return store.ErrExists
	}
	return nil
}

// Credential returns a credential by its id; see [store.Credentials].
func (s *Store) Credential(ctx context.Context, id string) (store.Credential, error) {
	var t txn
	var found []store.Credential
	queryAll(&t, &found, scanCredential, credentialSQL, id)
	if err := s.view(ctx, "read a credential in", &t); err != nil {
		return store.Credential{}, err
	}
	if len(found) == 0 {
		return store.Credential{}, store.ErrNotFound
	}
	return found[0], nil
}

// Credentials lists the credentials of an account; see [store.Credentials].
func (s *Store) Credentials(ctx context.Context, account string) (all []store.Credential, err error) {
	var t txn
	queryAll(&t, &all, scanCredential, credentialsOfSQL, account)
	return all, s.view(ctx, "list credentials of", &t)
}

// RevokeCredential revokes a credential; see [store.Credentials].
func (s *Store) RevokeCredential(ctx context.Context, account, id string, writes store.Writes) error {
	var t txn
	var one int
	var made string
	known, revoked := false, false
	t.queryRow(&revoked, []any{&made}, revokeCredentialSQL, id, account)
	if err := t.applyWrites(account, writes); err != nil { //mutate:postgres-key-revoked-once
		return err
	}
	t.queryRow(&known, []any{&one}, credentialOfAccountSQL, id, account)
	if err := s.update(ctx, "revoke a credential in", &t); err != nil {
		return err
	}
	if !known {
		return store.ErrNotFound
	}
	return nil
}

// purgeCredentialsSQL skips rows that a concurrent call deletes, so that there is no wait and no
// deadlock.
const purgeCredentialsSQL = `
DELETE FROM credentials WHERE id = ANY (ARRAY(
    SELECT c.id FROM credentials AS c
    WHERE c.id >= $1 AND substring(c.id FROM 1 FOR octet_length($1)) = $1 AND (c.expires_at < $2 OR c.revoked_at < $2)
    LIMIT $3 FOR UPDATE SKIP LOCKED))`

// PurgeCredentials deletes credentials that ended before a time; see [store.Credentials].
func (s *Store) PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (int, error) {
	var t txn
	forgotten := 0
	t.queue(purgeCredentialsSQL, prefix, before, limit).Exec(func(tag pgconn.CommandTag) error {
		forgotten = int(tag.RowsAffected())
		return nil
	})
	err := s.update(ctx, "purge credentials of", &t)
	return forgotten, err
}
