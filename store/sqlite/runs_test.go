package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
	"github.com/fermata-go/fermata/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Store(t, func(t *testing.T) store.Store {
		return mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	})
}

func TestReference(t *testing.T) {
	storetest.Reference(t, func(t *testing.T, clock func() time.Time) store.Store {
		s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
		// What a crash would do to the file is not asked here, and waiting for the disk takes most of the time.
		if _, err := s.writer.ExecContext(t.Context(), `PRAGMA synchronous = OFF`); err != nil {
			t.Fatal(err)
		}
		s.clock = clock
		return s
	})
}

// An interrupt is known by its id alone where its effects are ended, so an id is one run's.
func TestRest_InterruptOfAnotherRunChangesNothing(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	booktest.Rest(t, s, booktest.Begin(t, s, "r1"), nil, "i")
	lease := booktest.Begin(t, s, "r2")
	if _, err := s.Rest(t.Context(), lease, booktest.Asking(nil, "new", "i")); !errors.Is(err, ErrAskedElsewhere) {
		t.Errorf("Rest: %v; want ErrAskedElsewhere", err)
	}
	if all, err := s.Interrupts(t.Context(), "acme", "r2"); err != nil || len(all) > 0 {
		t.Errorf("half of it was done: %+v, %v", all, err)
	}
	booktest.Rest(t, s, lease, nil, "new")
}

// An approve of an action says which; of a question without an action it cannot. Neither lets an effect begin without a digest.
func TestDecide_AnApproveSaysWhat(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	open := booktest.Asking(nil, "action", "none")
	open.Open[1].Action = ""
	if _, err := s.Rest(t.Context(), booktest.Begin(t, s, "r"), open); err != nil {
		t.Fatal(err)
	}
	blank := booktest.Say("r", "1", store.Approve, "action")
	blank.Answers[0].Final = ""
	if receipt, err := s.Decide(t.Context(), blank); err == nil {
		t.Errorf("an approve of nothing in particular was %+v", receipt)
	}
	none := booktest.Say("r", "2", store.Approve, "none")
	none.Answers[0].Final = ""
	booktest.Accepted(t, s, none)
	if _, _, err := s.Begin(t.Context(), booktest.Claim(t, s, "r"), store.NewEffect{Interrupt: "none", Number: 1}); !errors.Is(err, store.ErrNotApproved) {
		t.Errorf("Begin: %v; want ErrNotApproved", err)
	}
}

// A lease is over at the microsecond that it names, and what was over first is taken over first.
func TestClaim_TakesOverInTheOrderOfTheLeases(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	now := time.UnixMicro(1_700_000_000_000_000)
	s.clock = func() time.Time { return now }
	for n, id := range []string{"z", "a", "m"} {
		run := booktest.NewRun(id)
		run.Lease = time.Duration(n+1) * time.Microsecond
		if _, err := s.Create(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long}); err != nil || work != nil {
		t.Fatal(work, err)
	}
	now = now.Add(2 * time.Microsecond)
	for _, id := range []string{"z", "a"} {
		booktest.Claim(t, s, id)
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long}); err != nil || work != nil {
		t.Fatal(work, err)
	}
}

func TestRuns_TooBig(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	run := booktest.NewRun("r")
	run.Input = make([]byte, maxPart+1) // not written to, so that no memory is touched
	if _, err := s.Create(t.Context(), run); !errors.Is(err, ErrTooBig) {
		t.Errorf("Create: %v; want ErrTooBig", err)
	}
	booktest.Begin(t, s, "r")
}

func TestRuns_ClosedStore(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range repeatables {
		if says, err := r.says(t.Context(), s); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "fermata.db") {
			t.Errorf("%s: %q, %v; want ErrClosed", r.name, says, err)
		}
	}
	for name, call := range map[string]func() error{
		"Get":        func() error { _, err := s.Get(t.Context(), "secret", "secret"); return err },
		"List":       func() error { _, err := s.List(t.Context(), "secret", store.Filter{Graph: "secret"}); return err },
		"Interrupts": func() error { _, err := s.Interrupts(t.Context(), "secret", "secret"); return err },
		"Resumed":    func() error { _, err := s.Resumed(t.Context(), "secret", "secret", "secret"); return err },
		"Events":     func() error { _, err := s.Events(t.Context(), "secret", "secret", 0, 0); return err },
		"Feed":       func() error { _, _, err := s.Feed(t.Context(), "secret", "", 0); return err },
		"Finished":   func() error { _, err := s.Finished(t.Context(), time.Time{}, time.Now(), 1); return err },
		"History":    func() error { _, err := s.History(t.Context(), "secret", "secret"); return err },
		"Size":       func() error { _, err := s.Size(t.Context()); return err },
		"Vacuum":     func() error { return s.Vacuum(t.Context()) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
