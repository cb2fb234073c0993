package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
)

// rowTemplate is a waiting run that SQL copies: the same rows with other names. Because nothing is
// encrypted, names can be replaced everywhere, also in the state.
type rowTemplate struct{ key, run, interrupt string }

// read determines the names of the stored run.
func (t *rowTemplate) read(ctx context.Context, s store.Store) error {
	run, err := s.Get(ctx, benchAccount, t.key)
	if err != nil {
		return err
	}
	interrupts, err := s.Interrupts(ctx, benchAccount, run.ID)
	if err != nil {
		return err
	}
	if len(interrupts) != 1 {
		return fmt.Errorf("the template waits at %d places", len(interrupts))
	}
	t.run, t.interrupt = run.ID, interrupts[0].ID
	return nil
}

// names returns the names to be replaced, each with the SQL for copy n; digits is the SQL for seven
// digits of n.
func (t *rowTemplate) names(digits string) [][2]string {
	return [][2]string{
		{t.key, `'` + strings.TrimSuffix(t.key, "0000001") + `' || ` + digits},
		{t.run, `'run_copy' || ` + digits},
		{t.interrupt, `'` + interruptPrefix + `' || ` + digits},
	}
}

// interruptPrefix is the prefix of the interrupt ids of copies.
const interruptPrefix = "int_copy"

// interruptCopy returns the interrupt id of copy n.
func interruptCopy(n int) string { return fmt.Sprintf("%s%07d", interruptPrefix, n) }

// runTables are the tables with rows of a waiting run, referenced ones first.
var runTables = []string{"runs", "interrupts", "events", "checkpoints", "checkpoint_parts", "papers"}

// fill copies the template until there are this many runs. It drops triggers and indexes and
// recreates them.
func (g *sqliteDatabase) fill(ctx context.Context, place string, t *rowTemplate, runs int) (err error) {
	db, err := openSQLite(place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, pragma := range []string{`foreign_keys = off`, `journal_mode = off`, `synchronous = off`, `cache_size = -500000`} {
		if _, err := db.ExecContext(ctx, `PRAGMA `+pragma); err != nil {
			return err
		}
	}
	taken, err := g.dropIndexes(ctx, db)
	if err != nil {
		return err
	}
	// documents of processes are not copied
	if _, err := db.ExecContext(ctx, `DELETE FROM papers WHERE length(run) = 0`); err != nil {
		return err
	}
	for _, table := range runTables {
		if err := g.copyRows(ctx, db, table, t, runs); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	for _, text := range taken {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// dropIndexes drops triggers and indexes, and returns the SQL that recreates them: indexes first.
func (g *sqliteDatabase) dropIndexes(ctx context.Context, db *sql.DB) (texts []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL ORDER BY type`)
	if err != nil {
		return nil, err
	}
	var drops []string
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		drops, texts = append(drops, `DROP `+kind+` "`+name+`"`), append(texts, text)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, text := range drops {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// copyRows creates the rows of copies 2 and up. It replaces names only in columns that contain one,
// because that takes time.
func (g *sqliteDatabase) copyRows(ctx context.Context, db *sql.DB, table string, t *rowTemplate, runs int) error {
	columns, err := g.columns(ctx, db, table)
	if err != nil {
		return err
	}
	values := slices.Clone(columns)
	for i, column := range columns {
		for _, name := range t.names(`printf('%07d', n)`) {
			var has bool
			if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+table+` WHERE instr(CAST("`+column+`" AS BLOB), ?) > 0)`, []byte(name[0])).Scan(&has); err != nil {
				return err
			}
			if has {
				values[i] = fmt.Sprintf(`replace(%s, '%s', %s)`, values[i], name[0], name[1])
			}
		}
		if column == "account" {
			values[i] = `CAST(` + accountSQL(runs, column) + ` AS BLOB)`
		} else if table == "interrupts" && column == "created_at" {
			values[i] += ` + n` // they became visible one after the other
		} else if values[i] != column {
			values[i] = fmt.Sprintf(`CASE typeof(%s) WHEN 'blob' THEN CAST(%s AS BLOB) ELSE %s END`, column, values[i], values[i])
		}
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`
WITH RECURSIVE copies (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM copies WHERE n < ?1),
     original AS MATERIALIZED (SELECT * FROM %[1]s)
INSERT INTO %[1]s (%[2]s) SELECT %[3]s FROM copies CROSS JOIN original WHERE ?1 > 1`, table, strings.Join(columns, `, `), strings.Join(values, `, `)), runs)
	return err
}

// columns returns the columns of a table except its rowid.
func (g *sqliteDatabase) columns(ctx context.Context, db *sql.DB, table string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name FROM pragma_table_info(?) WHERE NOT (pk = 1 AND type = 'INTEGER')`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// fill copies the template until there are this many runs. As in a replica that is being filled,
// triggers and foreign keys are disabled.
func (g postgresDatabase) fill(ctx context.Context, place string, t *rowTemplate, runs int) (err error) {
	conn, err := g.superuser(ctx, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `SET search_path = fermata; SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '256MB'`); err != nil {
		return err
	}
	taken, err := g.dropIndexes(ctx, conn)
	if err != nil {
		return err
	}
	// documents of processes are not copied
	if _, err := conn.Exec(ctx, `DELETE FROM papers WHERE run_key IS NULL`); err != nil {
		return err
	}
	for _, table := range runTables {
		if err := g.copyRows(ctx, conn, table, t, runs); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	const last = `SELECT setval(pg_get_serial_sequence('checkpoints', 'id'), (SELECT max(id) FROM checkpoints))`
	for _, text := range append(taken, last, `VACUUM (ANALYZE)`, `CHECKPOINT`) {
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%w in %s", err, text)
		}
	}
	return nil
}

// dropIndexes drops the indexes that no constraint needs, and returns the SQL that recreates them.
func (g postgresDatabase) dropIndexes(ctx context.Context, conn *pgx.Conn) (texts []string, err error) {
	rows, err := conn.Query(ctx, `
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE c.relnamespace = 'fermata'::regnamespace AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)`)
	if err != nil {
		return nil, err
	}
	var drops []string
	var name, text string
	if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		drops, texts = append(drops, `DROP INDEX `+name), append(texts, text)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, text := range drops {
		if _, err := conn.Exec(ctx, text); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// copyRows creates the rows of copies 2 and up. Checkpoint ids continue from that of the template.
func (g postgresDatabase) copyRows(ctx context.Context, conn *pgx.Conn, table string, t *rowTemplate, runs int) error {
	rows, err := conn.Query(ctx, `
SELECT attname::text, CASE WHEN 'bytea'::regtype IN (t.oid, t.typbasetype) THEN 'bytes' WHEN t.oid = 'json'::regtype THEN 'json' ELSE '' END FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND (attidentity = '' OR $1 = 'checkpoints')
ORDER BY attnum`, table)
	if err != nil {
		return err
	}
	var columns, values []string
	var column, form string
	renamed := func(value string) string {
		for _, name := range t.names(`lpad(n::text, 7, '0')`) {
			value = fmt.Sprintf(`replace(%s, '%s', %s)`, value, name[0], name[1])
		}
		return value
	}
	if _, err := pgx.ForEachRow(rows, []any{&column, &form}, func() error {
		value := `original.` + column
		switch {
		case table == "checkpoints" && column == "id", table == "checkpoint_parts" && column == "checkpoint":
			value += ` + n - 1`
		// they became visible one after the other
		case table == "interrupts" && column == "created_at":
			value += ` + n * interval '1 microsecond'`
		case column == "account":
			value = `convert_to(` + accountSQL(runs, `convert_from(`+value+`, 'UTF8')`) + `, 'UTF8')`
		case form == "bytes":
			value = `convert_to(` + renamed(`convert_from(`+value+`, 'UTF8')`) + `, 'UTF8')`
		case form == "json":
			value = renamed(value+`::text`) + `::json`
		}
		columns, values = append(columns, column), append(values, value)
		return nil
	}); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf(`
WITH original AS MATERIALIZED (SELECT * FROM %[1]s)
INSERT INTO %[1]s (%[2]s) OVERRIDING SYSTEM VALUE
SELECT %[3]s FROM generate_series(2, $1::integer) AS n CROSS JOIN original`, table, strings.Join(columns, `, `), strings.Join(values, `, `)), runs)
	return err
}
