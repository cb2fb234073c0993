//go:build unix

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/powerloss"
)

// powerStore is a store on a disk that can lose power.
type powerStore struct {
	*Store
	disk     *powerloss.Disk
	path     string
	settings []string  // for the writer connection
	now      time.Time // each step has its own time, so that a repetition gives the same result
	reading  *sql.Conn // a reader of an old snapshot, which keeps it from being overwritten
}

// newPowerStore creates a store on the content of a disk, which may be empty. It is not open yet.
func newPowerStore(t testing.TB, kept powerloss.Image, settings ...string) *powerStore {
	t.Helper()
	b := &powerStore{disk: powerloss.NewDisk(kept), settings: settings, now: powerTime(0)}
	dir, err := filepath.EvalSymlinks(t.TempDir()) // the path that SQLite sees
	if err == nil {
		err = kept.Save(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.path = filepath.Join(dir, "fermata.db")
	watch(dir, b.disk)
	return b
}

// discard closes and removes a store. A test creates thousands.
func (b *powerStore) discard() {
	b.close(context.Background())
	dir := filepath.Dir(b.path)
	unwatch(dir)
	os.RemoveAll(dir)
}

func powerTime(step int) time.Time { return time.Unix(1_700_000_000+int64(step), 0) }

func (b *powerStore) open(ctx context.Context) error {
	s, err := Open(b.path)
	if err != nil {
		return err
	}
	s.clock = func() time.Time { return b.now }
	b.Store = s
	for _, setting := range b.settings {
		if _, err := s.writer.ExecContext(ctx, setting); err != nil {
			return err
		}
	}
	return nil
}

func (b *powerStore) close(ctx context.Context) error {
	if b.Store == nil {
		return nil
	}
	b.releaseRead(ctx)
	err := b.Close()
	b.Store = nil
	return err
}

// holdRead opens a read transaction and keeps it open.
func (b *powerStore) holdRead(ctx context.Context) error {
	if b.reading != nil {
		return nil
	}
	conn, err := b.readers.Conn(ctx)
	if err != nil {
		return err
	}
	var tables int
	if _, err = conn.ExecContext(ctx, `BEGIN`); err == nil {
		err = conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables)
	}
	if err != nil {
		conn.ExecContext(ctx, `ROLLBACK`)
		conn.Close()
		return err
	}
	b.reading = conn
	return nil
}

func (b *powerStore) releaseRead(ctx context.Context) {
	if b.reading == nil {
		return
	}
	b.reading.ExecContext(ctx, `ROLLBACK`)
	b.reading.Close()
	b.reading = nil
}

// dump returns the content of all tables. It reads the list of tables from the database, so that
// none is missed.
func (b *powerStore) dump(ctx context.Context) (state string, err error) {
	b.disk.WithoutFaults(func() {
		if dumpTables == "" {
			err = b.readers.QueryRowContext(ctx, everythingSQL).Scan(&dumpTables)
		}
		if err == nil {
			err = b.readers.QueryRowContext(ctx, dumpTables).Scan(&state)
		}
	})
	return state, err
}

// dumpTables caches the result of everythingSQL, which is the same for all stores.
var dumpTables string

// everythingSQL returns a statement that returns all rows of all tables. It leaves out columns with
// SQLite's own clock, which cannot be set.
const everythingSQL = `
SELECT 'SELECT group_concat(line, char(10)) FROM (SELECT line FROM (' || group_concat(lines, ' UNION ALL ') || ') ORDER BY line)' FROM (
    SELECT 'SELECT ''' || t.name || ': '' || ' || group_concat('quote("' || c.name || '")', ' || '', '' || ') || ' AS line FROM "' || t.name || '"' AS lines
    FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'
      AND NOT (t.name, c.name) IN (VALUES ('checkpoints', 'updated_at'), ('schema_migrations', 'applied_at'))
    GROUP BY t.name)`

// checkIntegrity returns an error if the file is damaged.
func (b *powerStore) checkIntegrity(ctx context.Context) (err error) {
	b.disk.WithoutFaults(func() {
		for _, check := range []string{`PRAGMA integrity_check`, `SELECT count(*) || '' FROM pragma_foreign_key_check`} {
			var result string
			if scanErr := b.readers.QueryRowContext(ctx, check).Scan(&result); scanErr != nil || result != "ok" && result != "0" {
				err = fmt.Errorf("%s: %s: %w", check, result, scanErr)
			}
		}
	})
	return err
}
