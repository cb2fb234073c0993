package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/store"
)

// Those that are over their deadline expire many at a time, all of them or none: it is the commit that takes the time, not what is said in it. So several
// runs are in hand at once. What is asked of a run in hand holds for each of them: nobody else writes events of any of them when the transaction gets its
// number.
const (
	// dueInterruptsSQL goes from what is due to its run, and never from the runs to what they ask.
	dueInterruptsSQL = `
SELECT ` + interruptColumns + `, ` + documentColumns + ` FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account
WHERE i.state = 'pending' AND i.deadline <= least(statement_timestamp(), $2::timestamptz) AND r.` + activeCondition + `
ORDER BY i.deadline LIMIT $1`

	// keysOfArgs are those of runs or interrupts, by their accounts and ids.
	keysOfArgs = `ARRAY(SELECT sha256(sha256(named.account) || sha256(named.id)) FROM unnest($1::bytea[], $2::bytea[]) AS named (account, id))`

	// isActive says it in words that do not lead to the index of all that are.
	isActive = `coalesce(` + activeCondition + `, false)`

	// lockDueSQL takes all of these runs, or none if somebody has one of them in hand. It is its turn with all of them before it locks the first.
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

	// dueKeys are interrupts of the runs in hand that nobody has decided. It is said in words that lead to no index but that of their keys.
	dueKeys = `i.key = ANY (` + keysOfArgs + `) AND i.account = ANY ($1) AND i.state IS NOT DISTINCT FROM 'pending'
  AND encode(i.run_key, 'hex') = ANY (string_to_array(current_setting('fermata.run', true), ','))`

	// stillDueSQL says whether all of them are over their deadline, which is the condition for what follows.
	//mutate:postgres-expiry-still-due
	stillDueSQL = `
WITH ` + clockCTE + `
SELECT ` + markChanged + ` FROM clock CROSS JOIN interrupts AS i
WHERE ` + dueKeys + ` AND i.deadline <= least(clock.now, $3::timestamptz)
HAVING count(*) = cardinality($2)`

	// expireSQL is the same compare-and-set as that of a person: whoever finds an interrupt pending has decided it.
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

// clockActor is who decided what was over its deadline.
const clockActor = "clock"

// dueInterrupt is one that is over its deadline, with its request, if it has one, and what is written when it expires.
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

// Expire expires interrupts whose deadline has passed; see [store.Runs]. After an error it returns
// what it has done until then, too.
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
		expired, err = s.expireEach(ctx, op, by, due) // one of them holds up no other
	}
	slices.SortFunc(expired, func(a, b store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	for _, i := range expired {
		s.publish(i.Account, i.Run)
	}
	return expired, err
}

// expireEach decides each of them in a transaction of its own.
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

// expire decides these interrupts, or puts them off: all of them, or none if somebody else is at one of them.
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
	for _, account := range slices.Sorted(maps.Keys(writes)) { // nobody waits for another in a circle
		if err := t.applyWrites(account, writes[account]); err != nil {
			return nil, false, err
		}
	}
	switch err := s.update(ctx, op, &t); {
	case errors.Is(err, store.ErrStale): // somebody was at it; the next look will find it, if it is still due
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return expired, whole, nil
}

// keyList are runs or interrupts.
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
