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

// powerStore is a store on a disk whose plug can be pulled.
type powerStore struct {
	*Store
	disk     *powerloss.Disk
	path     string
	settings []string  // of the connection that writes
	now      time.Time // each step of a life has its own, so that doing it again gives the same
	reading  *sql.Conn // somebody who looks at an old state, and keeps it from being overwritten
}

// newPowerStore makes one of what a disk has kept, which may be nothing. It is not open yet.
func newPowerStore(t testing.TB, kept powerloss.Image, settings ...string) *powerStore {
	t.Helper()
	b := &powerStore{disk: powerloss.NewDisk(kept), settings: settings, now: powerTime(0)}
	dir, err := filepath.EvalSymlinks(t.TempDir()) // SQLite sees it so
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

// throwAway ends a book. A test has thousands.
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

// holdReadStep begins to read, and does not stop.
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

// state is everything in the book. It knows the tables from the database alone, so that none is forgotten.
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

// dumpTables is what everythingSQL returns, which is the same for all books.
var dumpTables string

// everythingSQL returns a statement that returns all rows of all tables. SQLite's own clock cannot be set, so what it wrote is left out.
const everythingSQL = `
SELECT 'SELECT group_concat(line, char(10)) FROM (SELECT line FROM (' || group_concat(lines, ' UNION ALL ') || ') ORDER BY line)' FROM (
    SELECT 'SELECT ''' || t.name || ': '' || ' || group_concat('quote("' || c.name || '")', ' || '', '' || ') || ' AS line FROM "' || t.name || '"' AS lines
    FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'
      AND NOT (t.name, c.name) IN (VALUES ('checkpoints', 'updated_at'), ('schema_migrations', 'applied_at'))
    GROUP BY t.name)`

// sound says what is wrong with the file, if anything is.
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
