package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestVersion_LooksAndDoesNotTouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	applied, known, err := Version(t.Context(), path)
	if err != nil || applied != 0 || len(known) == 0 {
		t.Fatalf("no file: %d of %v, %v", applied, known, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the file was made")
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if applied, _, err := Version(t.Context(), path); err != nil || applied != len(known) {
		t.Errorf("while it is open: %d, %v", applied, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alter := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	alter(`DELETE FROM schema_migrations WHERE version > 1`)
	for range 2 { // it is still one after a look
		if applied, _, err := Version(t.Context(), path); err != nil || applied != 1 {
			t.Errorf("an older one: %d, %v", applied, err)
		}
	}
	alter(`UPDATE schema_migrations SET version = 999`)
	if _, _, err := Version(t.Context(), path); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
}
