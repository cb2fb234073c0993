package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Store(t, func(t *testing.T) store.Store {
		return mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	})
}

func TestStore_MatchesReference(t *testing.T) {
	storetest.Reference(t, func(t *testing.T, clock func() time.Time) store.Store {
		s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
		// This test does not need durability, and syncing takes most of the time.
		if _, err := s.writer.ExecContext(t.Context(), `PRAGMA synchronous = OFF`); err != nil {
			t.Fatal(err)
		}
		s.clock = clock
		return s
	})
}

func TestEndExecution_InterruptOfAnotherRunChangesNothing(t *testing.T) {
	fixture.CheckInterruptOfAnotherRun(t, mustOpen(t, filepath.Join(t.TempDir(), "fermata.db")), ErrInterruptOfAnotherRun)
}

// A lease expires at its microsecond, and the first to expire is taken over first.
func TestClaim_TakesOverInOrderOfLeaseExpiry(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	now := time.UnixMicro(1_700_000_000_000_000)
	s.clock = func() time.Time { return now }
	for n, id := range []string{"z", "a", "m"} {
		run := fixture.NewRun(id)
		run.Lease = time.Duration(n+1) * time.Microsecond
		if _, err := s.Create(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work != nil {
		t.Fatal(work, err)
	}
	now = now.Add(2 * time.Microsecond)
	for _, id := range []string{"z", "a"} {
		fixture.MustClaim(t, s, id)
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work != nil {
		t.Fatal(work, err)
	}
}

func TestRuns_TooLarge(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	run := fixture.NewRun("r")
	run.Input = make([]byte, maxValueSize+1) // never written, so that no memory is allocated
	if _, err := s.Create(t.Context(), run); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Create: %v; want ErrTooBig", err)
	}
	fixture.CreateRun(t, s, "r")
}

func TestRuns_ClosedStore(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range repeatables {
		if says, err := r.result(t.Context(), s); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "fermata.db") {
			t.Errorf("%s: %q, %v; want ErrClosed", r.name, says, err)
		}
	}
	for name, call := range map[string]func() error{
		"Get":          func() error { _, err := s.Get(t.Context(), "secret", "secret"); return err },
		"List":         func() error { _, err := s.List(t.Context(), "secret", store.RunFilter{Graph: "secret"}); return err },
		"Interrupts":   func() error { _, err := s.Interrupts(t.Context(), "secret", "secret"); return err },
		"Receipt":      func() error { _, err := s.Receipt(t.Context(), "secret", "secret", "secret"); return err },
		"Events":       func() error { _, err := s.Events(t.Context(), "secret", "secret", 0, 0); return err },
		"Feed":         func() error { _, _, err := s.Feed(t.Context(), "secret", "", 0); return err },
		"FinishedRuns": func() error { _, err := s.FinishedRuns(t.Context(), time.Time{}, time.Now(), 1); return err },
		"History":      func() error { _, err := s.History(t.Context(), "secret", "secret"); return err },
		"Size":         func() error { _, err := s.Size(t.Context()); return err },
		"Vacuum":       func() error { return s.Vacuum(t.Context()) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
