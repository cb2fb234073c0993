package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
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
	rest(t, s, begin(t, s, "r1"), nil, "i")
	lease := begin(t, s, "r2")
	if _, err := s.Rest(t.Context(), lease, asking(nil, "new", "i")); !errors.Is(err, ErrAskedElsewhere) {
		t.Errorf("Rest: %v; want ErrAskedElsewhere", err)
	}
	if all, err := s.Interrupts(t.Context(), "acme", "r2"); err != nil || len(all) > 0 {
		t.Errorf("half of it was done: %+v, %v", all, err)
	}
	rest(t, s, lease, nil, "new")
}

// An approve of an action says which; of a question without an action it cannot. Neither lets an effect begin without a digest.
func TestDecide_AnApproveSaysWhat(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	open := asking(nil, "action", "none")
	open.Open[1].Action = ""
	if _, err := s.Rest(t.Context(), begin(t, s, "r"), open); err != nil {
		t.Fatal(err)
	}
	blank := say("r", "1", store.Approve, "action")
	blank.Answers[0].Final = ""
	if receipt, err := s.Decide(t.Context(), blank); err == nil {
		t.Errorf("an approve of nothing in particular was %+v", receipt)
	}
	none := say("r", "2", store.Approve, "none")
	none.Answers[0].Final = ""
	accepted(t, s, none)
	if _, _, err := s.Begin(t.Context(), claim(t, s, "r"), store.NewEffect{Interrupt: "none", Number: 1}); !errors.Is(err, store.ErrNotApproved) {
		t.Errorf("Begin: %v; want ErrNotApproved", err)
	}
}

// A lease is over at the microsecond that it names, and what was over first is taken over first.
func TestClaim_TakesOverInTheOrderOfTheLeases(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	now := time.UnixMicro(1_700_000_000_000_000)
	s.clock = func() time.Time { return now }
	for n, id := range []string{"z", "a", "m"} {
		run := newRun(id)
		run.Lease = time.Duration(n+1) * time.Microsecond
		if _, err := s.Create(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: long}); err != nil || work != nil {
		t.Fatal(work, err)
	}
	now = now.Add(2 * time.Microsecond)
	for _, id := range []string{"z", "a"} {
		claim(t, s, id)
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: long}); err != nil || work != nil {
		t.Fatal(work, err)
	}
}

func TestRuns_TooBig(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	run := newRun("r")
	run.Input = make([]byte, maxPart+1) // not written to, so that no memory is touched
	if _, err := s.Create(t.Context(), run); !errors.Is(err, ErrTooBig) {
		t.Errorf("Create: %v; want ErrTooBig", err)
	}
	begin(t, s, "r")
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

// What follows is a book in few words; everything is of account acme.

const long = time.Hour // a lease that does not end during a test

func newRun(id string) store.NewRun {
	return store.NewRun{Account: "acme", ID: id, StateKey: "key-" + id, Owner: "test", Lease: long}
}

func begin(t testing.TB, s *Store, id string) store.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), newRun(id))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// rest gives a run back with these questions; the one called due has a deadline.
func rest(t testing.TB, s *Store, lease store.Lease, applied []string, ids ...string) {
	t.Helper()
	if status, err := s.Rest(t.Context(), lease, asking(applied, ids...)); err != nil || status != store.Waiting {
		t.Fatal(status, err)
	}
}

func asking(applied []string, ids ...string) store.Rest {
	rest := store.Rest{Status: store.Waiting, Applied: applied, Outcome: []byte("asks")}
	for _, id := range ids {
		n := store.NewInterrupt{ID: id, Shown: "shown", Action: "action-" + id}
		if id == "due" {
			n.Timeout = time.Hour
		}
		rest.Open = append(rest.Open, n)
	}
	return rest
}

func say(run, resume string, verdict store.Verdict, ids ...string) store.Decision {
	d := store.Decision{Account: "acme", Run: run, ResumeID: resume, Actor: "ann", Body: "body"}
	for _, id := range ids {
		a := store.Answer{Interrupt: id, Verdict: verdict, Shown: "shown"}
		if verdict == store.Approve {
			a.Final = "action-" + id
		}
		d.Answers = append(d.Answers, a)
	}
	return d
}

func accepted(t testing.TB, s *Store, d store.Decision) {
	t.Helper()
	if receipt, err := s.Decide(t.Context(), d); err != nil || receipt.Result != store.Accepted {
		t.Fatal(receipt, err)
	}
}

func claim(t testing.TB, s *Store, run string) store.Lease {
	t.Helper()
	work, err := s.Claim(t.Context(), store.Claim{Owner: "test", Lease: long})
	if err != nil || work == nil || work.Run.ID != run {
		t.Fatal(work, err)
	}
	return work.Lease
}
