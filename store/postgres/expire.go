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
	// dueSQL goes from what is due to its run, and never from the runs to what they ask.
	dueSQL = `
SELECT ` + interruptColumns + `, ` + paperColumns + ` FROM interrupts AS i JOIN runs AS r ON r.key = i.run_key
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account
WHERE i.state = 'pending' AND i.deadline <= least(statement_timestamp(), $2::timestamptz) AND r.` + alive + `
ORDER BY i.deadline LIMIT $1`

	// theseKeys are those of runs or interrupts, by their accounts and ids.
	theseKeys = `ARRAY(SELECT sha256(sha256(named.account) || sha256(named.id)) FROM unnest($1::bytea[], $2::bytea[]) AS named (account, id))`

	// isAlive says it in words that do not lead to the index of all that are.
	isAlive = `coalesce(` + alive + `, false)`

	// lockDueSQL takes all of these runs, or none if somebody has one of them in hand. It is its turn with all of them before it locks the first.
	//mutate:postgres-expiry-waits-for-lock
	lockDueSQL = `
WITH turns AS MATERIALIZED (
    SELECT key FROM runs WHERE key = ANY (` + theseKeys + `) AND account = ANY ($1) AND ` + isAlive + ` AND ` + inTurnNow + `
), locked AS (
    SELECT key FROM runs
    WHERE key = ANY (ARRAY(SELECT key FROM turns)) AND account = ANY ($1) AND ` + isAlive + ` AND (SELECT count(*) FROM turns) = cardinality($2)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT set_config('fermata.run', string_agg(encode(key, 'hex'), ','), true) FROM locked HAVING count(*) = cardinality($2)`

	// theseDue are interrupts of the runs in hand that nobody has decided. It is said in words that lead to no index but that of their keys.
	theseDue = `i.key = ANY (` + theseKeys + `) AND i.account = ANY ($1) AND i.state IS NOT DISTINCT FROM 'pending'
  AND encode(i.run_key, 'hex') = ANY (string_to_array(current_setting('fermata.run', true), ','))`

	// stillDueSQL says whether all of them are over their deadline, which is the condition for what follows.
	//mutate:postgres-expiry-still-due
	stillDueSQL = `
WITH ` + clock + `
SELECT ` + changeIsMade + ` FROM clock CROSS JOIN interrupts AS i
WHERE ` + theseDue + ` AND i.deadline <= least(clock.now, $3::timestamptz)
HAVING count(*) = cardinality($2)`

	// expireSQL is the same compare-and-set as that of a person: whoever finds an interrupt pending has decided it.
	expireSQL = `
WITH ` + clock + `,
expired AS (
    UPDATE interrupts AS i SET state = 'decided', verdict = 'expire', final = '', decided_by = $3, via = '', source = 'clock', decided_at = clock.now
    FROM clock WHERE ` + theseDue + ` AND current_setting('fermata.made', true) = 'on'
    RETURNING i.*
), happened AS (SELECT run_key, count(*) AS count FROM expired GROUP BY run_key),
changed AS (
    UPDATE runs AS r SET events = r.events + happened.count, ` + wake + `
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

// theClock is who decided what was over its deadline.
const theClock = "clock"

// dueInterrupt is one that is over its deadline, with its request, if it has one, and what is written when it expires.
type dueInterrupt struct {
	store.Interrupt
	paper store.Paper
	with  store.Beside
}

func (i dueInterrupt) request() *store.Paper {
	if i.paper.Revision == 0 {
		return nil
	}
	return &i.paper
}

func scanDue(rows pgx.CollectableRow) (i dueInterrupt, err error) {
	err = rows.Scan(append(interruptDest(&i.Interrupt), paperDest(&i.paper)...)...)
	return i, err
}

// Expire decides what is over its deadline; see [store.Runs]. After an error it returns what it has done until then, too.
func (s *Store) Expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Paper) store.Beside) (expired []store.Interrupt, err error) {
	const op = "expire interrupts of"
	var t turn
	var due []dueInterrupt
	by := pgtype.Timestamptz{Time: until, Valid: !until.IsZero()}
	list(&t, &due, scanDue, dueSQL, max(limit, 0), by)
	if err := s.look(ctx, op, &t); err != nil || len(due) == 0 {
		return nil, err
	}
	if beside != nil {
		for i := range due {
			due[i].with = beside(due[i].Interrupt, due[i].request())
		}
	}
	expired, whole, err := s.expire(ctx, op, by, due)
	if len(due) > 1 && (err != nil || !whole) { //mutate:postgres-expiry-falls-back
		expired, err = s.expireEach(ctx, op, by, due) // one of them holds up no other
	}
	slices.SortFunc(expired, func(a, b store.Interrupt) int { return a.Deadline.Compare(b.Deadline) })
	for _, i := range expired {
		s.tell(i.Account, i.Run)
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
	var all, over, runs named
	beside := map[string]store.Beside{}
	for _, i := range due {
		all.add(i.Account, i.ID)
		if !i.with.PutsOff(i.ID) { //mutate:postgres-postponed-not-expired
			over.add(i.Account, i.ID)
		}
		runs.addOnce(i.Account, i.Run)
		with := beside[i.Account]
		with.Papers, with.Audit = append(with.Papers, i.with.Papers...), append(with.Audit, i.with.Audit...)
		beside[i.Account] = with
	}
	var t turn
	var made string
	locked := false
	t.lock(&locked, lockDueSQL, runs.accounts, runs.ids)
	t.find(&whole, []any{&made}, stillDueSQL, all.accounts, all.ids, by)
	list(&t, &expired, scanInterrupt, expireSQL, over.accounts, over.ids, theClock)
	for _, account := range slices.Sorted(maps.Keys(beside)) { // nobody waits for another in a circle
		if err := t.beside(account, beside[account]); err != nil {
			return nil, false, err
		}
	}
	switch err := s.do(ctx, op, &t); {
	case errors.Is(err, store.ErrStale): // somebody was at it; the next look will find it, if it is still due
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return expired, whole, nil
}

// named are runs or interrupts.
type named struct{ accounts, ids [][]byte }

func (n *named) add(account, id string) {
	n.accounts, n.ids = append(n.accounts, []byte(account)), append(n.ids, []byte(id))
}

func (n *named) addOnce(account, id string) {
	for i := range n.ids {
		if string(n.accounts[i]) == account && string(n.ids[i]) == id {
			return
		}
	}
	n.add(account, id)
}
