package postgres

import (
	"errors"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
)

func TestVersion_ChangesNothing(t *testing.T) {
	connString := pgtest.New(t)
	conn := raw(t, connString)
	for range 2 { // there is still nothing after the first call
		applied, known, err := Version(t.Context(), connString, Config{})
		if err != nil || applied != 0 || len(known) != len(mustMigrations(t)) {
			t.Fatalf("no schema: %d of %v, %v", applied, known, err)
		}
	}
	s, err := Open(t.Context(), connString, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustExec(t, conn, `DELETE FROM fermata.fermata_migrations WHERE version > 1`)
	if applied, _, err := Version(t.Context(), connString, Config{}); err != nil || applied != 1 {
		t.Errorf("an older one: %d, %v", applied, err)
	}
	mustExec(t, conn, `UPDATE fermata.fermata_migrations SET version = 999 WHERE version = 1`)
	if _, _, err := Version(t.Context(), connString, Config{}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
}
