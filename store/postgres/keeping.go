package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/store"
)

const (
	finishedSQL = `
SELECT ` + refRunColumns + ` FROM runs AS r
WHERE r.status IN ('completed', 'failed', 'cancelled', 'superseded') AND r.updated_at < $1 AND r.updated_at >= $2
ORDER BY r.updated_at, r.account, r.run LIMIT $3`

	// lockOverSQL says whether the run is alive, and has nothing in hand then.
	lockOverSQL = `
WITH locked AS (SELECT key, ` + alive + ` AS alive FROM runs WHERE key = ` + thisKey + ` AND account = $1 FOR UPDATE)
SELECT set_config('fermata.run', CASE WHEN alive THEN '' ELSE encode(key, 'hex') END, true), alive FROM locked`

	forgetEffectsSQL    = `DELETE FROM effects WHERE run_key = ` + inHand + ` AND account = $1`
	forgetInterruptsSQL = `DELETE FROM interrupts WHERE run_key = ` + inHand + ` AND account = $1`
	forgetResumesSQL    = `DELETE FROM resumes WHERE run_key = ` + inHand + ` AND account = $1`
	forgetEventsSQL     = `DELETE FROM events WHERE run_key = ` + inHand + ` AND account = $1`
	forgetPapersSQL     = `DELETE FROM papers WHERE run_key = ` + inHand + ` AND account = $1`
	forgetCheckpointSQL = `DELETE FROM checkpoints WHERE digest = ` + inHand + ` AND account = $1`
	forgetRunSQL        = `DELETE FROM runs WHERE key = ` + inHand + ` AND account = $1`

	runSQL = `SELECT ` + runColumns + ` FROM runs AS r WHERE r.key = ` + thisKey + ` AND r.account = $1`

	resumesSQL = `
SELECT p.actor, p.id, p.body, ` + receiptColumns + ` FROM resumes AS p
WHERE p.run_key = ` + thisKey + ` AND p.account = $1 ORDER BY p.created_at, p.actor, p.id`

	effectsSQL = `
SELECT ` + effectColumns + ` FROM effects AS e
WHERE e.run_key = ` + thisKey + ` AND e.account = $1 ORDER BY e.started_at, e.interrupt, e.number`

	allEventsSQL = `
SELECT ` + eventColumns + ` FROM events AS e
WHERE e.run_key = ` + thisKey + ` AND e.account = $1 ORDER BY e.number`

	keepOnceSQL = `INSERT INTO once (name, value) VALUES ($1::bytea, $2) ON CONFLICT (key) DO NOTHING`
	keptOnceSQL = `SELECT value FROM once WHERE key = sha256($1)`
)

// forgetSQL deletes everything of the run in hand, in the order that the foreign keys allow.
var forgetSQL = []string{forgetEffectsSQL, forgetInterruptsSQL, forgetResumesSQL, forgetEventsSQL, forgetPapersSQL, forgetCheckpointSQL, forgetRunSQL}

// Finished returns runs that were over before a time; see [store.Keeping].
func (s *Store) Finished(ctx context.Context, from, before time.Time, limit int) (runs []store.Run, err error) {
	var t turn
	list(&t, &runs, scanRun, finishedSQL, before, from, page(limit, 1000))
	return runs, s.look(ctx, "list finished runs of", &t)
}

// Forget deletes a run that is over; see [store.Keeping].
func (s *Store) Forget(ctx context.Context, account, run string, beside store.Beside) error {
	var t turn
	var key string
	found, alive := false, false
	t.find(&found, []any{&key, &alive}, lockOverSQL, account, run)
	for _, text := range forgetSQL {
		t.queue(text, account)
	}
	if err := t.besideRun(account, beside); err != nil {
		return err
	}
	if err := s.do(ctx, "forget a run of", &t); err != nil {
		return err
	}
	if alive {
		return store.ErrAlive
	}
	return nil
}

// History returns everything that is known of a run; see [store.Keeping]. All of it is of one moment.
func (s *Store) History(ctx context.Context, account, run string) (h store.History, err error) {
	var t turn
	found := false
	t.queue(`BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
	t.find(&found, runDest(&h.Run), runSQL, account, run)
	list(&t, &h.Interrupts, scanInterrupt, interruptsSQL, account, run)
	list(&t, &h.Resumes, scanResume, resumesSQL, account, run)
	list(&t, &h.Effects, scanEffect, effectsSQL, account, run)
	list(&t, &h.Events, scanEvent, allEventsSQL, account, run)
	list(&t, &h.Papers, scanPaper, papersOfSQL, account, run)
	t.queue(`COMMIT`)
	if err := s.look(ctx, "read the history of a run of", &t); err != nil {
		return store.History{}, err
	}
	if !found {
		return store.History{}, store.ErrNotFound
	}
	return h, nil
}

func scanResume(rows pgx.CollectableRow) (r store.Resume, err error) {
	err = rows.Scan(append([]any{name{&r.Actor}, name{&r.ID}, name{&r.Body}}, receiptDest(&r.Receipt)...)...)
	return r, err
}

// Once keeps a value under a name, unless there is one already; see [store.Keeping].
func (s *Store) Once(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	if name == "" {
		return nil, store.ErrKey
	}
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	var t turn
	found := false
	t.queue(keepOnceSQL, name, value)
	t.find(&found, []any{&kept}, keptOnceSQL, name) // sees whoever was first, also if the statement above waited for him
	return kept, s.do(ctx, "keep a value in", &t)
}

// tables are all that hold what the ports keep.
var tables = []string{"runs", "interrupts", "resumes", "effects", "events", "checkpoints", "checkpoint_parts", "once", "credentials", "papers", "audit"}

const (
	// sizeSQL estimates as the server's planner does: as many rows on a page as there were when it last looked.
	sizeSQL = `
SELECT c.relname, pg_total_relation_size(c.oid), pg_relation_size(c.oid),
       CASE WHEN c.relpages > 0 THEN (c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::bigint))::bigint ELSE 0 END
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) AND c.relname = ANY($1::text[]) AND c.relkind = 'r'`

	countSQL = `SELECT count(*) FROM ` // a table

	// countable is how big a table may be to be counted rather than estimated.
	countable = 8 << 20
)

type tableSize struct {
	name              string
	total, main, rows int64
}

func scanTableSize(rows pgx.CollectableRow) (t tableSize, err error) {
	err = rows.Scan(&t.name, &t.total, &t.main, &t.rows)
	return t, err
}

// Size says how much there is; see [store.Keeping]. The rows of big tables are an estimate.
func (s *Store) Size(ctx context.Context) (store.Size, error) {
	const op = "measure"
	var t turn
	var measured []tableSize
	list(&t, &measured, scanTableSize, sizeSQL, tables)
	if err := s.look(ctx, op, &t); err != nil {
		return store.Size{}, err
	}
	size := store.Size{Rows: map[string]int64{}}
	var counting turn
	counts := make([]int64, len(measured))
	for i, table := range measured {
		size.Bytes += table.total
		counts[i] = table.rows
		if found := false; table.main <= countable {
			counting.find(&found, []any{&counts[i]}, countSQL+table.name)
		}
	}
	if err := s.look(ctx, op, &counting); err != nil {
		return store.Size{}, err
	}
	for i, table := range measured {
		size.Rows[table.name] = counts[i]
	}
	return size, nil
}

// Vacuum gives room back; see [store.Keeping]. It takes as long as it takes, on a connection of its own. The user must own the tables.
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
