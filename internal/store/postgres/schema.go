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

// migrations returns the steps of this build.
func migrations() ([]migration.Step, error) { return migration.Read(migrationFiles, "migration") }

const (
	// schemaStateSQL needs no privilege on the schema.
	schemaStateSQL = `
SELECT count(n.oid) > 0, count(c.oid) > 0, count(c.oid) FILTER (WHERE c.relname = 'fermata_migrations') > 0
FROM pg_catalog.pg_namespace AS n LEFT JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
WHERE n.nspname = $1`

	// historySQL names the schema: without the privilege to use it, PostgreSQL would skip it and
	// find nothing.
	historySQL = `SELECT version, name, checksum FROM %s.fermata_migrations ORDER BY version`

	// noTimeoutSQL disables timeouts, because a migration may take long and other replicas must
	// wait for it. It is a separate statement, because a running statement keeps the timeout that
	// it began with.
	noTimeoutSQL = `SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)`

	// lockSQL serializes replicas that start at once. The lock belongs to this schema of this
	// database and ends with the transaction.
	lockSQL = `SELECT pg_advisory_xact_lock(hashtextextended('fermata migrations ' || $1, 0))`

	// shortTimeoutSQL limits the wait for table locks: while a migration waits for one, all later
	// statements queue behind it.
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

// schemaState is the result of inspectSchema.
type schemaState struct {
	exists  bool // the schema exists, perhaps empty
	applied int  // number of applied steps
}

// inspectSchema inspects the schema and changes nothing. It rejects a foreign schema.
func inspectSchema(ctx context.Context, q querier, schema string, steps []migration.Step) (found schemaState, err error) {
	var used, ours bool
	if err := q.QueryRow(ctx, schemaStateSQL, schema).Scan(&found.exists, &used, &ours); err != nil {
		return schemaState{}, err
	}
	switch {
	case !used:
		return found, nil // empty
	case !ours:
		return schemaState{}, fmt.Errorf("%w: it holds something else", ErrForeign)
	}
	found.applied, err = history(ctx, q, schema, steps)
	return found, err
}

// history compares the recorded migrations of the database with the steps.
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

// migrate applies all missing steps in one transaction. Of several replicas that start at once, one
// does the work and the others find it done.
func migrate(ctx context.Context, pool *pgxpool.Pool, config Config, steps []migration.Step) error {
	found, err := inspectSchema(ctx, pool, config.Schema, steps)
	if err != nil || found.applied == len(steps) {
		// most starts end here, without a lock and without the privilege to change tables
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noTimeoutSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, config.Schema); err != nil {
			return err
		}
		// Inspect again, now that no other replica can migrate.
		found, err := inspectSchema(ctx, tx, config.Schema, steps)
		if err != nil || found.applied == len(steps) {
			return err
		}
		if _, err := tx.Exec(ctx, shortTimeoutSQL, milliseconds(config.LockTimeout)); err != nil {
			return err
		}
		if !found.exists {
			// Not IF NOT EXISTS, which requires the privilege to create schemas even if the schema
			// exists.
			if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{config.Schema}.Sanitize()); err != nil {
				return err
			}
		}
		return apply(ctx, tx, found.applied, steps)
	})
}

// apply runs the steps that are not applied yet. Scripts name their tables without a schema.
func apply(ctx context.Context, tx pgx.Tx, applied int, steps []migration.Step) error {
	if _, err := tx.Exec(ctx, createHistorySQL); err != nil {
		return err
	}
	for i, step := range steps[applied:] {
		// Only the simple protocol supports several statements in one string.
		if _, err := tx.Exec(ctx, step.Script, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
		if _, err := tx.Exec(ctx, recordSQL, applied+i+1, step.Name, step.Checksum); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}
