package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	finishedRunsSQL = `
SELECT ` + refRunColumns + ` FROM runs AS r
WHERE r.status IN ('completed', 'failed', 'cancelled', 'superseded') AND r.updated_at < $1 AND r.updated_at >= $2
ORDER BY r.updated_at, r.account, r.run LIMIT $3`

	// lockFinishedSQL reports whether the run is active; then it does not lock it.
	lockFinishedSQL = `
WITH locked AS (SELECT key, ` + activeCondition + ` AS alive FROM runs WHERE key = ` + keyOfArgs + ` AND account = $1 FOR UPDATE)
SELECT set_config('fermata.run', CASE WHEN alive THEN '' ELSE encode(key, 'hex') END, true), alive FROM locked`

	deleteEffectsSQL         = `DELETE FROM effects WHERE run_key = ` + lockedRunKey + ` AND account = $1`
	deleteInterruptsSQL      = `DELETE FROM interrupts WHERE run_key = ` + lockedRunKey + ` AND account = $1`
	deleteResumesSQL         = `DELETE FROM resumes WHERE run_key = ` + lockedRunKey + ` AND account = $1`
	deleteEventsSQL          = `DELETE FROM events WHERE run_key = ` + lockedRunKey + ` AND account = $1`
	deleteDocumentsSQL       = `DELETE FROM papers WHERE run_key = ` + lockedRunKey + ` AND account = $1`
	deleteCheckpointOfRunSQL = `DELETE FROM checkpoints WHERE digest = ` + lockedRunKey + ` AND account = $1`
	deleteRunRowSQL          = `DELETE FROM runs WHERE key = ` + lockedRunKey + ` AND account = $1`

	runSQL = `SELECT ` + runColumns + ` FROM runs AS r WHERE r.key = ` + keyOfArgs + ` AND r.account = $1`

	resumesSQL = `
SELECT p.actor, p.id, p.body, ` + receiptColumns + ` FROM resumes AS p
WHERE p.run_key = ` + keyOfArgs + ` AND p.account = $1 ORDER BY p.created_at, p.actor, p.id`

	effectsSQL = `
SELECT ` + effectColumns + ` FROM effects AS e
WHERE e.run_key = ` + keyOfArgs + ` AND e.account = $1 ORDER BY e.started_at, e.interrupt, e.number`

	allEventsSQL = `
SELECT ` + eventColumns + ` FROM events AS e
WHERE e.run_key = ` + keyOfArgs + ` AND e.account = $1 ORDER BY e.number`

	addNamedValueSQL = `INSERT INTO once (name, value) VALUES ($1::bytea, $2) ON CONFLICT (key) DO NOTHING`
	namedValueSQL    = `SELECT value FROM once WHERE key = sha256($1)`
)

// deleteRunSQL deletes everything of the locked run, in the order of the foreign keys.
var deleteRunSQL = []string{deleteEffectsSQL, deleteInterruptsSQL, deleteResumesSQL, deleteEventsSQL, deleteDocumentsSQL, deleteCheckpointOfRunSQL, deleteRunRowSQL}

// FinishedRuns returns runs that ended before a time; see [store.Maintenance].
func (s *Store) FinishedRuns(ctx context.Context, from, before time.Time, limit int) (runs []store.Run, err error) {
	var t txn
	queryAll(&t, &runs, scanRun, finishedRunsSQL, before, from, pageSize(limit, 1000))
	return runs, s.view(ctx, "list finished runs of", &t)
}

// DeleteRun deletes a run that has ended; see [store.Maintenance].
func (s *Store) DeleteRun(ctx context.Context, account, run string, writes store.Writes) error {
	var t txn
	var key string
	found, alive := false, false
	t.queryRow(&found, []any{&key, &alive}, lockFinishedSQL, account, run)
	for _, text := range deleteRunSQL {
		t.queue(text, account)
	}
	if err := t.applyWritesOfRun(account, writes); err != nil {
		return err
	}
	if err := s.update(ctx, "delete a run of", &t); err != nil {
		return err
	}
	if alive {
		return store.ErrRunActive
	}
	return nil
}

// History returns everything that is stored about a run; see [store.Maintenance].
func (s *Store) History(ctx context.Context, account, run string) (h store.History, err error) {
	var t txn
	found := false
	t.queue(`BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
	t.queryRow(&found, runDest(&h.Run), runSQL, account, run)
	queryAll(&t, &h.Interrupts, scanInterrupt, interruptsSQL, account, run)
	queryAll(&t, &h.Resumes, scanResume, resumesSQL, account, run)
	queryAll(&t, &h.Effects, scanEffect, effectsSQL, account, run)
	queryAll(&t, &h.Events, scanEvent, allEventsSQL, account, run)
	queryAll(&t, &h.Documents, scanDocument, documentsOfRunSQL, account, run)
	t.queue(`COMMIT`)
	if err := s.view(ctx, "read the history of a run of", &t); err != nil {
		return store.History{}, err
	}
	if !found {
		return store.History{}, store.ErrNotFound
	}
	return h, nil
}

func scanResume(rows pgx.CollectableRow) (r store.Resume, err error) {
	err = rows.Scan(append([]any{nameScanner{&r.Actor}, nameScanner{&r.ID}, nameScanner{&r.BodyDigest}}, receiptDest(&r.Receipt)...)...)
	return r, err
}

// PutIfAbsent stores a value under a name unless there is one; see [store.Maintenance].
func (s *Store) PutIfAbsent(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	if name == "" {
		return nil, store.ErrInvalid
	}
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	var t txn
	found := false
	t.queue(addNamedValueSQL, name, value)
	// also sees a concurrent insert that the statement above waited for
	t.queryRow(&found, []any{&kept}, namedValueSQL, name)
	return kept, s.update(ctx, "store a value in", &t)
}

// tables lists all tables of the ports.
var tables = []string{"runs", "interrupts", "resumes", "effects", "events", "checkpoints", "checkpoint_parts", "once", "credentials", "papers", "audit"}

const (
	// sizeSQL estimates row counts like the planner: rows per page at the last analysis, times
	// pages.
	sizeSQL = `
SELECT c.relname, pg_total_relation_size(c.oid), pg_relation_size(c.oid),
       CASE WHEN c.relpages > 0 THEN (c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::bigint))::bigint ELSE 0 END
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) AND c.relname = ANY($1::text[]) AND c.relkind = 'r'`

	countSQL = `SELECT count(*) FROM ` // a table

	// exactCountLimit is the maximum size of a table that is counted instead of estimated.
	exactCountLimit = 8 << 20
)

type tableSize struct {
	name              string
	total, main, rows int64
}

func scanTableSize(rows pgx.CollectableRow) (t tableSize, err error) {
	err = rows.Scan(&t.name, &t.total, &t.main, &t.rows)
	return t, err
}

// Size returns how much data is stored; see [store.Maintenance]. Row counts of big tables are
// estimates.
func (s *Store) Size(ctx context.Context) (store.Size, error) {
	const op = "measure"
	var t txn
	var measured []tableSize
	queryAll(&t, &measured, scanTableSize, sizeSQL, tables)
	if err := s.view(ctx, op, &t); err != nil {
		return store.Size{}, err
	}
	size := store.Size{Rows: map[string]int64{}}
	var counting txn
	counts := make([]int64, len(measured))
	for i, table := range measured {
		size.Bytes += table.total
		counts[i] = table.rows
		if found := false; table.main <= exactCountLimit {
			counting.queryRow(&found, []any{&counts[i]}, countSQL+table.name)
		}
	}
	if err := s.view(ctx, op, &counting); err != nil {
		return store.Size{}, err
	}
	for i, table := range measured {
		size.Rows[table.name] = counts[i]
	}
	return size, nil
}

// Vacuum returns the space of deleted data to the system; see [store.Maintenance]. It has no
// timeout and uses its own connection. The user must own the tables.
func (s *Store) Vacuum(ctx context.Context) error {
	conn, err := s.connect(ctx, func(config *pgx.ConnConfig) { config.RuntimeParams["statement_timeout"] = "0" })
	if err == nil {
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, `VACUUM (ANALYZE) `+strings.Join(tables, ", "))
	}
	if err != nil {
		return s.fail(ctx, "vacuum", err)
	}
	return nil
}
