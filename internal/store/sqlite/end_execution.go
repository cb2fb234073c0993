package sqlite

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	markAppliedSQL = `
UPDATE interrupts SET applied = 1
WHERE account = ?1 AND id = ?2 AND run = ?3 AND state = 'decided' AND applied = 0
RETURNING decided_by, resume`

	// linkResumeSQL records that the ending execution applied a resume. The first execution counts.
	//mutate:sqlite-first-outcome
	linkResumeSQL = `
UPDATE resumes SET rest = 1 + (SELECT rests FROM runs WHERE account = ?1 AND run = ?4)
WHERE account = ?1 AND actor = ?2 AND id = ?3 AND rest IS NULL AND outcome IS NULL`

	// copyOutcomeSQL copies the outcome of the last execution to the resumes that it applied.
	//mutate:sqlite-settle-keeps-outcomes
	copyOutcomeSQL = `
UPDATE resumes INDEXED BY resumes_of_run SET outcome = (SELECT outcome FROM runs WHERE account = ?1 AND run = ?2)
WHERE account = ?1 AND run = ?2 AND outcome IS NULL AND rest = (SELECT rests FROM runs WHERE account = ?1 AND run = ?2)`

	// openInterruptsSQL lists the interrupts that can be withdrawn or reopened.
	openInterruptsSQL = `
SELECT id, state FROM interrupts INDEXED BY interrupts_unapplied
WHERE account = ?1 AND run = ?2 AND applied = 0 AND state <> 'decided' ORDER BY place`

	setInterruptStateSQL = `UPDATE interrupts SET state = ?3 WHERE account = ?1 AND id = ?2`

	// nextPosition is the position after all interrupts of the run.
	nextPosition = `1 + coalesce((SELECT max(place) FROM interrupts INDEXED BY interrupts_of_run WHERE account = ?1 AND run = ?3), 0)`

	interruptRunSQL = `SELECT run FROM interrupts WHERE account = ?1 AND id = ?2`

	addInterruptSQL = `
INSERT INTO interrupts (account, id, run, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline)
VALUES (?1, ?2, ?3, ` + nextPosition + `, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`

	anyUnappliedSQL = `
SELECT 1 FROM interrupts INDEXED BY interrupts_unapplied
WHERE account = ?1 AND run = ?2 AND applied = 0 AND state = 'decided' LIMIT 1`

	endExecutionSQL = `
UPDATE runs SET status = ?3, outcome = ?4, rests = rests + 1, attempts = 0, owner = NULL, lease_until = NULL, updated_at = ?5,
       ready_no = CASE ?3 WHEN 'ready' THEN ` + nextReadyNo + ` ELSE ready_no END
WHERE account = ?1 AND run = ?2`

	interruptsSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_of_run
WHERE i.account = ?1 AND i.run = ?2 ORDER BY i.place`
)

// EndExecution ends an execution; see [store.Runs].
func (s *Store) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	if err := end.Writes.Validate(); err != nil {
		return "", err
	}
	if end.Checkpoint != nil {
		if err := validateSave(store.Key{Account: lease.Account, Run: lease.Run}, end.Checkpoint.Delta); err != nil {
			return "", s.fail(ctx, "end an execution in", err)
		}
	}
	return update(ctx, s, "end an execution in", func(ctx context.Context, t txn) (store.Status, error) { return t.endExecution(ctx, lease, end) })
}

func (t txn) endExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	if err := t.checkLease(ctx, lease); err != nil {
		return "", err
	}
	if err := t.saveCheckpoint(ctx, lease, end.Checkpoint); err != nil {
		return "", err
	}
	if _, err := t.exec(ctx, copyOutcomeSQL, lease.Account, lease.Run); err != nil {
		return "", err
	}
	for _, id := range end.Applied {
		if err := t.markApplied(ctx, lease, id, end.Outcome); err != nil {
			return "", err
		}
	}
	if err := t.showInterrupts(ctx, lease, end.Open, end.Writes.RequestIDs()); err != nil {
		return "", err
	}
	status, err := t.statusAfterEnd(ctx, lease, end.Status)
	if err != nil {
		return "", err
	}
	if _, err = t.exec(ctx, endExecutionSQL, lease.Account, lease.Run, status, end.Outcome, t.now); err != nil {
		return "", err
	}
	if err := t.addEvent(ctx, lease.Account, lease.Run, store.EventKind(end.Status), ""); err != nil {
		return "", err
	}
	return status, t.applyWrites(ctx, lease.Account, end.Writes)
}

// saveCheckpoint saves or drops the checkpoint of a run whose execution ends. Only its owner can
// have changed it, so a stale version means that there is another owner.
func (t txn) saveCheckpoint(ctx context.Context, lease store.Lease, state *store.CheckpointSave) error {
	if state == nil {
		return nil
	}
	if state.Drop {
		dropped, err := t.exec(ctx, dropCheckpointSQL, lease.Account, lease.Run, state.BaseVersion)
		if err == nil && dropped == 0 {
			err = store.ErrFenced
		}
		return err
	}
	err := t.save(ctx, store.Key{Account: lease.Account, Run: lease.Run}, state.BaseVersion, state.Delta)
	if errors.Is(err, store.ErrStale) {
		return store.ErrFenced
	}
	return err
}

// statusAfterEnd returns the status, or StatusReady if a decision arrived. No other write can
// happen before the commit, so no decision is missed.
func (t txn) statusAfterEnd(ctx context.Context, lease store.Lease, status store.Status) (store.Status, error) {
	if status != store.StatusWaiting {
		return status, nil
	}
	//mutate:sqlite-settle-sees-decision
	if come, err := t.exists(ctx, anyUnappliedSQL, lease.Account, lease.Run); err != nil || !come {
		return status, err
	}
	return store.StatusReady, nil
}

// markApplied records that the provider has taken an answer, and links its resume to this
// execution.
func (t txn) markApplied(ctx context.Context, lease store.Lease, id string, outcome []byte) error {
	var actor, resume string
	applied, err := t.queryRow(ctx, []any{&actor, orZero(&resume)}, markAppliedSQL, lease.Account, id, lease.Run)
	if err != nil || !applied || outcome == nil {
		return err
	}
	_, err = t.exec(ctx, linkResumeSQL, lease.Account, actor, resume, lease.Run)
	return err
}

// showInterrupts makes open interrupts visible and withdraws the others. changed lists the requests
// that are changed in the same transaction.
func (t txn) showInterrupts(ctx context.Context, lease store.Lease, open []store.NewInterrupt, changed []string) error {
	still := make(map[string]bool, len(open))
	for _, n := range open {
		still[n.ID] = true
	}
	asked, err := queryAll(ctx, t, scanInterruptRow, openInterruptsSQL, lease.Account, lease.Run)
	if err != nil {
		return err
	}
	for _, i := range asked {
		state, event := store.InterruptWithdrawn, store.EventWithdrawn
		if still[i.id] {
			state, event = store.InterruptPending, store.EventAsked
		}
		if state == i.state {
			continue
		}
		if _, err := t.exec(ctx, setInterruptStateSQL, lease.Account, i.id, state); err != nil {
			return err
		}
		//mutate:sqlite-withdrawal-touches-request
		if state == store.InterruptWithdrawn && !slices.Contains(changed, i.id) {
			if _, err := t.exec(ctx, reviseWithdrawnRequestSQL, lease.Account, i.id, t.now); err != nil {
				return err
			}
		}
		if err := t.addEvent(ctx, lease.Account, lease.Run, event, i.id); err != nil {
			return err
		}
	}
	for _, n := range open {
		if err := t.addInterrupt(ctx, lease, n); err != nil {
			return err
		}
	}
	return nil
}

// interruptRow is the id and state of an interrupt.
type interruptRow struct {
	id    string
	state store.InterruptState
}

func scanInterruptRow(row rowScanner) (i interruptRow, err error) {
	err = row.Scan(&i.id, &i.state)
	return i, err
}

// addInterrupt makes an interrupt visible unless it exists.
func (t txn) addInterrupt(ctx context.Context, lease store.Lease, n store.NewInterrupt) error {
	var asker string
	known, err := t.queryRow(ctx, []any{&asker}, interruptRunSQL, lease.Account, n.ID)
	switch {
	case err != nil:
		return err
	case known && asker != lease.Run:
		return ErrInterruptOfAnotherRun
	case known:
		return nil
	}
	var deadline any
	if n.Timeout > 0 {
		deadline = t.now + micros(n.Timeout)
	}
	_, err = t.exec(ctx, addInterruptSQL, lease.Account, n.ID, lease.Run, n.Address, n.Kind, n.Data, n.AnswerSchema, n.ShownDigest, n.ActionDigest, n.Timeout, t.now, deadline)
	if err != nil {
		return err
	}
	return t.addEvent(ctx, lease.Account, lease.Run, store.EventAsked, n.ID)
}

// Interrupts returns all interrupts of a run; see [store.Runs].
func (s *Store) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	all, err := queryAll(ctx, s.view(), scanInterrupt, interruptsSQL, account, run)
	if err != nil {
		return nil, s.fail(ctx, "list interrupts of", err)
	}
	return all, nil
}
