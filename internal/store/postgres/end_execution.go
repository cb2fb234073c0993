package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// markAppliedSQL records that the provider has taken answers. If there is an outcome, it links
	// their resumes to the ending execution. The first execution counts.
	markAppliedSQL = `
WITH applied AS (
    UPDATE interrupts AS i SET applied = true
    WHERE i.key = ANY (ARRAY(SELECT sha256(sha256($1) || sha256(id)) FROM unnest($2::bytea[]) AS taken (id)))
      AND i.account = $1 AND ` + ofLockedRun + ` AND i.state IS NOT DISTINCT FROM 'decided' AND i.applied IS NOT TRUE
    RETURNING i.resume_key
)
UPDATE resumes AS p SET rest = r.rests + 1 FROM runs AS r CROSS JOIN (SELECT DISTINCT resume_key FROM applied) AS a
WHERE $3 AND r.key = ` + lockedRunKey + ` AND r.account = $1 AND p.key = a.resume_key AND p.account = $1 AND p.rest IS NULL AND p.outcome IS NULL`

	// endExecutionSQL makes open interrupts visible, withdraws the others, copies the last outcome
	// to the resumes that it belongs to, and releases the run. The new status depends on other
	// tables. No other transaction can change them for this run, and the statement began after the
	// lock was taken. (The statement that waits for the lock would see the state before the wait,
	// and miss a decision.)
	//
	// An interrupt id of another run is a unique violation.
	//mutate:postgres-settle-statement
	endExecutionSQL = `
WITH ` + clockCTE + `,
run AS MATERIALIZED (SELECT key, run, places FROM runs WHERE key = ` + lockedRunKey + ` AND account = $1),
open AS MATERIALIZED (
    SELECT sha256(sha256($1) || sha256(id)) AS key, *
    FROM unnest($4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bigint[], $12::bigint[], $13::timestamptz[])
         WITH ORDINALITY AS o (id, address, kind, data, answer_schema, shown, action, timeout, micros, deadline, n)
), turned AS (
    UPDATE interrupts AS i SET state = CASE i.state WHEN 'pending' THEN 'withdrawn' ELSE 'pending' END
    WHERE i.run_key = ` + lockedRunKey + ` AND i.account = $1 AND NOT i.applied AND i.state <> 'decided'
      AND (i.state = 'pending') <> (i.key IN (SELECT key FROM open))
    RETURNING i.id, i.state, i.place
), moved AS (` + reviseWithdrawnRequests + ` FROM clock CROSS JOIN turned AS i WHERE i.state = 'withdrawn' AND i.id <> ALL ($14::bytea[]) AND ` + requestCondition + `),
asked AS (
    INSERT INTO interrupts (account, id, run, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline)
    SELECT $1, o.id, run.run, run.places + o.n, o.address, o.kind, o.data, o.answer_schema, o.shown, o.action, o.timeout, clock.now,
           coalesce(o.deadline, CASE WHEN o.timeout > 0 THEN clock.now + o.micros * interval '1 microsecond' END)
    FROM run CROSS JOIN clock CROSS JOIN open AS o
    WHERE NOT EXISTS (SELECT FROM interrupts AS known WHERE known.key = o.key AND known.run_key IS NOT DISTINCT FROM run.key)
    RETURNING id, place
), happened AS MATERIALIZED (
    SELECT CASE state WHEN 'pending' THEN 'asked' ELSE state END AS kind, id AS interrupt, place FROM turned
    UNION ALL SELECT 'asked', id, place FROM asked
    UNION ALL SELECT $2::text, '', NULL
), settled AS (
    SELECT (SELECT count(*) FROM happened) AS count, CASE
           WHEN $2 = 'waiting' AND EXISTS (
               SELECT FROM interrupts WHERE run_key = ` + lockedRunKey + ` AND account = $1 AND NOT applied AND state = 'decided') THEN 'ready'
           ELSE $2 END AS status
), handed AS (
    UPDATE resumes AS p SET outcome = r.outcome FROM runs AS r
    WHERE r.key = ` + lockedRunKey + ` AND r.account = $1 AND r.outcome IS NOT NULL
      AND p.run_key = ` + lockedRunKey + ` AND p.account = $1 AND p.rest = r.rests AND p.outcome IS NULL
), changed AS (
    UPDATE runs AS r SET status = settled.status, outcome = $3, rests = r.rests + 1, attempts = 0, owner = NULL, lease_until = NULL, updated_at = clock.now,
           ready_no = CASE settled.status WHEN 'ready' THEN nextval('ready_numbers') ELSE r.ready_no END,
           events = r.events + settled.count, places = r.places + cardinality($4)
    FROM settled CROSS JOIN clock WHERE r.key = ` + lockedRunKey + ` AND r.account = $1
    RETURNING r.account, r.run, r.status, r.events - settled.count AS before
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at)
    SELECT r.account, r.run, r.before + row_number() OVER (ORDER BY h.place), h.kind, h.interrupt, clock.now
    FROM changed AS r CROSS JOIN happened AS h CROSS JOIN clock ORDER BY h.place
)
SELECT status FROM changed`

	interruptsSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i
WHERE i.run_key = ` + keyOfArgs + ` AND i.account = $1 ORDER BY i.place`
)

// EndExecution ends an execution; see [store.Runs].
func (s *Store) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (status store.Status, err error) {
	var t txn
	locked, rested := false, false
	t.lockRun(&locked, lockOwnedSQL, lease.Account, lease.Run, lease.Fence)
	if err := t.saveCheckpoint(lease, end.Checkpoint); err != nil {
		return "", err
	}
	if len(end.Applied) > 0 {
		t.queue(markAppliedSQL, lease.Account, bytesColumn(end.Applied), end.Outcome != nil)
	}
	said := append([]any{lease.Account, end.Status, end.Outcome}, interruptArgs(end.Open, end.Writes)...)
	t.queryRow(&rested, []any{(*string)(&status)}, endExecutionSQL, append(said, bytesColumn(end.Writes.RequestIDs()))...)
	if err := t.applyWritesOfRun(lease.Account, end.Writes); err != nil {
		return "", err
	}
	err = s.update(ctx, "end an execution in", &t)
	switch {
	case violates(err, "interrupts_pkey"):
		return "", wrap("end an execution in", s.name, ErrInterruptOfAnotherRun)
	case err != nil:
		return "", err
	case !rested:
		return "", store.ErrFenced
	}
	s.publish(lease.Account, lease.Run)
	return status, nil
}

// saveCheckpoint adds the save or the deletion of the checkpoint of a run whose execution ends.
// Only its owner can have changed it, so a stale version means that there is another owner.
func (t *txn) saveCheckpoint(lease store.Lease, state *store.CheckpointSave) error {
	if state == nil {
		return nil
	}
	key := store.Key{Account: lease.Account, Run: lease.Run}
	if err := validateSave(key, state.Delta); err != nil {
		return err
	}
	if state.Drop {
		t.queue(dropEndingSQL, key.Account, key.Run, state.BaseVersion)
		return nil
	}
	text, values := saveStatement(createEndingSQL, advanceEndingSQL, key, *state)
	t.queue(text, values...)
	return nil
}

// interruptArgs returns the arguments of endExecutionSQL for the open interrupts. Of several with
// one id the first counts. A request that is created with its interrupt may set the deadline; then
// the row is written once.
func interruptArgs(open []store.NewInterrupt, writes store.Writes) []any {
	ids, addresses, kinds, data, schemas, shown, actions := [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}
	timeouts, whole, deadlines := []int64{}, []int64{}, []pgtype.Timestamptz{}
	until := make(map[string]time.Time)
	for _, p := range writes.Documents {
		if p.Kind == store.RequestDocument {
			until[p.ID] = p.InterruptDeadline
		}
	}
	seen := make(map[string]bool, len(open))
	for _, n := range open {
		if seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		ids, addresses, kinds = append(ids, []byte(n.ID)), append(addresses, []byte(n.Address)), append(kinds, []byte(n.Kind))
		data, schemas = append(data, n.Data), append(schemas, n.AnswerSchema)
		shown, actions = append(shown, []byte(n.ShownDigest)), append(actions, []byte(n.ActionDigest))
		timeouts, whole, deadlines = append(timeouts, int64(n.Timeout)), append(whole, micros(n.Timeout)), append(deadlines, microsUp(until[n.ID]))
	}
	return []any{ids, addresses, kinds, data, schemas, shown, actions, timeouts, whole, deadlines}
}

// Interrupts returns all interrupts of a run; see [store.Runs].
func (s *Store) Interrupts(ctx context.Context, account, run string) (all []store.Interrupt, err error) {
	var t txn
	queryAll(&t, &all, scanInterrupt, interruptsSQL, account, run)
	return all, s.view(ctx, "list interrupts of", &t)
}
