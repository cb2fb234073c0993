package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// same condition as the index runs_over
	finishedCondition = `status IN ('completed', 'failed', 'cancelled', 'superseded')`

	finishedRunsSQL = `
SELECT account, run, state_key, generation, provider, graph, ref, NULL, NULL, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at
FROM runs INDEXED BY runs_over WHERE ` + finishedCondition + ` AND updated_at < ?1 AND updated_at >= ?2
ORDER BY updated_at, account, run LIMIT ?3`

	runSQL    = `SELECT ` + runColumns + ` FROM runs WHERE account = ?1 AND run = ?2`
	statusSQL = `SELECT status FROM runs WHERE account = ?1 AND run = ?2`

	resumesOfSQL = `
SELECT s.actor, s.id, s.body, ` + receiptColumns + ` FROM resumes AS s INDEXED BY resumes_of_run WHERE s.account = ?1 AND s.run = ?2`

	// interruptsOfRun selects the interrupts of a run, to find its effects.
	interruptsOfRun = `(SELECT id FROM interrupts INDEXED BY interrupts_of_run WHERE account = ?1 AND run = ?2)`

	effectsOfSQL = `SELECT ` + effectColumns + ` FROM effects WHERE account = ?1 AND interrupt IN ` + interruptsOfRun

	// The order follows the foreign keys.
	deleteEffectsSQL    = `DELETE FROM effects WHERE account = ?1 AND interrupt IN ` + interruptsOfRun
	deleteInterruptsSQL = `DELETE FROM interrupts INDEXED BY interrupts_of_run WHERE account = ?1 AND run = ?2`
	deleteResumesSQL    = `DELETE FROM resumes INDEXED BY resumes_of_run WHERE account = ?1 AND run = ?2`
	deleteEventsSQL     = `DELETE FROM events WHERE account = ?1 AND run = ?2`
	deleteRunSQL        = `DELETE FROM runs WHERE account = ?1 AND run = ?2`

	namedValueSQL    = `SELECT value FROM once WHERE name = ?1`
	addNamedValueSQL = `INSERT INTO once (name, value) VALUES (?1, ?2)`
)

// FinishedRuns returns runs that ended before a time; see [store.Maintenance].
func (s *Store) FinishedRuns(ctx context.Context, from, before time.Time, limit int) ([]store.Run, error) {
	// Rounded up, so that runs that ended in the same microsecond before the time are included.
	until := microsUp(before)
	runs, err := queryAll(ctx, s.view(), scanRun, finishedRunsSQL, until, microsUp(from), pageSize(limit, 1000))
	if err != nil {
		return nil, s.fail(ctx, "list finished runs of", err)
	}
	return runs, nil
}

// DeleteRun deletes a run that has ended; see [store.Maintenance].
func (s *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, s, "delete a run in", func(ctx context.Context, t txn) (struct{}, error) {
		return struct{}{}, t.deleteRun(ctx, account, run, writes)
	})
	return err
}

func (t txn) deleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	var status store.Status
	switch known, err := t.queryRow(ctx, []any{&status}, statusSQL, account, run); {
	case err != nil || !known:
		return err
	case status.Active():
		return store.ErrRunActive
	}
	for _, text := range []string{deleteEffectsSQL, deleteInterruptsSQL, deleteResumesSQL, deleteEventsSQL, deleteDocumentsSQL, deleteCheckpointSQL, deleteRunSQL} {
		if _, err := t.exec(ctx, text, account, run); err != nil {
			return err
		}
	}
	return t.applyWrites(ctx, account, writes)
}

// History returns everything that is stored about a run; see [store.Maintenance].
func (s *Store) History(ctx context.Context, account, run string) (store.History, error) {
	return snapshot(ctx, s, "read the history of a run in", func(t txn) (store.History, error) { return t.history(ctx, account, run) })
}

func (t txn) history(ctx context.Context, account, run string) (h store.History, err error) {
	known, err := t.queryRow(ctx, runDest(&h.Run), runSQL, account, run)
	if err == nil && !known {
		err = store.ErrNotFound
	}
	if err == nil {
		h.Interrupts, err = queryAll(ctx, t, scanInterrupt, interruptsSQL, account, run)
	}
	if err == nil {
		h.Resumes, err = queryAll(ctx, t, scanResume, resumesOfSQL, account, run)
	}
	if err == nil {
		h.Effects, err = queryAll(ctx, t, scanEffect, effectsOfSQL, account, run)
	}
	if err == nil {
		h.Events, err = queryAll(ctx, t, scanEvent, eventsSQL, account, run, 0, -1)
	}
	if err == nil {
		h.Documents, err = queryAll(ctx, t, scanDocument, documentsOfRunSQL, account, run)
	}
	if err != nil {
		return store.History{}, err
	}
	slices.SortFunc(h.Resumes, func(a, b store.Resume) int {
		return cmp.Or(a.Receipt.At.Compare(b.Receipt.At), cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(h.Effects, func(a, b store.Effect) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Interrupt, b.Interrupt), cmp.Compare(a.Attempt, b.Attempt))
	})
	return h, nil
}

func scanResume(row rowScanner) (r store.Resume, err error) {
	err = row.Scan(append([]any{&r.Actor, &r.ID, &r.BodyDigest}, receiptDest(&r.Receipt)...)...)
	return r, err
}

func scanEffect(row rowScanner) (line store.Effect, err error) {
	err = row.Scan(effectDest(&line)...)
	return line, err
}

// PutIfAbsent stores a value under a name unless there is one; see [store.Maintenance]. Reading an
// existing value does not block writers.
func (s *Store) PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error) {
	const op = "store a value in"
	if name == "" {
		return nil, store.ErrInvalid
	}
	if kept, known, err := s.view().putIfAbsent(ctx, name); err != nil {
		return nil, s.fail(ctx, op, err)
	} else if known {
		return kept, nil
	}
	return update(ctx, s, op, func(ctx context.Context, t txn) ([]byte, error) {
		kept, known, err := t.putIfAbsent(ctx, name)
		if err != nil || known {
			return kept, err
		}
		kept = append([]byte{}, value...) // never nil, which would be NULL
		_, err = t.exec(ctx, addNamedValueSQL, name, kept)
		return kept, err
	})
}

func (t txn) putIfAbsent(ctx context.Context, name string) (value []byte, known bool, err error) {
	known, err = t.queryRow(ctx, []any{bytesScanner{&value}}, namedValueSQL, name)
	return value, known, err
}
