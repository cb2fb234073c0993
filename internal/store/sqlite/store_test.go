package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

var demo, putRun, mustSave, wantRun = fixture.DemoKey, fixture.PutHead, fixture.MustSave, fixture.WantCheckpoint

func mustOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestOpen_FindsEarlierSaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	fixture.CheckReopen(t, func() fixture.Closable { return mustOpen(t, path) })
}

func TestOpen_TwiceInOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	fixture.CheckTwoStores(t, mustOpen(t, path), mustOpen(t, path))
}

func TestOpen_ManyAtOnceOnANewFile(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "fermata.db")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s, err := Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestOpen_NewFileIsReadableByOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX file modes")
	}
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	mustSave(t, s, 0, "x")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("mode of %s is %o; want 600", info.Name(), mode)
		}
	}
}

func TestOpen_OddPaths(t *testing.T) {
	for _, name := range []string{
		"with space.db", "what?.db", "a?mode=memory", "#1.db", "50%.db", "%41.db", "a&b=c.db", "a;b.db", "a+b.db",
		"é🎼.db", "'quoted\".db", "file:x.db", "no extension", "-wal", ":memory:x",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "in "+name, name)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Skipf("the file system does not take this name: %v", err)
			}
			s := mustOpen(t, path)
			mustSave(t, s, 0, "here")
			wantRun(t, s, 1, "here")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			if err != nil || len(files) != 1 || files[0] != path {
				t.Errorf("files %q, %v; want only %q", files, err, path)
			}
		})
	}
}

func TestOpen_RelativePathSurvivesChdir(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := mustOpen(t, "fermata.db")
	mustSave(t, s, 0, "x")
	t.Chdir(t.TempDir())
	// Hold connections until the pool has to open new ones.
	for range 4 {
		conn, err := s.readers.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var version int
		if err := conn.QueryRowContext(t.Context(), `SELECT version FROM checkpoints`).Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen_InvalidPathReturnsErrPath(t *testing.T) {
	for path, hint := range map[string]string{
		"":                       "empty",
		":memory:":               "store/memory",
		"file:x.db?cache=shared": "./file:x.db",
		"a\x00b":                 "zero byte",
		t.TempDir():              "directory",
		os.DevNull:               "not a regular file",
	} {
		s, err := Open(path)
		if !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), hint) {
			t.Errorf("Open(%q) = %v, %v; want ErrPath with a hint at %q", path, s, err, hint)
		}
	}
}

func TestOpen_MissingDirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "missing", "fermata.db"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Open: %v; want fs.ErrNotExist", err)
	}
	if !strings.Contains(err.Error(), "open fermata.db") || strings.Contains(err.Error(), dir) {
		t.Errorf("%q should name the file but not where it is", err)
	}
}

func TestClose_EndsTheStore(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	mustSave(t, s, 0, "x")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"load from":   func() error { _, err := s.Load(ctx, demo); return err },
		"save to":     func() error { _, err := s.Save(ctx, demo, 1, putRun("y")); return err },
		"delete from": func() error { return s.Delete(ctx, demo) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), name+" fermata.db") {
			t.Errorf("%s a closed store: %v", name, err)
		}
	}
}

func TestReaders_CannotWrite(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	if _, err := s.readers.ExecContext(t.Context(), `DELETE FROM checkpoints`); err == nil {
		t.Error("a reader's connection has written")
	}
}

// A statement that does not use the whole key would read every run of the account.
func TestStatements_UseTheWholeKey(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	for _, text := range []string{loadCheckpointSQL, advanceVersionSQL, deletePartSQL, deleteCheckpointSQL} {
		for _, line := range queryPlan(t, s, text) {
			if !strings.HasPrefix(line, "SEARCH") || !strings.Contains(line, "account=? AND run=?") {
				t.Errorf("plan of %s\nhas %q", text, line)
			}
		}
	}
}

func queryPlan(t *testing.T, s *Store, text string) (lines []string) {
	t.Helper()
	args := []any{[]byte("a"), []byte("r"), 1, []byte("d")}[:strings.Count(text, "?")]
	rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, detail)
	}
	if len(lines) == 0 || rows.Err() != nil {
		t.Fatalf("no plan: %v", rows.Err())
	}
	return lines
}

func BenchmarkSave(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "fermata.db"))
	var delta store.Delta
	for _, name := range []string{"run", "state", "node/draft", "node/review", "interrupt/1"} {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: bytes.Repeat([]byte("x"), 64)})
	}
	base := int64(0)
	for b.Loop() {
		var err error
		if base, err = s.Save(context.Background(), demo, base, delta); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "fermata.db"))
	for base, name := range []string{"run", "state", "node/draft", "node/review", "interrupt/1"} {
		delta := store.Delta{Put: []store.Part{{Name: name, Data: bytes.Repeat([]byte("x"), 64)}}}
		if _, err := s.Save(b.Context(), demo, int64(base), delta); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Load(context.Background(), demo); err != nil {
			b.Fatal(err)
		}
	}
}
