package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// checkpointCondition selects a checkpoint by account and run.
	checkpointCondition = `c.digest = ` + keyOfArgs + ` AND c.account = $1`

	// One statement is one snapshot, so version and parts are consistent without a transaction.
	loadCheckpointSQL = `
SELECT c.version, p.name, p.data
FROM checkpoints AS c LEFT JOIN checkpoint_parts AS p ON p.checkpoint = c.id
WHERE ` + checkpointCondition

	// createSQL and advanceSQL begin with the compare-and-set, which locks the row of the
	// checkpoint. Everything else joins its result: without a row nothing changes.
	//
	// All of it sees the snapshot from before a wait for that lock. That is sufficient: a former
	// holder of the lock that committed has changed the version, and the comparison, which is
	// repeated on the newest row, fails. So parts are written only if they have not changed since
	// the snapshot.
	createSQL  = `WITH checkpoint AS (` + createCheckpoint + createParts + savedVersion
	advanceSQL = `WITH checkpoint AS (` + advanceCheckpoint + advanceParts + savedVersion

	// For the owner of a run, the save happens only if the transaction has locked that run.
	createOwnedSQL  = `WITH checkpoint AS (` + createCheckpoint + ` WHERE ` + hasLockedRun + createParts + savedVersion
	advanceOwnedSQL = `WITH checkpoint AS (` + advanceCheckpoint + ` AND ` + hasLockedRun + advanceParts + savedVersion

	// With the end of an execution, a failed save releases the locked run, so that the following
	// statements change nothing.
	createEndingSQL  = `WITH checkpoint AS (` + createCheckpoint + ` WHERE ` + hasLockedRun + createParts + lockOwnedRun
	advanceEndingSQL = `WITH checkpoint AS (` + advanceCheckpoint + ` AND ` + hasLockedRun + advanceParts + lockOwnedRun

	dropEndingSQL = `
WITH checkpoint AS (DELETE FROM checkpoints AS c WHERE ` + checkpointCondition + ` AND c.version = $3 AND ` + hasLockedRun + ` RETURNING c.id)` + lockOwnedRun

	savedVersion = `
SELECT version FROM checkpoint`

	lockOwnedRun = `
SELECT set_config('fermata.run', coalesce((SELECT current_setting('fermata.run', true) FROM checkpoint), ''), true)`

	createCheckpoint = `
    INSERT INTO checkpoints (account, run, version, updated_at) SELECT $1, $2, 1, clock_timestamp()`

	createParts = `
    ON CONFLICT (digest) DO NOTHING
    RETURNING id, version
), put AS (
    INSERT INTO checkpoint_parts (checkpoint, name, data)
    SELECT c.id, part.name, part.data
    FROM checkpoint AS c CROSS JOIN unnest($3::bytea[], $4::bytea[]) AS part (name, data)
)`

	advanceCheckpoint = `
    UPDATE checkpoints AS c SET version = c.version + 1, updated_at = clock_timestamp()
    WHERE ` + checkpointCondition + ` AND c.version = $5`

	advanceParts = `
    RETURNING id, version
), gone AS (
    DELETE FROM checkpoint_parts AS p USING checkpoint AS c, unnest($6::bytea[]) AS part (name)
    WHERE p.checkpoint = c.id AND p.digest = sha256(part.name)
), put AS (
    INSERT INTO checkpoint_parts (checkpoint, name, data)
    SELECT c.id, part.name, part.data
    FROM checkpoint AS c CROSS JOIN unnest($3::bytea[], $4::bytea[]) AS part (name, data)
    ON CONFLICT (checkpoint, digest) DO UPDATE SET data = excluded.data
)`

	// deleteCheckpointSQL also deletes the parts, by the cascade of the foreign key. A second
	// DELETE would not see parts that a save added while this statement waited for its lock; the
	// cascade does.
	deleteCheckpointSQL = `DELETE FROM checkpoints AS c WHERE ` + checkpointCondition
)

// Load returns the newest checkpoint, or [store.ErrNotFound].
func (s *Store) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	var checkpoint store.Checkpoint
	err := s.call(ctx, "load from", func(ctx context.Context) (err error) {
		checkpoint, err = s.load(ctx, key)
		return err
	})
	return checkpoint, err
}

func (s *Store) load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	rows, err := s.pool.Query(ctx, loadCheckpointSQL, []byte(key.Account), []byte(key.Run))
	if err != nil {
		return store.Checkpoint{}, err
	}
	defer rows.Close()
	checkpoint := store.Checkpoint{Parts: map[string][]byte{}}
	for rows.Next() {
		var name pgtype.DriverBytes // valid until the next row
		var data []byte
		if err := rows.Scan(&checkpoint.Version, &name, &data); err != nil {
			return store.Checkpoint{}, err
		}
		if name == nil {
			continue // the row of the left join without a part
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

// Save applies the delta if base is the stored version; see [store.Checkpoints]. It is on the
// server's disk when Save returns.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.saveAs(ctx, nil, key, base, delta)
}

// saveAs saves for the owner of a run, or without a lease.
func (s *Store) saveAs(ctx context.Context, lease *store.Lease, key store.Key, base int64, delta store.Delta) (int64, error) {
	if err := validateSave(key, delta); err != nil {
		return 0, err
	}
	var t txn
	var version int64
	may, saved := true, false
	create, advance := createSQL, advanceSQL
	if lease != nil {
		may, create, advance = false, createOwnedSQL, advanceOwnedSQL
		t.lockRun(&may, lockOwnedSQL, lease.Account, lease.Run, lease.Fence)
	}
	text, values := saveStatement(create, advance, key, store.CheckpointSave{BaseVersion: base, Delta: delta})
	t.queryRow(&saved, []any{&version}, text, values...)
	err := s.update(ctx, "save to", &t)
	switch {
	case err != nil:
		return 0, err
	case !may:
		return 0, store.ErrFenced
	case !saved:
		return 0, store.ErrStale
	}
	return version, nil
}

// saveStatement returns the statement of a save with its arguments.
func saveStatement(create, advance string, key store.Key, save store.CheckpointSave) (text string, values []any) {
	names, data, gone := deltaColumns(save.Delta)
	values = []any{key.Account, key.Run, names, data}
	if save.BaseVersion == 0 {
		return create, values
	}
	return advance, append(values, save.BaseVersion, gone)
}

// Delete removes the checkpoint and its parts. Deleting one that does not exist is not an error.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	var t txn
	t.queue(deleteCheckpointSQL, key.Account, key.Run)
	return s.update(ctx, "delete from", &t)
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
	}
	return nil
}

// deltaColumns converts a delta to array arguments. A statement must not change a row twice, so the
// last value of a name wins, and a name that is put is not deleted.
func deltaColumns(delta store.Delta) (names, data, gone [][]byte) {
	put := make(map[string]int, len(delta.Put))
	names, data = make([][]byte, 0, len(delta.Put)), make([][]byte, 0, len(delta.Put))
	for _, part := range delta.Put {
		value := part.Data
		if value == nil {
			value = []byte{} // nil would be NULL
		}
		if i, ok := put[part.Name]; ok {
			data[i] = value
			continue
		}
		put[part.Name] = len(names)
		names, data = append(names, []byte(part.Name)), append(data, value)
	}
	gone = make([][]byte, 0, len(delta.Delete))
	for _, name := range delta.Delete {
		if _, ok := put[name]; !ok {
			gone = append(gone, []byte(name))
		}
	}
	return names, data, gone
}
