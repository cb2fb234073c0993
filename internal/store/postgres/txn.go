package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The statements of one transaction are sent to the server together, in one round trip, which makes
// them one transaction: the server commits at their end, or nothing. Each statement sees what was
// committed before it began.
//
// A statement cannot use the result of another one on the client. So the first one, which locks the
// run, stores the run's key in a transaction-local setting, and the following ones work on that
// run. If there was nothing to lock, they find no run and change nothing.
//
// The lock is taken by a separate statement. A statement that waits for a lock sees, after the
// wait, the newest version of that row but the old versions of all other rows. Only the next
// statement sees everything that the former holder committed.
//
// The events of a run must be in the order of their transactions, which the feed uses. A
// transaction gets its number with its first row lock, and if several wait for one, before they get
// it. So they first wait for an advisory lock, which assigns no number: waitEventLock.
const (
	// setLockedRun passes the locked run to the following statements; the statement begins with
	// WITH locked AS.
	setLockedRun = `
SELECT set_config('fermata.run', encode(key, 'hex'), true) FROM locked`

	// lockedRunKey is the key of the run that the transaction has locked; NULL or empty if there is
	// none.
	lockedRunKey = `decode(current_setting('fermata.run', true), 'hex')`

	// ofLockedRun selects rows that are found by their own keys. It is written so that the planner
	// does not use the index of the run.
	ofLockedRun = `i.run_key IS NOT DISTINCT FROM ` + lockedRunKey

	// hasLockedRun reports whether a run is locked.
	hasLockedRun = `current_setting('fermata.run', true) <> ''`

	// keyOfArgs is the key of a run by account and id, of all generations by account and state key,
	// and of an interrupt by account and id.
	keyOfArgs = `sha256(sha256($1) || sha256($2))`

	// waitEventLock waits until no other transaction writes events of the run, before its row is
	// locked; tryEventLock is false if there is one. Transactions that lock the row for another
	// purpose are not affected.
	waitEventLock = `pg_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 2)) IS NOT NULL`
	tryEventLock  = `pg_try_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 2))`

	// activeCondition is the condition of the index runs_alive.
	activeCondition = `status IN ('ready', 'running', 'waiting', 'parked')`

	// ownedCondition holds while a lease is valid. Only the fence matters, not the time. (It is
	// written so that the planner does not use the index of running runs.)
	//mutate:postgres-lease-fence
	ownedCondition = `key = ` + keyOfArgs + ` AND account = $1 AND fence = $3 AND status IS NOT DISTINCT FROM 'running'`

	// clockCTE is read once, after the lock: the statement begins when the run is locked.
	clockCTE = `clock AS MATERIALIZED (SELECT clock_timestamp() AS now)`

	lockOwnedSQL = `
WITH locked AS (SELECT key FROM runs WHERE ` + ownedCondition + ` AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun

	lockRunSQL = `
WITH locked AS (SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun

	// The condition is written so that the planner uses no other index.
	lockRetryableSQL = `
WITH locked AS (
    SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1
        AND (status IS NOT DISTINCT FROM 'parked' OR status IS NOT DISTINCT FROM 'failed' AND NOT EXISTS (
            SELECT FROM runs AS newer WHERE newer.handle = runs.handle AND newer.generation > runs.generation))
        AND ` + waitEventLock + ` FOR NO KEY UPDATE
)` + setLockedRun

	lockActiveRunSQL = `
WITH locked AS (SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 AND ` + activeCondition + ` AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun
)

// maxBatch limits a batch to well below the gigabyte that PostgreSQL accepts in one message.
const maxBatch = 500_000_000

// txn is one transaction.
type txn struct{ batch pgx.Batch }

// queue adds a statement. Strings from callers are sent as bytes; the string types of the port stay
// text.
func (t *txn) queue(text string, values ...any) *pgx.QueuedQuery {
	for i, value := range values {
		if chosen, ok := value.(string); ok {
			values[i] = []byte(chosen)
		}
	}
	return t.batch.Queue(text, values...)
}

// queryRow adds a statement and scans its first row, if there is one.
func (t *txn) queryRow(found *bool, dest []any, text string, values ...any) {
	t.queue(text, values...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(dest...)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		*found = err == nil
		return err
	})
}

// execChanged adds a statement and reports whether it changed rows.
func (t *txn) execChanged(changed *bool, text string, values ...any) {
	t.queue(text, values...).Exec(func(tag pgconn.CommandTag) error {
		*changed = tag.RowsAffected() > 0
		return nil
	})
}

// lockRun adds a statement that locks a run.
func (t *txn) lockRun(locked *bool, text string, values ...any) {
	var key string
	t.queryRow(locked, []any{&key}, text, values...)
}

// queryAll adds a statement and collects all rows.
func queryAll[T any](t *txn, all *[]T, scan pgx.RowToFunc[T], text string, values ...any) {
	t.queue(text, values...).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scan)
		if len(found) > 0 {
			*all = found
		}
		return err
	})
}

// size returns the number of bytes of the arguments.
func (t *txn) size() (size int) {
	for _, query := range t.batch.QueuedQueries {
		for _, value := range query.Arguments {
			switch value := value.(type) {
			case []byte:
				size += len(value)
			case [][]byte:
				for _, data := range value {
					size += len(data)
				}
			case []*string:
				for _, text := range value {
					if text != nil {
						size += len(*text)
					}
				}
			}
		}
	}
	return size
}

// update runs a write transaction. When it returns nil, the server has confirmed the commit. After
// an error that the server reported, nothing was changed; after any other error the outcome is
// unknown.
func (s *Store) update(ctx context.Context, op string, t *txn) error {
	return s.call(ctx, op, func(ctx context.Context) error {
		if size := t.size(); size > maxBatch {
			return fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
		}
		return s.write(ctx, func(conn *pgxpool.Conn) error { return conn.SendBatch(ctx, &t.batch).Close() })
	})
}

// view runs a read-only transaction.
func (s *Store) view(ctx context.Context, op string, t *txn) error {
	return s.call(ctx, op, func(ctx context.Context) error { return s.pool.SendBatch(ctx, &t.batch).Close() })
}
