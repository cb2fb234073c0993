package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestVersion_ChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	applied, known, err := Version(t.Context(), path)
	if err != nil || applied != 0 || len(known) == 0 {
		t.Fatalf("no file: %d of %v, %v", applied, known, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the file was created")
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
	alter(`UPDATE schema_migrations SET version = 999 WHERE version = (SELECT max(version) FROM schema_migrations)`)
	if _, _, err := Version(t.Context(), path); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
}

func TestVersion_OlderSchemaIsNotMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	if err := createFile(path); err != nil {
		t.Fatal(err)
	}
	db, err := connect(path, roleWriter, busyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), db, steps[:1]); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the schema is still old after the first call
		if applied, known, err := Version(t.Context(), path); err != nil || applied != 1 || len(known) != len(steps) {
			t.Errorf("%d of %v, %v", applied, known, err)
		}
	}
}
