package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
)

// A repeatable call says first when it comes through, and again when it is repeated because nobody knew that it had.
type repeatable struct {
	name         string
	call         func(ctx context.Context, s *Store, run string) (string, error)
	first, again string
}

func leaseOf(run string, fence int64) store.Lease {
	return store.Lease{Account: "acme", Run: run, Fence: fence}
}

// repeatables is the life of a run, every write of the port in it.
var repeatables = []repeatable{
	{"Create", func(ctx context.Context, s *Store, run string) (string, error) {
		lease, err := s.Create(ctx, booktest.NewRun(run))
		return fmt.Sprint("fence ", lease.Fence), err
	}, "fence 1", store.ErrExists.Error()},
	{"Renew", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.Renew(ctx, leaseOf(run, 1), booktest.Long)
	}, "", ""},
	{"SetRef", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.SetRef(ctx, leaseOf(run, 1), []byte("ref"))
	}, "", ""},
	{"Save", saving(0), "version 1", store.ErrStale.Error()},
	{"Save again", saving(1), "version 2", store.ErrStale.Error()},
	{"Begin what is allowed", beginning(1, "allowed", &store.Allowed{By: "policy"}), "started, begun true", "started, begun false"},
	{"Rest", resting(1), "waiting", store.ErrFenced.Error()},
	{"Decide", func(ctx context.Context, s *Store, run string) (string, error) {
		receipt, err := s.Decide(ctx, booktest.Say(run, run, store.Approve, run+"/yes"))
		return fmt.Sprint(receipt.Result, ", replayed ", receipt.Replayed), err
	}, "accepted, replayed false", "accepted, replayed true"},
	{"Claim", claiming, "fence 2 with 1 decided", "nothing"},
	{"Begin", beginning(2, "yes", nil), "started, begun true", "started, begun false"},
	{"End", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.End(ctx, store.EffectEnd{Account: "acme", Interrupt: run + "/yes", Number: 1, State: store.Succeeded})
	}, "", ""},
	{"Release", releasing(2, store.Release{}), "", store.ErrFenced.Error()},
	{"Claim what was released", claiming, "fence 3 with 1 decided", "nothing"},
	{"Release to park", releasing(3, store.Release{Park: true}), "", store.ErrFenced.Error()},
	{"Retry", func(ctx context.Context, s *Store, run string) (string, error) {
		retried, err := s.Retry(ctx, "acme", run, store.Beside{})
		return string(retried.Status), err
	}, "ready", store.ErrNotFound.Error()},
	{"Claim what was parked", claiming, "fence 4 with 1 decided", "nothing"},
	{"Rest with a decision applied", resting(4, "yes"), "waiting", store.ErrFenced.Error()},
	{"Expire", func(ctx context.Context, s *Store, run string) (string, error) {
		for { // the deadline is a moment after the rest
			asked, err := s.Interrupts(ctx, "acme", run)
			if err != nil {
				return "", err
			}
			if now, err := s.Now(ctx); err != nil {
				return "", err
			} else if !asked[len(asked)-1].Deadline.After(now) {
				break
			}
		}
		expired, err := s.Expire(ctx, time.Time{}, 10, nil)
		return fmt.Sprint(len(expired), " expired"), err
	}, "1 expired", "0 expired"},
	{"Cancel", func(ctx context.Context, s *Store, run string) (string, error) {
		cancelled, err := s.Cancel(ctx, "acme", run, store.Cancelled, nil, store.Beside{})
		return string(cancelled.Status), err
	}, "cancelled", store.ErrNotFound.Error()},
	{"Once", func(ctx context.Context, s *Store, run string) (string, error) {
		kept, err := s.Once(ctx, run, []byte(run))
		return string(kept), err
	}, "", ""},
	{"Forget", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.Forget(ctx, "acme", run, store.Beside{})
	}, "", ""},
}

func saving(base int64) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		version, err := s.Fenced(leaseOf(run, 1)).Save(ctx, store.Key{Account: "acme", Run: run}, base, putRun("x"))
		return fmt.Sprint("version ", version), err
	}
}

func beginning(fence int64, interrupt string, allowed *store.Allowed) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		id := run + "/" + interrupt
		line, begun, err := s.Begin(ctx, leaseOf(run, fence), store.NewEffect{Interrupt: id, Number: 1, Digest: "action-" + id, Allowed: allowed})
		return fmt.Sprint(line.State, ", begun ", begun), err
	}
}

func resting(fence int64, applied ...string) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		var ids []string
		for _, id := range applied {
			ids = append(ids, run+"/"+id)
		}
		rest := booktest.Asking(ids, run+"/yes", run+"/open", run+"/soon")
		rest.Open[2].Timeout = 50 * time.Millisecond
		status, err := s.Rest(ctx, leaseOf(run, fence), rest)
		return string(status), err
	}
}

func releasing(fence int64, release store.Release) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.Release(ctx, leaseOf(run, fence), release)
	}
}

func claiming(ctx context.Context, s *Store, run string) (string, error) {
	work, err := s.Claim(ctx, store.Claim{Owner: "test", Lease: booktest.Long, Account: "acme", Run: run})
	if work == nil {
		return "nothing", err
	}
	return fmt.Sprintf("fence %d with %d decided", work.Lease.Fence, len(work.Decided)), err
}

// says is what a call says that came through: its result, or an error that the port names.
func (r repeatable) says(ctx context.Context, s *Store, run string) (says string, unknown error) {
	says, err := r.call(ctx, s, run)
	if slices.ContainsFunc(known, func(told error) bool { return errors.Is(err, told) }) {
		return err.Error(), nil
	}
	if r.name == "Once" {
		return "", err // what it says is the run
	}
	return says, err
}

// The answer to a commit is lost with the connection. Whoever repeats the call is told what came of it, and does it no second time.
func TestUnknownOutcome_RepeatingAfterALostCommitIsSafe(t *testing.T) {
	network, connString := through(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.hints.close() // or a NOTIFY might be what is cut off
	for n, r := range repeatables {
		// A life of somebody else, up to here, so that the connection knows the statement and there is one answer to it.
		for _, before := range repeatables[:n+1] {
			if before.name == "Expire" {
				continue // it is for all runs
			}
			if says, err := before.says(t.Context(), s, fmt.Sprint("warm-", n)); err != nil || says != before.first {
				t.Fatalf("%s says %q, %v; want %q", before.name, says, err, before.first)
			}
		}
		if _, err := s.Cancel(t.Context(), "acme", fmt.Sprint("warm-", n), store.Cancelled, nil, store.Beside{}); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		lost := "Z" // ready for the next: the transaction is committed
		if r.name == "Expire" {
			lost = "C" // it looks first, which has an answer of its own
		}
		network.cut(lost[0])
		if says, err := r.says(t.Context(), s, "r"); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%s says %q, %v although nobody has heard of its commit", r.name, says, err)
		}
		wants := []string{r.again, r.again}
		if r.name == "Expire" {
			wants = []string{r.first, r.again}
		}
		for _, want := range wants {
			if says, err := r.says(t.Context(), s, "r"); err != nil || says != want {
				t.Fatalf("%s, repeated, says %q, %v; want %q", r.name, says, err, want)
			}
		}
	}
}

// The connection is lost before anything was done.
func TestUnknownOutcome_RepeatingWhatWasNotDoneDoesIt(t *testing.T) {
	network, connString := through(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.hints.close()
	for _, r := range repeatables {
		network.Reset()
		if says, err := r.says(t.Context(), s, "r"); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%s says %q, %v without a connection", r.name, says, err)
		}
		for _, want := range []string{r.first, r.again} {
			if says, err := r.says(t.Context(), s, "r"); err != nil || says != want {
				t.Fatalf("%s says %q, %v; want %q", r.name, says, err, want)
			}
		}
	}
}

// A claim whose answer is lost belongs to nobody who knows of it, until its lease is over.
func TestUnknownOutcome_ALostClaimIsTakenOver(t *testing.T) {
	network, connString := through(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.hints.close()
	want := func(run string) {
		t.Helper()
		work, err := s.Claim(t.Context(), store.Claim{Owner: "test", Lease: time.Nanosecond})
		if err != nil || work != nil && work.Run.ID != run || work == nil && run != "" {
			t.Fatalf("claimed %+v, %v; want %q", work, err, run)
		}
	}
	want("")
	if err := s.Release(t.Context(), booktest.Begin(t, s, "r"), store.Release{}); err != nil {
		t.Fatal(err)
	}
	network.cut('Z')
	if _, err := s.Claim(t.Context(), store.Claim{Owner: "lost", Lease: booktest.Long}); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Claim: %v; want ErrUnavailable", err)
	}
	want("")
	if err := s.Renew(t.Context(), leaseOf("r", 2), time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	want("r")
}

func TestRuns_ClosedStore(t *testing.T) {
	s := mustOpen(t, pgtest.New(t), Config{})
	s.Close()
	ctx := t.Context()
	calls := map[string]func() error{
		"Get":        func() error { _, err := s.Get(ctx, "secret", "secret"); return err },
		"List":       func() error { _, err := s.List(ctx, "secret", store.Filter{}); return err },
		"Interrupts": func() error { _, err := s.Interrupts(ctx, "secret", "secret"); return err },
		"Resumed":    func() error { _, err := s.Resumed(ctx, "secret", "secret", "secret"); return err },
		"Events":     func() error { _, err := s.Events(ctx, "secret", "secret", 0, 0); return err },
		"Feed":       func() error { _, _, err := s.Feed(ctx, "secret", "", 0); return err },
		"History":    func() error { _, err := s.History(ctx, "secret", "secret"); return err },
		"Finished":   func() error { _, err := s.Finished(ctx, time.Time{}, time.Now(), 0); return err },
		"Size":       func() error { _, err := s.Size(ctx); return err },
		"Vacuum":     func() error { return s.Vacuum(ctx) },
		"Reseal":     func() error { _, err := s.Reseal(ctx, "", 0, nil); return err },
		"Now":        func() error { _, err := s.Now(ctx); return err },
		"Index":      func() error { _, err := s.Index(ctx, demo); return err },
		"Parts":      func() error { _, err := s.Parts(ctx, demo, 1, nil); return err },
	}
	for _, r := range repeatables {
		if r.name != "Expire" { // which the test lets wait
			calls[r.name] = func() error { _, err := r.call(ctx, s, "secret"); return err }
		}
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want ErrClosed", name, err)
		}
	}
}
