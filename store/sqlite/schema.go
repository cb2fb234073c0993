package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks a file as ours in its header: "Frmt".
const applicationID = 0x46726d74

//go:embed migration/*.sql
var migrationFiles embed.FS

// migration is one step of the schema. Once released, its text never changes; a change is a new file.
type migration struct {
	name     string
	script   string
	checksum string
}

// migrations returns the steps this build knows. The version of a step is its place, counted from 1.
func migrations() ([]migration, error) {
	entries, err := migrationFiles.ReadDir("migration")
	if err != nil {
		return nil, err
	}
	var steps []migration
	for i, entry := range entries { // sorted by name
		if !strings.HasPrefix(entry.Name(), fmt.Sprintf("%04d_", i+1)) {
			return nil, fmt.Errorf("migration %s should have number %d", entry.Name(), i+1)
		}
		script, err := migrationFiles.ReadFile(path.Join("migration", entry.Name()))
		if err != nil {
			return nil, err
		}
		steps = append(steps, newMigration(entry.Name(), string(script)))
	}
	return steps, nil
}

func newMigration(name, script string) migration {
	// A checkout with other line endings is still the same migration.
	script = strings.ReplaceAll(script, "\r\n", "\n")
	sum := sha256.Sum256([]byte(script))
	return migration{name: name, script: script, checksum: hex.EncodeToString(sum[:])}
}

// querier is a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inspect returns how many of the steps the database has. It refuses a database that is not ours to touch and changes
// nothing.
func inspect(ctx context.Context, q querier, steps []migration) (applied int, err error) {
	var id, objects int64
	err = q.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).
		Scan(&id, &objects)
	if code(err) == sqlite3.SQLITE_NOTADB {
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
func history(ctx context.Context, q querier, steps []migration) (applied int, err error) {
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
		switch {
		case version > len(steps):
			return 0, fmt.Errorf("%w: it has migration %d (%s), this build knows %d", ErrNewer, version, name, len(steps))
		case version != applied+1:
			return 0, fmt.Errorf("%w: migration %d is missing", ErrDrift, applied+1)
		case checksum != steps[applied].checksum:
			return 0, fmt.Errorf("%w: migration %d was %s with another content", ErrDrift, version, name)
		}
		applied++
	}
	return applied, rows.Err()
}

// migrate brings the database up to the last step in one transaction: it is there as a whole or not at all, and of
// several processes that open a new file at once one does the work and the others find it done.
func migrate(ctx context.Context, db *sql.DB, steps []migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Once more, now that nobody else can write.
	applied, err := inspect(ctx, tx, steps)
	if err != nil || applied == len(steps) {
		return err
	}
	if _, err := tx.ExecContext(ctx, createHistory); err != nil {
		return err
	}
	for i, step := range steps[applied:] {
		if _, err := tx.ExecContext(ctx, step.script); err != nil {
			return fmt.Errorf("migration %s: %w", step.name, err)
		}
		if _, err := tx.ExecContext(ctx, recordMigration, applied+i+1, step.name, step.checksum); err != nil {
			return fmt.Errorf("migration %s: %w", step.name, err)
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
		case kindOf(err) != ErrLocked || time.Now().After(deadline):
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
