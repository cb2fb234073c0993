package postgres

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/migration"
)

//go:embed migration/*.sql
var migrationFiles embed.FS

// migrations returns the steps this build knows.
func migrations() ([]migration.Step, error) { return migration.Read(migrationFiles, "migration") }

const (
	// schemaStateSQL needs no right on the schema.
	schemaStateSQL = `
SELECT count(n.oid) > 0, count(c.oid) > 0, count(c.oid) FILTER (WHERE c.relname = 'fermata_migrations') > 0
FROM pg_catalog.pg_namespace AS n LEFT JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
WHERE n.nspname = $1`

	// historySQL names the schema: without the right to use it, PostgreSQL would pass it over and find nothing.
	historySQL = `SELECT version, name, checksum FROM %s.fermata_migrations ORDER BY version`

	// noTimeoutSQL: a migration may take its time, and whoever waits for it has nothing better to do. It is a statement of its
	// own because the one that is running keeps the timeout that it began with.
	noTimeoutSQL = `SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)`

	// lockSQL makes replicas that start at once wait for each other. The lock is for this schema of this database and goes with
	// the transaction, however that ends.
	lockSQL = `SELECT pg_advisory_xact_lock(hashtextextended('fermata migrations ' || $1, 0))`

	// shortTimeoutSQL: a migration's own locks are another matter. While it waits for one, everybody who comes later waits behind it.
	shortTimeoutSQL = `SELECT set_config('lock_timeout', $1, true)`

	createHistorySQL = `
CREATE TABLE IF NOT EXISTS fermata_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL
)`

	recordSQL = `INSERT INTO fermata_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, clock_timestamp())`
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaState is what inspect found.
type schemaState struct {
	exists  bool // the schema, perhaps empty
	applied int  // steps
}

// inspectSchema looks at the schema and changes nothing. It refuses one that is not ours to touch.
func inspectSchema(ctx context.Context, q querier, schema string, steps []migration.Step) (found schemaState, err error) {
	var used, ours bool
	if err := q.QueryRow(ctx, schemaStateSQL, schema).Scan(&found.exists, &used, &ours); err != nil {
		return schemaState{}, err
	}
	switch {
	case !used:
		return found, nil // truncateAll: nobody's yet
	case !ours:
		return schemaState{}, fmt.Errorf("%w: it holds something else", ErrForeign)
	}
	found.applied, err = history(ctx, q, schema, steps)
	return found, err
}

// history compares what the database remembers of its migrations with the steps.
func history(ctx context.Context, q querier, schema string, steps []migration.Step) (applied int, err error) {
	rows, err := q.Query(ctx, fmt.Sprintf(historySQL, pgx.Identifier{schema}.Sanitize()))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var version int
		var name, checksum string
		if err := rows.Scan(&version, &name, &checksum); err != nil {
			return 0, err
		}
		if err := migration.Compare(steps, applied, version, name, checksum); err != nil {
			return 0, err
		}
		applied++
	}
	return applied, rows.Err()
}

// migrate brings the schema up to the last step in one transaction: it is there as a whole or not at all, and of several
// replicas that start at once one does the work and the others find it done.
func migrate(ctx context.Context, pool *pgxpool.Pool, config Config, steps []migration.Step) error {
	found, err := inspectSchema(ctx, pool, config.Schema, steps)
	if err != nil || found.applied == len(steps) {
		return err // most starts end here, without a lock and without a right to change tables
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noTimeoutSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, config.Schema); err != nil {
			return err
		}
		// Once more, now that nobody else can migrate.
		found, err := inspectSchema(ctx, tx, config.Schema, steps)
		if err != nil || found.applied == len(steps) {
			return err
		}
		if _, err := tx.Exec(ctx, shortTimeoutSQL, milliseconds(config.LockTimeout)); err != nil {
			return err
		}
		if !found.exists {
			// Not IF NOT EXISTS: that wants the right to create schemas even if there is nothing to create.
			if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{config.Schema}.Sanitize()); err != nil {
				return err
			}
		}
		return apply(ctx, tx, found.applied, steps)
	})
}

// apply runs the steps that are not applied yet. A script names its tables without a schema.
func apply(ctx context.Context, tx pgx.Tx, applied int, steps []migration.Step) error {
	if _, err := tx.Exec(ctx, createHistorySQL); err != nil {
		return err
	}
	for i, step := range steps[applied:] {
		// Several statements in one string go by the simple protocol only.
		if _, err := tx.Exec(ctx, step.Script, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
		if _, err := tx.Exec(ctx, recordSQL, applied+i+1, step.Name, step.Checksum); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}
