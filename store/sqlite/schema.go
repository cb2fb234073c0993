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

// applicationID marks a file as ours in its header: "Frmt".
const applicationID = 0x46726d74

//go:embed migration/*.sql
var migrationFiles embed.FS

// migrations returns the steps this build knows.
func migrations() ([]migration.Step, error) { return migration.Read(migrationFiles, "migration") }

// querier is a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inspectSchema returns how many of the steps the database has. It refuses a database that is not ours to touch and changes
// nothing.
func inspectSchema(ctx context.Context, q querier, steps []migration.Step) (applied int, err error) {
	var id, objects int64
	err = q.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).
		Scan(&id, &objects)
	if resultCode(err) == sqlite3.SQLITE_NOTADB {
		return 0, fmt.Errorf("%w: %v", ErrForeign, err) // %v, or it would count as damaged as well
	}
	if err != nil {
		return 0, err
	}
	switch {
	case id == 0 && objects == 0:
		return 0, nil // empty: nobody's yet
	case id != applicationID:
		return 0, fmt.Errorf("%w: its application id is %#x", ErrForeign, id)
	}
	return history(ctx, q, steps)
}

// history compares what the database remembers of its migrations with the steps.
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

// migrate brings the database up to the last step in one transaction: it is there as a whole or not at all, and of
// several processes that open a new file at once one does the work and the others find it done.
func migrate(ctx context.Context, db *sql.DB, steps []migration.Step) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Once more, now that nobody else can write.
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

// createHistory also claims the file, in the transaction that fills it.
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

	// The number of the last event is there only if there ever was one.
	numberEventsSQL = `INSERT INTO sqlite_sequence (name, seq) SELECT 'events', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events')`
	skipEventsSQL   = `UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'events'`
)

// advanceFeedIfRestored sees to it that the feed goes on in a backup that was put in the place of its file. Somebody may have read on there since: so what happens next has
// numbers that nothing has had yet, those of the time in microseconds. A copy by VACUUM INTO has no write-ahead log before it is opened, and that is how it is known.
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

// enableWAL switches the journal, which is remembered in the file. Two connections that switch at once get in each
// other's way without SQLite consulting the busy timeout, hence the loop.
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
