package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements of one transaction go to the server together, in one round trip, and are one transaction by that: the server commits at
// their end, or nothing at all. Each sees what was committed before it began.
//
// A statement cannot be given what another one found. So the first, which locks the run, leaves the run's key in a setting that lasts
// as long as the transaction, and those that follow work on the run which is named there. If there was nothing to lock, they find no
// run and change nothing.
//
// The lock is taken by a statement of its own because whoever waits for it sees, after the wait, the newest version of the row that it
// waited for, and of all others what was there before the wait. Only the next statement sees everything that the former
// holder has done.
//
// The events of a run have the order of their transactions, by which the feed goes. A transaction gets its number with its first lock of a row, and where
// several wait for one, before it is its turn. So they wait in line for another lock, which gives no number: waitEventLock.
const (
	// setLockedRun leaves the run in hand to the statements that follow; the statement begins with WITH locked AS.
	setLockedRun = `
SELECT set_config('fermata.run', encode(key, 'hex'), true) FROM locked`

	// lockedRunKey is the key of the run that the transaction has locked; NULL or empty if there is none.
	lockedRunKey = `decode(current_setting('fermata.run', true), 'hex')`

	// ofLockedRun is for rows that are found by their own keys. It is said in words that lead to no index: the server would rather look
	// through all that the run has.
	ofLockedRun = `i.run_key IS NOT DISTINCT FROM ` + lockedRunKey

	// hasLockedRun is whether there is one.
	hasLockedRun = `current_setting('fermata.run', true) <> ''`

	// keyOfArgs is the key of a run by its account and id, that of all generations by account and state key, and that of an interrupt by
	// account and id.
	keyOfArgs = `sha256(sha256($1) || sha256($2))`

	// waitEventLock waits until nobody else writes events of the run, before its row is locked; tryEventLock is false if somebody does. Those who lock the row for
	// something else may do so meanwhile.
	waitEventLock = `pg_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 2)) IS NOT NULL`
	tryEventLock  = `pg_try_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 2))`

	// activeCondition is the condition of the index runs_alive.
	activeCondition = `status IN ('ready', 'running', 'waiting', 'parked')`

	// ownedCondition is the condition under which a lease is good. The time does not matter: only the fence does. (It is said in words that
	// lead to no index: as long as few runs have an owner, the server would rather look through all that have.)
	//mutate:postgres-lease-fence
	ownedCondition = `key = ` + keyOfArgs + ` AND account = $1 AND fence = $3 AND status IS NOT DISTINCT FROM 'running'`

	// clockCTE is read once, and after the lock: the statement begins when the run is in hand.
	clockCTE = `clock AS MATERIALIZED (SELECT clock_timestamp() AS now)`

	lockOwnedSQL = `
WITH locked AS (SELECT key FROM runs WHERE ` + ownedCondition + ` AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun

	lockRunSQL = `
WITH locked AS (SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun

	// That it is parked is said in words that lead to no other index.
	lockParkedSQL = `
WITH locked AS (
    SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 AND status IS NOT DISTINCT FROM 'parked' AND ` + waitEventLock + ` FOR NO KEY UPDATE
)` + setLockedRun

	lockActiveRunSQL = `
WITH locked AS (SELECT key FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 AND ` + activeCondition + ` AND ` + waitEventLock + ` FOR NO KEY UPDATE)` + setLockedRun
)

// maxBatch keeps what is sent at once well below the gigabyte that PostgreSQL takes in one message and can hold in one value.
const maxBatch = 500_000_000

// txn is one transaction.
type txn struct{ batch pgx.Batch }

// queue adds a statement. What callers have chosen goes to the server as bytes; the words of the port are no plain strings, and remain text.
func (t *txn) queue(text string, values ...any) *pgx.QueuedQuery {
	for i, value := range values {
		if chosen, ok := value.(string); ok {
			values[i] = []byte(chosen)
		}
	}
	return t.batch.Queue(text, values...)
}

// find adds a statement of which the first row is wanted, if there is one.
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

// changes adds a statement of which only counts whether it changed something.
func (t *txn) execChanged(changed *bool, text string, values ...any) {
	t.queue(text, values...).Exec(func(tag pgconn.CommandTag) error {
		*changed = tag.RowsAffected() > 0
		return nil
	})
}

// lock adds a statement that locks a run.
func (t *txn) lockRun(locked *bool, text string, values ...any) {
	var key string
	t.queryRow(locked, []any{&key}, text, values...)
}

// queryAll adds a statement of which all rows are wanted.
func queryAll[T any](t *txn, all *[]T, scan pgx.RowToFunc[T], text string, values ...any) {
	t.queue(text, values...).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scan)
		if len(found) > 0 {
			*all = found
		}
		return err
	})
}

// size is how many bytes the arguments have.
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

// do runs a transaction that may change something. When it returns nil, the server has said that it is ready for the next one, and
// so has committed. After an error that the server reported nothing was changed; after any other nobody knows.
func (s *Store) update(ctx context.Context, op string, t *txn) error {
	return s.call(ctx, op, func(ctx context.Context) error {
		if size := t.size(); size > maxBatch {
			return fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
		}
		return s.write(ctx, func(conn *pgxpool.Conn) error { return conn.SendBatch(ctx, &t.batch).Close() })
	})
}

// look runs a transaction that only reads.
func (s *Store) view(ctx context.Context, op string, t *txn) error {
	return s.call(ctx, op, func(ctx context.Context) error { return s.pool.SendBatch(ctx, &t.batch).Close() })
}
