package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

var demo, putRun, mustSave, wantRun = fixture.DemoKey, fixture.PutHead, fixture.MustSave, fixture.WantCheckpoint

func mustOpen(t testing.TB, connString string, config Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), connString, config)
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

// prepared returns a database with the tables of a store, for tests that do not change them.
func prepared(t testing.TB) string {
	t.Helper()
	return pgtest.Prepared(t, func(empty string) error {
		s, err := Open(t.Context(), empty, Config{})
		if err != nil {
			return err
		}
		return s.Close()
	})
}

// longTimeouts is for calls that have to wait, even on a slow machine.
var longTimeouts = Config{Timeout: 5 * time.Minute, LockTimeout: 5 * time.Minute}

// openHurried opens a Store for calls that have to time out. On a slow machine Open times out too,
// and tries again.
func openHurried(t testing.TB, connString string, config Config) *Store {
	t.Helper()
	for {
		s, err := Open(t.Context(), connString, config)
		if errors.Is(err, ErrTimeout) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func TestOpen_FindsEarlierSaves(t *testing.T) {
	connString := pgtest.New(t)
	fixture.CheckReopen(t, func() fixture.Closable { return mustOpen(t, connString, Config{}) })
}

func TestOpen_TwoReplicas(t *testing.T) {
	connString := pgtest.New(t)
	fixture.CheckTwoStores(t, mustOpen(t, connString, Config{}), mustOpen(t, connString, Config{}))
}

func TestOpen_SchemasAreSeparate(t *testing.T) {
	connString := pgtest.New(t)
	var stores []*Store
	for _, schema := range []string{"", "Fermata", `we"ird, $user. Ünï`, strings.Repeat("x", 63)} {
		s := mustOpen(t, connString, Config{Schema: schema})
		mustSave(t, s, 0, schema)
		stores = append(stores, s)
	}
	for i, schema := range []string{"", "Fermata", `we"ird, $user. Ünï`, strings.Repeat("x", 63)} {
		wantRun(t, stores[i], 1, schema)
	}
}

func TestClose_EndsTheStore(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
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
		if err := call(); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), name+" "+s.name) {
			t.Errorf("%s a closed store: %v", name, err)
		}
	}
}

func TestClose_LeavesNoGoroutineBehind(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	mustSave(t, s, 0, "x")
	s.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("github.com/jackc/")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("leaked goroutines of the driver:\n%s", stacks)
		}
		runtime.Gosched()
	}
}

// Names have any length, but an index entry of PostgreSQL has at most 2704 incompressible bytes.
func TestSave_LongNames(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	random := make([]byte, 100_000)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	long, longer := string(random[1:]), string(random)
	keys := []store.Key{{Account: long, Run: longer}, {Account: longer, Run: long}, {Account: long, Run: long}}
	for i, key := range keys {
		for base := range int64(2) {
			delta := store.Delta{Put: []store.Part{{Name: long, Data: []byte{byte(i)}}, {Name: longer, Data: []byte{byte(base)}}}}
			if _, err := s.Save(t.Context(), key, base, delta); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, key := range keys {
		checkpoint, err := s.Load(t.Context(), key)
		if err != nil || !bytes.Equal(checkpoint.Parts[long], []byte{byte(i)}) || !bytes.Equal(checkpoint.Parts[longer], []byte{1}) {
			t.Errorf("key %d: %d parts, %v", i, len(checkpoint.Parts), err)
		}
	}
}

func TestSave_LargeDelta(t *testing.T) {
	const parts, size = 10_000, 1000
	s := mustOpen(t, prepared(t), Config{})
	content := make([]byte, size+parts)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	for base := range int64(2) { // creates all, then replaces half and deletes half
		var delta store.Delta
		for i := range parts {
			if name := fmt.Sprint("part/", i); base == 0 || i%2 == 0 {
				delta.Put = append(delta.Put, store.Part{Name: name, Data: content[i+int(base) : i+int(base)+size]})
			} else {
				delta.Delete = append(delta.Delete, name)
			}
		}
		if _, err := s.Save(t.Context(), demo, base, delta); err != nil {
			t.Fatal(err)
		}
		checkpoint, err := s.Load(t.Context(), demo)
		if err != nil || checkpoint.Version != base+1 || len(checkpoint.Parts) != len(delta.Put) {
			t.Fatalf("version %d with %d parts, %v; want %d with %d", checkpoint.Version, len(checkpoint.Parts), err, base+1, len(delta.Put))
		}
		for _, part := range delta.Put {
			if !bytes.Equal(checkpoint.Parts[part.Name], part.Data) {
				t.Fatalf("%s of version %d differs", part.Name, base+1)
			}
		}
	}
}

// Nothing is sent that the server could not accept. The parts share their bytes, so that no memory
// is allocated.
func TestSave_TooLargeReturnsErrTooLarge(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	megabyte := make([]byte, 1_000_000)
	var delta store.Delta
	for i := range maxBatch / len(megabyte) {
		delta.Put = append(delta.Put, store.Part{Name: fmt.Sprint(i), Data: megabyte})
	}
	if _, err := s.Save(t.Context(), demo, 0, delta); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Save: %v; want ErrTooBig", err)
	}
	run := fixture.NewRun("r")
	run.Input = make([]byte, maxBatch+1)
	if _, err := s.Create(t.Context(), run); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Create: %v; want ErrTooBig", err)
	}
	fixture.CreateRun(t, s, "r")
}

// The port forbids a name in both lists and does not define a repeated name. The other stores
// delete first, and the last one wins; PostgreSQL would reject a statement that changes a row
// twice.
func TestSave_NameTwiceInADelta(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	for base := range int64(2) {
		_, err := s.Save(t.Context(), demo, base, store.Delta{
			Put:    []store.Part{{Name: "run", Data: []byte("first")}, {Name: "b"}, {Name: "run", Data: []byte("last")}},
			Delete: []string{"run", "never there", "never there"},
		})
		if err != nil {
			t.Fatal(err)
		}
		wantRun(t, s, base+1, "last")
	}
}

// A delete that waits for a save began before the parts of that save existed. It must delete them
// too.
func TestDelete_RemovesPartsOfASaveItWaitedFor(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, longTimeouts)
	mustSave(t, s, 0, "kept")
	saving := raw(t, connString)
	mustExec(t, saving, `SET search_path = fermata`, `BEGIN`)
	if _, err := saving.Exec(t.Context(), advanceSQL, []byte(demo.Account), []byte(demo.Run),
		[][]byte{[]byte("new")}, [][]byte{[]byte("x")}, 1, [][]byte{}); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error)
	go func() { deleted <- s.Delete(t.Context(), demo) }()
	waitFor(t, raw(t, connString), waitingQuery)
	mustExec(t, saving, `COMMIT`)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	var left int
	if err := saving.QueryRow(t.Context(), `SELECT count(*) FROM checkpoint_parts`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d parts are left, %v", left, err)
	}
}

// A save that waits for another one began before that one's version and parts existed. It must
// fail.
func TestSave_WaitedSaveReturnsErrStale(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, longTimeouts)
	for _, base := range []int64{0, 1} { // the race to create, and one to advance
		saving := raw(t, connString)
		mustExec(t, saving, `SET search_path = fermata`, `BEGIN`)
		text, args := createSQL, []any{[]byte(demo.Account), []byte(demo.Run), [][]byte{[]byte("run")}, [][]byte{[]byte("winner")}}
		if base == 1 {
			text, args = advanceSQL, append(args, 1, [][]byte{})
		}
		if _, err := saving.Exec(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
		saved := make(chan error)
		go func() {
			_, err := s.Save(t.Context(), demo, base, store.Delta{
				Put: []store.Part{{Name: "run", Data: []byte("loser")}, {Name: "also", Data: []byte("loser")}},
			})
			saved <- err
		}()
		waitFor(t, raw(t, connString), waitingQuery)
		mustExec(t, saving, `COMMIT`)
		if err := <-saved; !errors.Is(err, store.ErrStale) {
			t.Errorf("Save on base %d: %v; want ErrStale", base, err)
		}
		wantRun(t, s, base+1, "winner")
	}
}

// Deletes and saves of the same runs in every order: no deadlock, and no parts of deleted
// checkpoints remain.
func TestConcurrent_SavesAndDeletes(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, Config{})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 30 {
				key := store.Key{Run: fmt.Sprint(i % 2)}
				if (i+worker)%4 == 0 {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Errorf("Delete: %v", err)
					}
					continue
				}
				checkpoint, err := s.Load(t.Context(), key)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("Load: %v", err)
				}
				_, err = s.Save(t.Context(), key, checkpoint.Version, generation(checkpoint.Version+1))
				if err != nil && !errors.Is(err, store.ErrStale) {
					t.Errorf("Save: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for run := range 2 {
		key := store.Key{Run: fmt.Sprint(run)}
		if checkpoint, err := s.Load(t.Context(), key); err == nil {
			wantConsistent(t, checkpoint)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	var left int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM checkpoint_parts`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d parts are left, %v", left, err)
	}
}

func BenchmarkSave(b *testing.B) {
	s := mustOpen(b, pgtest.New(b), Config{})
	base := int64(0)
	for b.Loop() {
		var err error
		if base, err = s.Save(context.Background(), demo, base, typical()); err != nil {
			b.Fatal(err)
		}
	}
}

func typical() (delta store.Delta) {
	for _, name := range []string{"run", "state", "node/draft", "node/review", "interrupt/1"} {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: bytes.Repeat([]byte("x"), 64)})
	}
	return delta
}

// BenchmarkSave_Runs saves many runs at once: the server commits several with one sync.
func BenchmarkSave_Runs(b *testing.B) {
	for _, runs := range []int{4, 16, 64} {
		b.Run(fmt.Sprint(runs), func(b *testing.B) {
			s := mustOpen(b, pgtest.New(b), Config{MaxConns: runs})
			delta := typical()
			var saving sync.WaitGroup
			todo := make(chan struct{})
			for i := range runs {
				saving.Go(func() {
					key, base := store.Key{Account: "acme", Run: fmt.Sprint(i)}, int64(0)
					for range todo {
						var err error
						if base, err = s.Save(context.Background(), key, base, delta); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				todo <- struct{}{}
			}
			close(todo)
			saving.Wait()
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	s := mustOpen(b, pgtest.New(b), Config{})
	if _, err := s.Save(b.Context(), demo, 0, typical()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Load(context.Background(), demo); err != nil {
			b.Fatal(err)
		}
	}
}
