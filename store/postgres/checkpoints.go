package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/store"
)

const (
	// One statement is one snapshot: version and parts always belong together, without a transaction around them.
	loadSQL = `
SELECT c.version, p.name, p.data
FROM checkpoints AS c LEFT JOIN checkpoint_parts AS p ON p.checkpoint = c.id
WHERE c.digest = sha256(sha256($1) || sha256($2))`

	// createSQL and advanceSQL begin with the compare-and-set, which locks the row of the checkpoint. Everything else joins its
	// result: no row, no change.
	//
	// All of it sees the snapshot from before a wait for that lock. That is enough: whoever held the lock and has committed has
	// changed the version, and then the compare, which is done again on the newest row, fails. So parts are
	// written only if nobody has changed them since the snapshot.
	createSQL = `
WITH checkpoint AS (
    INSERT INTO checkpoints (account, run, version, updated_at) VALUES ($1, $2, 1, clock_timestamp())
    ON CONFLICT (digest) DO NOTHING
    RETURNING id, version
), put AS (
    INSERT INTO checkpoint_parts (checkpoint, name, data)
    SELECT c.id, part.name, part.data
    FROM checkpoint AS c CROSS JOIN unnest($3::bytea[], $4::bytea[]) AS part (name, data)
)
SELECT version FROM checkpoint`

	advanceSQL = `
WITH checkpoint AS (
    UPDATE checkpoints SET version = version + 1, updated_at = clock_timestamp()
    WHERE digest = sha256(sha256($1) || sha256($2)) AND version = $5
    RETURNING id, version
), gone AS (
    DELETE FROM checkpoint_parts AS p USING checkpoint AS c, unnest($6::bytea[]) AS part (name)
    WHERE p.checkpoint = c.id AND p.digest = sha256(part.name)
), put AS (
    INSERT INTO checkpoint_parts (checkpoint, name, data)
    SELECT c.id, part.name, part.data
    FROM checkpoint AS c CROSS JOIN unnest($3::bytea[], $4::bytea[]) AS part (name, data)
    ON CONFLICT (checkpoint, digest) DO UPDATE SET data = excluded.data
)
SELECT version FROM checkpoint`

	// removeSQL takes the parts along by the foreign key's cascade. A second DELETE would not see those that a save has added
	// while this statement waited for its lock; the cascade does.
	removeSQL = `DELETE FROM checkpoints WHERE digest = sha256(sha256($1) || sha256($2))`
)

// maxDelta keeps a save well below the gigabyte that PostgreSQL takes in one message and can hold in one value.
const maxDelta = 500_000_000

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
	rows, err := s.pool.Query(ctx, loadSQL, []byte(key.Account), []byte(key.Run))
	if err != nil {
		return store.Checkpoint{}, err
	}
	defer rows.Close()
	checkpoint := store.Checkpoint{Parts: map[string][]byte{}}
	for rows.Next() {
		var name pgtype.DriverBytes // good until the next row
		var data []byte
		if err := rows.Scan(&checkpoint.Version, &name, &data); err != nil {
			return store.Checkpoint{}, err
		}
		if name == nil {
			continue // the left join's row for a checkpoint without parts
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

// Save applies the delta if base is the stored version; see [store.Checkpoints]. It is on the server's disk when Save returns.
func (s *Store) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	err := s.call(ctx, "save to", func(ctx context.Context) error { return s.save(ctx, key, base, delta) })
	if err != nil {
		return 0, err
	}
	return base + 1, nil
}

func (s *Store) save(ctx context.Context, key store.Key, base int64, delta store.Delta) error {
	if err := check(key, delta); err != nil {
		return err
	}
	names, data, gone := columns(delta)
	text, args := createSQL, []any{[]byte(key.Account), []byte(key.Run), names, data}
	if base != 0 {
		text, args = advanceSQL, append(args, base, gone)
	}
	return s.write(ctx, func(conn *pgxpool.Conn) error {
		// Scan returns nil only after the server has said that it is ready for the next statement, and that comes after the
		// commit. The row and the end of the statement come before it and prove nothing.
		var version int64
		err := conn.QueryRow(ctx, text, args...).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrStale
		}
		return err
	})
}

// Delete removes the checkpoint and its parts. Deleting one that does not exist is not an error.
func (s *Store) Delete(ctx context.Context, key store.Key) error {
	return s.call(ctx, "delete from", func(ctx context.Context) error {
		return s.write(ctx, func(conn *pgxpool.Conn) error {
			_, err := conn.Exec(ctx, removeSQL, []byte(key.Account), []byte(key.Run))
			return err
		})
	})
}

// check refuses what must not reach the database.
func check(key store.Key, delta store.Delta) error {
	size := len(key.Account) + len(key.Run)
	if key.Run == "" {
		return store.ErrKey
	}
	for _, name := range delta.Delete {
		if name == "" {
			return store.ErrKey
		}
		size += len(name)
	}
	for _, part := range delta.Put {
		if part.Name == "" {
			return store.ErrKey
		}
		size += len(part.Name) + len(part.Data)
	}
	if size > maxDelta {
		return fmt.Errorf("%w: %d bytes", ErrTooBig, size)
	}
	return nil
}

// columns turns a delta into the arrays of a statement. A statement must not touch a row twice, so of a name that is put twice
// the last one stays, and a name that is put is not deleted.
func columns(delta store.Delta) (names, data, gone [][]byte) {
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
