package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// A reader of an old snapshot must not make writers wait during a vacuum.
func TestVacuum_OpenReaderDoesNotBlockWriters(t *testing.T) {
	const patience = 2 * time.Minute // more than a slow machine needs
	s, err := open(filepath.Join(t.TempDir(), "fermata.db"), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	key := store.Key{Account: "acme", Run: "r"}
	version, err := s.Save(t.Context(), key, 0, putRun("x"))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := s.readers.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRowContext(t.Context(), `SELECT count(*) FROM runs`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), key, version, putRun("y")); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took >= patience {
		t.Errorf("it waited for %v", took)
	}
	var after int64
	if err := s.writer.QueryRowContext(t.Context(), `PRAGMA busy_timeout`).Scan(&after); err != nil || after != patience.Milliseconds() {
		t.Errorf("after the vacuum: %d, %v", after, err)
	}
}
