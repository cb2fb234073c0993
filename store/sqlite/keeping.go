package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

const (
	over = `status IN ('completed', 'failed', 'cancelled', 'superseded')` // the words of the index runs_over

	finishedSQL = `
SELECT account, run, state_key, generation, provider, graph, ref, NULL, NULL, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at
FROM runs INDEXED BY runs_over WHERE ` + over + ` AND updated_at < ?1 AND updated_at >= ?2
ORDER BY updated_at, account, run LIMIT ?3`

	runSQL    = `SELECT ` + runColumns + ` FROM runs WHERE account = ?1 AND run = ?2`
	statusSQL = `SELECT status FROM runs WHERE account = ?1 AND run = ?2`

	resumesOfSQL = `
SELECT s.actor, s.id, s.body, ` + receiptColumns + ` FROM resumes AS s INDEXED BY resumes_of_run WHERE s.account = ?1 AND s.run = ?2`

	// ofRun are the interrupts of a run, through which its effects are found.
	ofRun = `(SELECT id FROM interrupts INDEXED BY interrupts_of_run WHERE account = ?1 AND run = ?2)`

	effectsOfSQL = `SELECT ` + effectColumns + ` FROM effects WHERE account = ?1 AND interrupt IN ` + ofRun

	// In this order, because each refers to those that come later.
	forgetEffectsSQL    = `DELETE FROM effects WHERE account = ?1 AND interrupt IN ` + ofRun
	forgetInterruptsSQL = `DELETE FROM interrupts INDEXED BY interrupts_of_run WHERE account = ?1 AND run = ?2`
	forgetResumesSQL    = `DELETE FROM resumes INDEXED BY resumes_of_run WHERE account = ?1 AND run = ?2`
	forgetEventsSQL     = `DELETE FROM events WHERE account = ?1 AND run = ?2`
	forgetRunSQL        = `DELETE FROM runs WHERE account = ?1 AND run = ?2`

	onceSQL     = `SELECT value FROM once WHERE name = ?1`
	keepOnceSQL = `INSERT INTO once (name, value) VALUES (?1, ?2)`
)

// Finished returns runs that were over before a time; see [store.Keeping].
func (s *Store) Finished(ctx context.Context, from, before time.Time, limit int) ([]store.Run, error) {
	// Rounded up: what was over in this very microsecond was so before the time, if that is later in it.
	until := ceilMicro(before)
	runs, err := list(ctx, s.look(), scanRun, finishedSQL, until, ceilMicro(from), page(limit, 1000))
	if err != nil {
		return nil, s.fail(ctx, "list finished runs of", err)
	}
	return runs, nil
}

// Forget deletes a run that is over; see [store.Keeping].
func (s *Store) Forget(ctx context.Context, account, run string, beside store.Beside) error {
	if err := beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, s, "forget a run in", func(ctx context.Context, t turn) (struct{}, error) {
		return struct{}{}, t.forget(ctx, account, run, beside)
	})
	return err
}

func (t turn) forget(ctx context.Context, account, run string, beside store.Beside) error {
	var status store.Status
	switch known, err := t.find(ctx, []any{&status}, statusSQL, account, run); {
	case err != nil || !known:
		return err
	case status.Alive():
		return store.ErrAlive
	}
	for _, text := range []string{forgetEffectsSQL, forgetInterruptsSQL, forgetResumesSQL, forgetEventsSQL, forgetPapersSQL, removeSQL, forgetRunSQL} {
		if _, err := t.exec(ctx, text, account, run); err != nil {
			return err
		}
	}
	return t.beside(ctx, account, beside)
}

// History returns everything that is known of a run; see [store.Keeping].
func (s *Store) History(ctx context.Context, account, run string) (store.History, error) {
	return see(ctx, s, "read the history of a run in", func(t turn) (store.History, error) { return t.history(ctx, account, run) })
}

func (t turn) history(ctx context.Context, account, run string) (h store.History, err error) {
	known, err := t.find(ctx, runDest(&h.Run), runSQL, account, run)
	if err == nil && !known {
		err = store.ErrNotFound
	}
	if err == nil {
		h.Interrupts, err = list(ctx, t, scanInterrupt, interruptsSQL, account, run)
	}
	if err == nil {
		h.Resumes, err = list(ctx, t, scanResume, resumesOfSQL, account, run)
	}
	if err == nil {
		h.Effects, err = list(ctx, t, scanEffect, effectsOfSQL, account, run)
	}
	if err == nil {
		h.Events, err = list(ctx, t, scanEvent, eventsSQL, account, run, 0, -1)
	}
	if err == nil {
		h.Papers, err = list(ctx, t, scanPaper, papersOfSQL, account, run)
	}
	if err != nil {
		return store.History{}, err
	}
	slices.SortFunc(h.Resumes, func(a, b store.Resume) int {
		return cmp.Or(a.Receipt.At.Compare(b.Receipt.At), cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(h.Effects, func(a, b store.Effect) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Interrupt, b.Interrupt), cmp.Compare(a.Number, b.Number))
	})
	return h, nil
}

func scanResume(row scanner) (r store.Resume, err error) {
	err = row.Scan(append([]any{&r.Actor, &r.ID, &r.Body}, receiptDest(&r.Receipt)...)...)
	return r, err
}

func scanEffect(row scanner) (line store.Effect, err error) {
	err = row.Scan(effectDest(&line)...)
	return line, err
}

// Once keeps a value under a name, unless there is one already; see [store.Keeping]. To find one that is kept disturbs nobody.
func (s *Store) Once(ctx context.Context, name string, value []byte) ([]byte, error) {
	const op = "keep a value in"
	if name == "" {
		return nil, store.ErrKey
	}
	if kept, known, err := s.look().once(ctx, name); err != nil {
		return nil, s.fail(ctx, op, err)
	} else if known {
		return kept, nil
	}
	return do(ctx, s, op, func(ctx context.Context, t turn) ([]byte, error) {
		kept, known, err := t.once(ctx, name)
		if err != nil || known {
			return kept, err
		}
		kept = append([]byte{}, value...) // never nil, which would be NULL
		_, err = t.exec(ctx, keepOnceSQL, name, kept)
		return kept, err
	})
}

func (t turn) once(ctx context.Context, name string) (value []byte, known bool, err error) {
	known, err = t.find(ctx, []any{sealed{&value}}, onceSQL, name)
	return value, known, err
}
