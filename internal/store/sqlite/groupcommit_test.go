package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// runTogether makes calls whose first writes form one group, in this order. It returns when all
// calls have ended.
func runTogether(s *Store, calls ...func(*Store)) {
	twin := &Store{
		name: s.name, writer: s.writer, readers: s.readers, reading: s.reading, writing: s.writing, clock: s.clock,
		queue: make(chan *pendingWrite), closing: make(chan struct{}),
	}
	var writes []*pendingWrite
	var ended []chan struct{}
	for _, call := range calls {
		done := make(chan struct{})
		go func() { defer close(done); call(twin) }()
		select {
		case w := <-twin.queue:
			writes = append(writes, w)
		case <-done: // without a write
		}
		ended = append(ended, done)
	}
	next := func() (w *pendingWrite) {
		if len(writes) > 0 {
			w, writes = writes[0], writes[1:]
		}
		return w
	}
	for w := next(); w != nil; w = next() {
		twin.commitGroup(w, next)
	}
	twin.loops.Go(twin.writeLoop) // for their later writes
	for _, done := range ended {
		<-done
	}
	close(twin.closing)
	twin.loops.Wait()
}

// saveFirst saves the first checkpoint of a run and stores the result.
func saveFirst(ctx context.Context, run string, result *error) func(*Store) {
	return func(s *Store) {
		_, *result = s.Save(ctx, store.Key{Run: run}, 0, putRun(run))
	}
}

func wantSaved(t *testing.T, s *Store, run string, want bool) {
	t.Helper()
	switch _, err := s.Load(t.Context(), store.Key{Run: run}); {
	case want && err != nil:
		t.Errorf("%s: %v", run, err)
	case !want && !errors.Is(err, store.ErrNotFound):
		t.Errorf("%s: %v; want %v", run, err, store.ErrNotFound)
	}
}

func newStore(t *testing.T) *Store { return mustOpen(t, filepath.Join(t.TempDir(), "fermata.db")) }

// Any number of concurrent writes waits for the disk once.
func TestGroup_ConcurrentWritesShareATransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, path)
		defer s.Close()
		const callers = 2*maxGroupSize + 3
		var at []*sql.Tx
		note := func(_ context.Context, tx *sql.Tx) error { at = append(at, tx); return nil }
		err := s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			for range callers - 1 {
				go s.write(ctx, note)
			}
			synctest.Wait() // until all of them are queued
			return note(ctx, tx)
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(at) != callers {
			t.Fatalf("%d writes; want %d", len(at), callers)
		}
		if transactions := len(slices.Compact(at)); transactions != 3 {
			t.Errorf("%d writes in %d transactions; want 3", callers, transactions)
		}
	})
}

func TestGroup_FailedWriteUndoesOnlyItself(t *testing.T) {
	s := newStore(t)
	failing := errors.New("failing")
	for _, place := range []int{0, 1, 2} {
		result := make([]error, 3)
		var calls []func(*Store)
		for n := range result {
			calls = append(calls, saveFirst(t.Context(), fmt.Sprint(place, "/", n), &result[n]))
		}
		calls[place] = func(s *Store) {
			result[place] = s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				half := txn{tx: tx, statements: s.writing}
				return errors.Join(half.save(ctx, store.Key{Run: fmt.Sprint(place, "/", place)}, 0, putRun("half")), failing)
			})
		}
		runTogether(s, calls...)
		for n, err := range result {
			if n == place != errors.Is(err, failing) || n != place && err != nil {
				t.Errorf("%d fails, %d is result: %v", place, n, err)
			}
			wantSaved(t, s, fmt.Sprint(place, "/", n), n != place)
		}
	}
}

// I9: without a commit no result may be returned, not even ErrStale because of another write of the
// group.
func TestGroup_I9_FailedCommitFailsEveryWrite(t *testing.T) {
	s := newStore(t)
	refuse := func(s *Store) {
		_ = s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			// The database checks foreign keys at the commit.
			_, err := tx.ExecContext(ctx, `PRAGMA defer_foreign_keys = ON`)
			if err == nil {
				_, err = tx.ExecContext(ctx, `INSERT INTO checkpoint_parts (account, run, name, data) VALUES (x'', x'00', x'00', x'')`)
			}
			return err
		})
	}
	var first, second error
	runTogether(s, saveFirst(t.Context(), "run", &first), saveFirst(t.Context(), "run", &second), refuse)
	for _, err := range []error{first, second} {
		if err == nil || errors.Is(err, store.ErrStale) {
			t.Errorf("result: %v", err)
		}
	}
	wantSaved(t, s, "run", false)
	if _, err := s.Save(t.Context(), store.Key{Run: "run"}, 0, putRun("again")); err != nil {
		t.Error("the store does not continue:", err)
	}
}

// The database may abort the whole transaction because of one write. The other writes must succeed.
func TestGroup_LostTransactionRetriesEachWriteAlone(t *testing.T) {
	s := newStore(t)
	tries := 0
	giveUp := func(s *Store) {
		if err := s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			tries++
			_, err := tx.ExecContext(ctx, `ROLLBACK`)
			return errors.Join(err, ErrFull)
		}); !errors.Is(err, ErrFull) {
			t.Errorf("result: %v", err)
		}
	}
	var first, second error
	runTogether(s, saveFirst(t.Context(), "first", &first), giveUp, saveFirst(t.Context(), "second", &second))
	if first != nil || second != nil || tries != 2 {
		t.Errorf("result %v and %v, tried %d times", first, second, tries)
	}
	wantSaved(t, s, "first", true)
	wantSaved(t, s, "second", true)
}

func TestGroup_PanicReachesItsCaller(t *testing.T) {
	s := newStore(t)
	for n, calls := range [][]int{{0, 1}, {1, 0}} {
		var result error
		both := []func(*Store){
			func(s *Store) {
				defer func() {
					if p := recover(); p != "at the desk" {
						t.Errorf("recovered %v", p)
					}
				}()
				_ = s.write(t.Context(), func(context.Context, *sql.Tx) error { panic("at the desk") })
			},
			saveFirst(t.Context(), fmt.Sprint(n), &result),
		}
		runTogether(s, both[calls[0]], both[calls[1]])
		if result != nil {
			t.Error(result)
		}
		wantSaved(t, s, fmt.Sprint(n), true)
	}
}

// A write that has begun is not cancelled, because that would undo the writes of others.
func TestGroup_CancelledWriteLeavesBeforeItBegins(t *testing.T) {
	s := newStore(t)
	late, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() {
		<-begun
		early, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.Save(early, store.Key{Run: "early"}, 0, putRun("early")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result: %v", err)
		}
		begun <- struct{}{}
	}()
	err := s.write(late, func(ctx context.Context, tx *sql.Tx) error {
		begun <- struct{}{}
		<-begun
		cancel()
		return txn{tx: tx, statements: s.writing}.save(ctx, store.Key{Run: "late"}, 0, putRun("late"))
	})
	if err != nil {
		t.Error(err)
	}
	wantSaved(t, s, "early", false)
	wantSaved(t, s, "late", true)
}

func TestClose_WaitsForBegunWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, path)
		var refused error
		err := s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			go s.Close()
			synctest.Wait()
			saveFirst(ctx, "late", &refused)(s)
			return txn{tx: tx, statements: s.writing}.save(ctx, store.Key{Run: "run"}, 0, putRun("run"))
		})
		if err != nil || !errors.Is(refused, ErrClosed) {
			t.Errorf("result %v, and then %v", err, refused)
		}
	})
	s := mustOpen(t, path)
	wantSaved(t, s, "run", true)
	wantSaved(t, s, "late", false)
}
