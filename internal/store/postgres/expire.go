package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

// Interrupts expire in batches, all of a batch or none, because the commit is the expensive part.
// So several runs are locked at once. The rule for a locked run holds for each of them: no other
// transaction writes events of any of them when the transaction gets its number.
const (
	// dueInterruptsSQL joins from due interrupts to their runs, never from runs to interrupts.
	dueInterruptsSQL = `
SELECT ` + interruptColumns + `, ` + documentColumns + ` FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account
WHERE i.state = 'pending' AND i.deadline <= least(statement_timestamp(), $2::timestamptz) AND r.` + activeCondition + `
ORDER BY i.deadline LIMIT $1`

	// keysOfArgs returns the keys of runs or interrupts by account and id.
	keysOfArgs = `ARRAY(SELECT sha256(sha256(named.account) || sha256(named.id)) FROM unnest($1::bytea[], $2::bytea[]) AS named (account, id))`

	// isActive is written so that the planner does not use the index of active runs.
	isActive = `coalesce(` + activeCondition + `, false)`

	// lockDueSQL locks all of these runs, or none if one of them is locked. It has the event locks
	// of all of them before it locks the first row.
	//mutate:postgres-expiry-waits-for-lock
	lockDueSQL = `
WITH turns AS MATERIALIZED (
    SELECT key FROM runs WHERE key = ANY (` + keysOfArgs + `) AND account = ANY ($1) AND ` + isActive + ` AND ` + tryEventLock + `
), locked AS (
    SELECT key FROM runs
    WHERE key = ANY (ARRAY(SELECT key FROM turns)) AND account = ANY ($1) AND ` + isActive + ` AND (SELECT count(*) FROM turns) = cardinality($2)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT set_config('fermata.run', string_agg(encode(key, 'hex'), ','), true) FROM locked HAVING count(*) = cardinality($2)`

	// dueKeys selects pending interrupts of the locked runs. It is written so that the planner uses
	// only the index of their keys.
	dueKeys = `i.key = ANY (` + keysOfArgs + `) AND i.account = ANY ($1) AND i.state IS NOT DISTINCT FROM 'pending'
  AND encode(i.run_key, 'hex') = ANY (string_to_array(current_setting('fermata.run', true), ','))`

	// stillDueSQL reports whether all of them are past their deadline, which is the condition for
	// what follows.
	//mutate:postgres-expiry-still-due
	stillDueSQL = `
WITH ` + clockCTE + `
SELECT ` + markChanged + ` FROM clock CROSS JOIN interrupts AS i
WHERE ` + dueKeys + ` AND i.deadline <= least(clock.now, $3::timestamptz)
HAVING count(*) = cardinality($2)`

	// expireSQL is the same compare-and-set as for a person: the first writer that finds an
	// interrupt pending decides it.
	expireSQL = `
WITH ` + clockCTE + `,
expired AS (
    UPDATE interrupts AS i SET state = 'decided', verdict = 'expire', final = '', decided_by = $3, via = '', source = 'clock', decided_at = clock.now
    FROM clock WHERE ` + dueKeys + ` AND current_setting('fermata.made', true) = 'on'
    RETURNING i.*
), happened AS (SELECT run_key, count(*) AS count FROM expired GROUP BY run_key),
changed AS (
    UPDATE runs AS r SET events = r.events + happened.count, ` + wakeRun + `
    FROM clock CROSS JOIN happened
    WHERE r.key = ANY (ARRAY(SELECT run_key FROM happened)) AND r.key = happened.run_key AND r.account = ANY ($1)
    RETURNING r.key, r.account, r.run, r.events - happened.count AS before
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at)
    SELECT r.account, r.run, r.before + row_number() OVER (PARTITION BY r.key ORDER BY i.deadline, i.place), 'expired', i.id, i.decided_at
    FROM changed AS r JOIN expired AS i ON i.run_key = r.key ORDER BY i.deadline, i.place
)
SELECT ` + interruptColumns + ` FROM expired AS i`
)

// clockActor is the actor of expired interrupts.
const clockActor = "clock"

// dueInterrupt is an interrupt past its deadline, with its request, if any, and the writes of its
// expiry.
type dueInterrupt struct {
	store.Interrupt
	document store.Document
	writes   store.Writes
}

func (i dueInterrupt) request() *store.Document {
	if i.document.Revision == 0 {
		return nil
	}
	return &i.document
}

func scanDue(rows pgx.CollectableRow) (i dueInterrupt, err error) {
	err = rows.Scan(append(interruptDest(&i.Interrupt), documentDest(&i.document)...)...)
	return i, err
}

// Expire expires interrupts whose deadline has passed; see [store.Runs]. With an error it also
// returns the interrupts that expired before it.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, writes func(store.Interrupt, *store.Document) store.Writes) (expired []store.Interrupt, err error) {
	const op = "expire interrupts of"
	var t txn
	var due []dueInterrupt
	by := pgtype.Timestamptz{Time: until, Valid: !until.IsZero()}
	queryAll(&t, &due, scanDue, dueInterruptsSQL, max(limit, 0), by)
	if err := s.view(ctx, op, &t); err != nil || len(due) == 0 {
		return nil, err
	}
	if writes != nil {
		for i := range due {
			due[i].writes = writes(due[i].Interrupt, due[i].request())
		}
	}
	expired, whole, err := s.expire(ctx, op, by, due)
	if len(due) > 1 && (err != nil || !whole) { //mutate:postgres-expiry-falls-back
		expired, err = s.expireEach(ctx, op, by, due) // one of them must not block the others
	}
	slices.SortFunc(expired, func(a, b store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	for _, i := range expired {
		s.publish(i.Account, i.Run)
	}
	return expired, err
}

// expireEach expires each of them in its own transaction.
func (s *Store) expireEach(ctx context.Context, op string, by pgtype.Timestamptz, due []dueInterrupt) (expired []store.Interrupt, err error) {
	for i := range due {
		done, _, err := s.expire(ctx, op, by, due[i:i+1])
		if err != nil {
			return expired, err
		}
		expired = append(expired, done...)
	}
	return expired, nil
}

// expire expires or postpones these interrupts: all of them, or none if one of them is locked.
func (s *Store) expire(ctx context.Context, op string, by pgtype.Timestamptz, due []dueInterrupt) (expired []store.Interrupt, whole bool, err error) {
	var all, over, runs keyList
	writes := map[string]store.Writes{}
	for _, i := range due {
		all.add(i.Account, i.ID)
		if !i.writes.Postpones(i.ID) { //mutate:postgres-postponed-not-expired
			over.add(i.Account, i.ID)
		}
		runs.addOnce(i.Account, i.Run)
		with := writes[i.Account]
		with.Documents, with.Audit = append(with.Documents, i.writes.Documents...), append(with.Audit, i.writes.Audit...)
		writes[i.Account] = with
	}
	var t txn
	var made string
	locked := false
	t.lockRun(&locked, lockDueSQL, runs.accounts, runs.ids)
	t.queryRow(&whole, []any{&made}, stillDueSQL, all.accounts, all.ids, by)
	queryAll(&t, &expired, scanInterrupt, expireSQL, over.accounts, over.ids, clockActor)
	for _, account := range slices.Sorted(maps.Keys(writes)) { // a fixed order avoids deadlocks
		if err := t.applyWrites(account, writes[account]); err != nil {
			return nil, false, err
		}
	}
	switch err := s.update(ctx, op, &t); {
	// another call was faster; the next call finds it if it is still due
	case errors.Is(err, store.ErrStale):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return expired, whole, nil
}

// keyList holds the keys of runs or interrupts.
type keyList struct{ accounts, ids [][]byte }

func (n *keyList) add(account, id string) {
	n.accounts, n.ids = append(n.accounts, []byte(account)), append(n.ids, []byte(id))
}

func (n *keyList) addOnce(account, id string) {
	for i := range n.ids {
		if string(n.accounts[i]) == account && string(n.ids[i]) == id {
			return
		}
	}
	n.add(account, id)
}
