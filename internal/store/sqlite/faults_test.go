package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

func TestSave_DiskFullChangesNothing(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	mustSave(t, s, 0, "kept")
	limit := func(pages int) {
		t.Helper()
		// The pool has one connection, which Save uses.
		if _, err := s.writer.ExecContext(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(20)
	_, err := s.Save(t.Context(), demo, 1, putRun(strings.Repeat("x", 1<<20)))
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "save to fermata.db") {
		t.Fatalf("Save: %v; want ErrFull", err)
	}
	wantRun(t, s, 1, "kept")
	limit(1 << 20)
	mustSave(t, s, 1, "room again")
	wantRun(t, s, 2, "room again")
}

// A backup was restored, or files were removed, while the server was running. The server continued
// with the old file, which had no name: later decisions were lost at the next restart, and the
// health check did not notice.
func TestFile_DeletedOrReplacedWhileOpenFailsWrites(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"deleted":  os.Remove,
		"moved":    func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error { return errors.Join(os.Rename(path, path+".old"), createFile(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fermata.db")
			s := mustOpen(t, path)
			mustSave(t, s, 0, "kept")
			if _, err := s.Now(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Save(t.Context(), demo, 1, putRun("lost")); !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "save to fermata.db") {
				t.Errorf("Save: %v; want ErrReplaced", err)
			}
			if _, err := s.Now(t.Context()); !errors.Is(err, ErrReplaced) {
				t.Errorf("Now: %v; want ErrReplaced", err)
			}
			if name == "moved" { // and back
				if err := os.Rename(path+".old", path); err != nil {
					t.Fatal(err)
				}
				mustSave(t, s, 1, "after the repair")
			}
		})
	}
}

// The WAL was deleted while the server was running. The server accepted decisions into a WAL
// without a name: its content was lost with the next crash, and other processes did not see it.
func TestFile_WALDeletedWhileOpenFailsWrites(t *testing.T) {
	for _, side := range []string{"-wal", "-shm"} {
		t.Run(side, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fermata.db")
			s := mustOpen(t, path)
			mustSave(t, s, 0, "kept")
			if err := os.Remove(path + side); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Save(t.Context(), demo, 1, putRun("lost")); !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "fermata.db"+side) {
				t.Errorf("Save: %v; want ErrReplaced", err)
			}
			if _, err := s.Now(t.Context()); !errors.Is(err, ErrReplaced) {
				t.Errorf("Now: %v; want ErrReplaced", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := mustOpen(t, path)
			wantRun(t, again, 1, "kept")
			mustSave(t, again, 1, "and on")
		})
	}
}

// A cancelled query costs its connection. The WAL must exist as long as the Store: SQLite deletes
// it with the last connection, which would look like a deletion by an operator.
func TestFile_WALSurvivesALostConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	mustSave(t, s, 0, "kept")
	for _, pool := range []*sql.DB{s.readers, s.writer} {
		pool.SetMaxIdleConns(0) // closes the idle connections
		defer pool.SetMaxIdleConns(1)
	}
	mustSave(t, s, 1, "and on")
}

func TestSave_LockedByAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s, err := open(path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustSave(t, s, 0, "kept")

	conn, err := raw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), demo, 1, putRun("y")); !errors.Is(err, ErrLocked) {
		t.Errorf("Save: %v; want ErrLocked", err)
	}
	wantRun(t, s, 1, "kept") // readers do not wait
	mustOpen(t, path)        // nor does Open, which has nothing to write
	if _, err := conn.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, 1, "unlocked")
}

// A save that waits for another save of this process waits in the pool, where its context can end
// the wait.
func TestSave_WaitEndsWithContext(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	mustSave(t, s, 0, "kept")
	conn, err := s.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := s.Save(ctx, demo, 1, putRun("y"))
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("Save: %v; want context.Canceled", err)
	}
	conn.Close()
	mustSave(t, s, 1, "free again")
}

func TestLoad_DamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	mustSave(t, s, 0, strings.Repeat("x", 1<<20))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The header and the schema on the first page stay intact.
	for i := 4096; i < len(data); i++ {
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(path)
	if err == nil {
		defer s.Close()
		_, err = s.Load(t.Context(), demo)
	}
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "fermata.db") {
		t.Errorf("a damaged file gives %v; want ErrCorrupt", err)
	}
}

func TestSave_TooLargeReturnsErrTooLarge(t *testing.T) {
	// Never written, so that no memory is allocated: the kernel provides the pages on first use.
	delta := store.Delta{Put: []store.Part{{Name: "run", Data: make([]byte, maxValueSize+1)}}}
	if err := validateSave(demo, delta); !errors.Is(err, ErrTooLarge) {
		t.Errorf("check: %v; want ErrTooBig", err)
	}
}

func TestErrors_DoNotContainTheKey(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	s.Close()
	_, err := s.Load(t.Context(), store.Key{Account: "secret-account", Run: "secret-run"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Load: %v", err)
	}
}

// A crash while the file is not in WAL mode leaves a journal that must be rolled back before
// anything can be read. The first, read-only check of Open cannot do that.
func TestOpen_LeftoverJournalIsRolledBack(t *testing.T) {
	path := closedDatabase(t)
	conn, err := raw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		`PRAGMA journal_mode = DELETE`,
		`PRAGMA cache_size = 1`, // pages of the unfinished transaction go to the file
		`BEGIN IMMEDIATE`,
		`UPDATE checkpoints SET version = 99`,
		`UPDATE checkpoint_parts SET data = zeroblob(1000000)`,
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// The copy is the state after a crash at this moment.
	crashed := filepath.Join(t.TempDir(), "fermata.db")
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashed+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantRun(t, mustOpen(t, crashed), 1, "kept")
}
