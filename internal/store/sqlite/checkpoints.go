package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// now is the database clock in microseconds, read while the lock is held.
	now = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000`

	// One statement is one snapshot, so version and parts are consistent without a transaction.
	loadCheckpointSQL = `
SELECT c.version, p.name, p.data
FROM checkpoints AS c LEFT JOIN checkpoint_parts AS p ON p.account = c.account AND p.run = c.run
WHERE c.account = ?1 AND c.run = ?2`

	// createCheckpointSQL and advanceVersionSQL are the compare-and-set. They come first in the
	// transaction, which BEGIN IMMEDIATE makes the only writer. If a row changes, no other save
	// happened since base.
	createCheckpointSQL = `
INSERT INTO checkpoints (account, run, version, updated_at) VALUES (?1, ?2, 1, ` + now + `)
ON CONFLICT (account, run) DO NOTHING`

	advanceVersionSQL = `
UPDATE checkpoints SET version = version + 1, updated_at = ` + now + `
WHERE account = ?1 AND run = ?2 AND version = ?3`

	putPartSQL = `
INSERT INTO checkpoint_parts (account, run, name, data) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (account, run, name) DO UPDATE SET data = excluded.data`

	deletePartSQL = `DELETE FROM checkpoint_parts WHERE account = ?1 AND run = ?2 AND name = ?3`

	// deleteCheckpointSQL also deletes the parts, by the cascade of the foreign key.
	deleteCheckpointSQL = `DELETE FROM checkpoints WHERE account = ?1 AND run = ?2`
	dropCheckpointSQL   = `DELETE FROM checkpoints WHERE account = ?1 AND run = ?2 AND version = ?3`
)

// maxValueSize is SQLite's limit. The driver passes lengths as 32 bits, so it is checked before.
const maxValueSize = 1_000_000_000

// Load returns the newest checkpoint, or [store.ErrNotFound].
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := s.loadParts(ctx, key)
	if err != nil {
		return store.Checkpoint{}, s.fail(ctx, "load from", err)
	}
	return checkpoint, nil
}

func (s *Store) loadParts(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	rows, err := s.reading[loadCheckpointSQL].QueryContext(ctx, []byte(key.Account), []byte(key.Run))
	if err != nil {
		return store.Checkpoint{}, err
	}
	defer rows.Close()
	checkpoint := store.Checkpoint{Parts: map[string][]byte{}}
	for rows.Next() {
		var name sql.RawBytes
		var data []byte
		if err := rows.Scan(&checkpoint.Version, &name, &data); err != nil {
			return store.Checkpoint{}, err
		}
		if len(name) == 0 {
			continue // the row of the left join for a checkpoint without parts
		}
		if data == nil {
			data = []byte{} // the driver returns nil for an empty blob
		}
		checkpoint.Parts[string(name)] = data
	}
	if err := rows.Err(); err != nil {
		return store.Checkpoint{}, err
	}
	if checkpoint.Version == 0 {
		return store.Checkpoint{}, store.ErrNotFound
	}
	return checkpoint, nil
}

// Save applies the delta if base is the stored version; see [store.Checkpoints]. It is on disk when
// Save returns.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.saveIf(ctx, key, base, delta, func(context.Context, txn) error { return nil })
}

// saveIf saves if the check in the same transaction passes.
func (s *Store) saveIf(ctx context.Context, key store.Key, base int64, delta store.Delta, may func(context.Context, txn) error) (int64, error) {
	const op = "save to"
	if err := validateSave(key, delta); err != nil {
		return 0, s.fail(ctx, op, err)
	}
	return update(ctx, s, op, func(ctx context.Context, t txn) (int64, error) {
		if err := may(ctx, t); err != nil {
			return 0, err
		}
		return base + 1, t.save(ctx, key, base, delta)
	})
}

// Delete removes the checkpoint and its parts. Deleting one that does not exist is not an error.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, s.writing[deleteCheckpointSQL]).ExecContext(ctx, []byte(key.Account), []byte(key.Run))
		return err
	})
	if err != nil {
		return s.fail(ctx, "delete from", err)
	}
	return nil
}

// save applies the delta, or returns ErrStale.
func (t txn) save(ctx context.Context, key store.Key, base int64, delta store.Delta) error {
	text, values := createCheckpointSQL, []any{key.Account, key.Run}
	if base != 0 {
		text, values = advanceVersionSQL, append(values, base)
	}
	changed, err := t.exec(ctx, text, values...)
	if err == nil && changed == 0 {
		err = store.ErrStale
	}
	if err != nil {
		return err
	}
	for _, name := range delta.Delete {
		if _, err := t.exec(ctx, deletePartSQL, key.Account, key.Run, name); err != nil {
			return err
		}
	}
	for _, part := range delta.Put {
		data := part.Data
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		if _, err := t.exec(ctx, putPartSQL, key.Account, key.Run, part.Name, data); err != nil {
			return err
		}
	}
	return nil
}

// validateSave rejects arguments that must not reach the database.
func validateSave(key store.Key, delta store.Delta) error {
	if key.Run == "" {
		return store.ErrInvalid
	}
	for _, name := range delta.Delete {
		if name == "" {
			return store.ErrInvalid
		}
	}
	for _, part := range delta.Put {
		if part.Name == "" {
			return store.ErrInvalid
		}
		if len(part.Data) > maxValueSize {
			return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(part.Data))
		}
	}
	return nil
}
