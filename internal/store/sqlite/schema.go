package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/migration"
)

// applicationID marks a file of Fermata in its header: "Frmt".
const applicationID = 0x46726d74

//go:embed migration/*.sql
var migrationFiles embed.FS

// migrations returns the steps of this build.
func migrations() ([]migration.Step, error) { return migration.Read(migrationFiles, "migration") }

// querier is a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inspectSchema returns the number of steps that the database has. It rejects a foreign database
// and changes nothing.
func inspectSchema(ctx context.Context, q querier, steps []migration.Step) (applied int, err error) {
	var id, objects int64
	err = q.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).
		Scan(&id, &objects)
	if resultCode(err) == sqlite3.SQLITE_NOTADB {
		// %v, because %w would also classify it as corrupt
		return 0, fmt.Errorf("%w: %v", ErrForeign, err)
	}
	if err != nil {
		return 0, err
	}
	switch {
	case id == 0 && objects == 0:
		return 0, nil // an empty file
	case id != applicationID:
		return 0, fmt.Errorf("%w: its application id is %#x", ErrForeign, id)
	}
	return history(ctx, q, steps)
}

// history compares the recorded migrations of the database with the steps.
func history(ctx context.Context, q querier, steps []migration.Step) (applied int, err error) {
	rows, err := q.QueryContext(ctx, `SELECT version, name, checksum FROM schema_migrations ORDER BY version`)
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

// migrate applies all missing steps in one transaction. Of several processes that open a new file
// at once, one does the work and the others find it done.
func migrate(ctx context.Context, db *sql.DB, steps []migration.Step) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Inspect again, now that no other process can write.
	applied, err := inspectSchema(ctx, tx, steps)
	if err != nil || applied == len(steps) {
		return err
	}
	if _, err := tx.ExecContext(ctx, createHistory); err != nil {
		return err
	}
	for i, step := range steps[applied:] {
		if _, err := tx.ExecContext(ctx, step.Script); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
		if _, err := tx.ExecContext(ctx, recordMigration, applied+i+1, step.Name, step.Checksum); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return tx.Commit()
}

const recordMigration = `INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ` + now + `)`

// createHistory also sets the application id, in the same transaction.
var createHistory = fmt.Sprintf(`
PRAGMA application_id = %d;
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;`, applicationID)

const (
	hasEventsSQL = `SELECT count(*) FROM sqlite_schema WHERE name = 'events'`

	// sqlite_sequence has a row only if there was ever an event.
	numberEventsSQL = `INSERT INTO sqlite_sequence (name, seq) SELECT 'events', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events')`
	skipEventsSQL   = `UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'events'`
)

// advanceFeedIfRestored lets the feed continue in a backup that replaced the file. Readers may have
// cursors beyond the backup, so new events get unused ids, taken from the time in microseconds. A
// copy by VACUUM INTO is recognized because it has no WAL before it is opened.
func advanceFeedIfRestored(ctx context.Context, db *sql.DB, now time.Time) error {
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil || mode == "wal" {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	known := 0
	if err := tx.QueryRowContext(ctx, hasEventsSQL).Scan(&known); err != nil || known == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, numberEventsSQL); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, skipEventsSQL, now.UnixMicro()); err != nil {
		return err
	}
	return tx.Commit()
}

// enableWAL switches the journal mode, which is stored in the file. Two connections that switch at
// once can conflict without the busy timeout, hence the loop.
func enableWAL(ctx context.Context, db *sql.DB, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		var mode string
		err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file system does not allow a write-ahead log (journal mode stays %q)", mode)
		case classify(err) != ErrLocked || time.Now().After(deadline):
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
