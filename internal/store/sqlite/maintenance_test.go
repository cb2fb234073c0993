package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// otherProcess opens the file a second time. For SQLite another connection is like another process.
func otherProcess(t *testing.T) (here, there *Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fermata.db")
	return mustOpen(t, path), mustOpen(t, path)
}

// nextHint waits for the next hint.
func nextHint(t *testing.T, hints <-chan store.Key) store.Key {
	t.Helper()
	select {
	case key := <-hints:
		return key
	case <-time.After(30 * time.Second): // a failing test must not hang
		t.Fatal("no hint")
		return store.Key{}
	}
}

func TestWatch_WritesOfAnotherProcessGiveAZeroKey(t *testing.T) {
	here, there := otherProcess(t)
	hints := here.Watch(t.Context())
	if key := nextHint(t, hints); key != (store.Key{}) {
		t.Errorf("the first poll gives %+v", key)
	}
	for n := range 3 {
		fixture.CreateRun(t, there, fmt.Sprint("r", n))
		if key := nextHint(t, hints); key != (store.Key{}) {
			t.Errorf("a write of another process gives %+v", key)
		}
	}
	lease := fixture.CreateRun(t, here, "own")
	if key := nextHint(t, hints); key != (store.Key{Account: "acme", Run: "own"}) {
		t.Errorf("a write of this store gives %+v", key)
	}
	if err := here.Renew(t.Context(), lease, fixture.LeaseDuration); err != nil {
		t.Fatal(err)
	}
	// the next hint is for this write: the renewal gives none, and no poll was spurious
	fixture.EndExecution(t, here, lease, nil)
	if key := nextHint(t, hints); key != (store.Key{Account: "acme", Run: "own"}) {
		t.Errorf("a write of this store gives %+v", key)
	}
}

func TestWatch_PollsOnlyWithWatchers(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	looking := func() bool {
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		return s.watch.stopPoll != nil
	}
	if looking() {
		t.Error("it polls at once")
	}
	for range 2 {
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		one, two := s.Watch(first), s.Watch(second)
		for _, step := range []struct {
			cancel context.CancelFunc
			hints  <-chan store.Key
			left   bool
		}{{cancelFirst, one, true}, {cancelSecond, two, false}} {
			step.cancel()
			for range step.hints {
			}
			if looking() != step.left {
				t.Errorf("it looks: %t", looking())
			}
		}
		s.watch.wg.Wait()
	}
}

func TestWatch_ClosedStoreStopsPolling(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	early := s.Watch(ctx)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	late := s.Watch(ctx)
	if s.watch.stopPoll != nil {
		t.Error("it polls although it is closed")
	}
	cancel()
	for _, hints := range []<-chan store.Key{early, late} {
		for range hints {
		}
	}
}

// A cursor that this file never returned belongs to another file, or to a newer state of this one.
func TestFeed_UnknownCursorReturnsErrInvalid(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	for _, after := range []string{"1", "0", "-1", "+1", "01"} {
		if _, _, err := s.Feed(t.Context(), "acme", after, 0); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v; want ErrKey", after, err)
		}
	}
	fixture.CreateRun(t, s, "r")
	_, next, err := s.Feed(t.Context(), "acme", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(t.Context(), "acme", "r", store.StatusCancelled, nil, store.Writes{}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRun(t.Context(), "acme", "r", store.Writes{}); err != nil {
		t.Fatal(err)
	}
	if list, again, err := s.Feed(t.Context(), "acme", next, 0); err != nil || again != next || len(list) > 0 {
		t.Errorf("the cursor of a deleted event returns %+v, %q, %v", list, again, err)
	}
	if _, _, err := s.Feed(t.Context(), "acme", next+"0", 0); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("%v; want ErrKey", err)
	}
}

func TestReencrypt_ForeignCursorReturnsErrInvalid(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	for _, after := range []string{"x", "0", "99.x61.x62", "0.x61", "0.x61.x6", "0.x61.x62.x63", "-1.x61.x62", "0.x61.b"} {
		_, err := s.Reencrypt(t.Context(), after, 1, func(store.SealedValue) ([]byte, error) { t.Error("called"); return nil, nil })
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v; want ErrKey", after, err)
		}
	}
}

// sparseFile leaves a file that is mostly unused.
func sparseFile(t *testing.T, s *Store) {
	t.Helper()
	for n := range 20 {
		key := store.Key{Account: "acme", Run: fmt.Sprint("run-", n)}
		if _, err := s.Save(t.Context(), key, 0, putRun(string(make([]byte, 1<<20)))); err != nil {
			t.Fatal(err)
		}
		if n != 19 {
			continue
		}
		for gone := range n {
			if err := s.Delete(t.Context(), store.Key{Account: "acme", Run: fmt.Sprint("run-", gone)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func incrementalVacuum(t *testing.T, s *Store) (yes bool) {
	t.Helper()
	var unused int64
	if err := s.writer.QueryRowContext(t.Context(), freePagesSQL).Scan(&unused, &yes); err != nil {
		t.Fatal(err)
	}
	return yes
}

func TestVacuum_ShrinksTheFile(t *testing.T) {
	const mega = 1 << 20
	old, err := os.ReadFile(filepath.Join("testdata", "version-1.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"new": nil, "created without incremental vacuum": old} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fermata.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, path)
			if incrementalVacuum(t, s) != (content == nil) {
				t.Error("only a new file should have incremental vacuum")
			}
			sparseFile(t, s)
			size, err := s.Size(t.Context())
			if err != nil || size.Bytes < 20*mega || size.Free < 18*mega || size.Rows["checkpoint_parts"] < 1 {
				t.Fatalf("%+v, %v", size, err)
			}
			for range 2 {
				if err := s.Vacuum(t.Context()); err != nil {
					t.Fatal(err)
				}
				size, err = s.Size(t.Context())
				if err != nil || size.Bytes > 2*mega || size.Free > 0 {
					t.Errorf("%+v, %v", size, err)
				}
				if file, log := fileSize(t, path), fileSize(t, path+"-wal"); file != size.Bytes || log > 0 {
					t.Errorf("the file has %d bytes, its log %d", file, log)
				}
				if !incrementalVacuum(t, s) {
					t.Error("the next vacuum would rewrite the file again")
				}
			}
			if kept, err := s.Load(t.Context(), store.Key{Account: "acme", Run: "run-19"}); err != nil || len(kept.Parts["run"]) != mega {
				t.Errorf("%d bytes, %v", len(kept.Parts["run"]), err)
			}
		})
	}
}

// A reader keeps its snapshot; the file shrinks when it is done.
func TestVacuum_ShrinksAfterReadersEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s, err := open(path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sparseFile(t, s)
	reading, err := s.readers.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Rollback()
	var parts int
	count := func() error {
		return reading.QueryRowContext(t.Context(), `SELECT count(*) FROM checkpoint_parts`).Scan(&parts)
	}
	if err := count(); err != nil {
		t.Fatal(err)
	}
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := count(); err != nil || parts != 1 {
		t.Errorf("the reader sees %d parts, %v", parts, err)
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	if file := fileSize(t, path); file > 2<<20 {
		t.Errorf("the file has %d bytes", file)
	}
}
