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
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// A repeatableCall has one result when it succeeds and another when it is repeated after an unknown
// outcome.
type repeatableCall struct {
	name                      string
	call                      func(ctx context.Context, s *Store, run string) (string, error)
	firstResult, repeatResult string
}

func leaseOf(run string, fence int64) store.Lease {
	return store.Lease{Account: "acme", Run: run, Fence: fence}
}

// repeatables is the life of a run with every write of the port.
var repeatables = []repeatableCall{
	{"Create", func(ctx context.Context, s *Store, run string) (string, error) {
		lease, err := s.Create(ctx, fixture.NewRun(run))
		return fmt.Sprint("fence ", lease.Fence), err
	}, "fence 1", store.ErrExists.Error()},
	{"Renew", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.Renew(ctx, leaseOf(run, 1), fixture.LeaseDuration)
	}, "", ""},
	{"SetProviderRef", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.SetProviderRef(ctx, leaseOf(run, 1), []byte("ref"))
	}, "", ""},
	{"Save", saveCall(0), "version 1", store.ErrStale.Error()},
	{"Save again", saveCall(1), "version 2", store.ErrStale.Error()},
	{"BeginEffect what is allowed", beginEffectCall(1, "allowed", &store.PolicyRuling{By: "policy"}), "started, begun true", "started, begun false"},
	{"EndExecution", endExecutionCall(1), "waiting", store.ErrFenced.Error()},
	{"Decide", func(ctx context.Context, s *Store, run string) (string, error) {
		receipt, err := s.Decide(ctx, fixture.Decision(run, run, store.VerdictApprove, run+"/yes"))
		return fmt.Sprint(receipt.Result, ", replayed ", receipt.Replayed), err
	}, "accepted, replayed false", "accepted, replayed true"},
	{"Claim", claimCall, "fence 2 with 1 decided", "nothing"},
	{"BeginEffect", beginEffectCall(2, "yes", nil), "started, begun true", "started, begun false"},
	{"EndEffect", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: run + "/yes", Attempt: 1, State: store.EffectSucceeded})
	}, "", ""},
	{"Release", releaseCall(2, store.Release{}), "", store.ErrFenced.Error()},
	{"Claim what was released", claimCall, "fence 3 with 1 decided", "nothing"},
	{"Release to park", releaseCall(3, store.Release{Park: true}), "", store.ErrFenced.Error()},
	{"Retry", func(ctx context.Context, s *Store, run string) (string, error) {
		retried, err := s.Retry(ctx, "acme", run, store.Writes{})
		return string(retried.Status), err
	}, "ready", store.ErrNotFound.Error()},
	{"Claim what was parked", claimCall, "fence 4 with 1 decided", "nothing"},
	{"EndExecution with a decision applied", endExecutionCall(4, "yes"), "waiting", store.ErrFenced.Error()},
	{"Expire", func(ctx context.Context, s *Store, run string) (string, error) {
		for { // the deadline is a moment after EndExecution
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
		cancelled, err := s.Cancel(ctx, "acme", run, store.StatusCancelled, nil, store.Writes{})
		return string(cancelled.Status), err
	}, "cancelled", store.ErrNotFound.Error()},
	{"PutIfAbsent", func(ctx context.Context, s *Store, run string) (string, error) {
		kept, err := s.PutIfAbsent(ctx, run, []byte(run))
		return string(kept), err
	}, "", ""},
	{"DeleteRun", func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.DeleteRun(ctx, "acme", run, store.Writes{})
	}, "", ""},
}

func saveCall(base int64) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		version, err := s.Fenced(leaseOf(run, 1)).Save(ctx, store.Key{Account: "acme", Run: run}, base, putRun("x"))
		return fmt.Sprint("version ", version), err
	}
}

func beginEffectCall(fence int64, interrupt string, allowed *store.PolicyRuling) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		id := run + "/" + interrupt
		line, begun, err := s.BeginEffect(ctx, leaseOf(run, fence), store.NewEffect{Interrupt: id, Attempt: 1, ActionDigest: "action-" + id, Ruling: allowed})
		return fmt.Sprint(line.State, ", begun ", begun), err
	}
}

func endExecutionCall(fence int64, applied ...string) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		var ids []string
		for _, id := range applied {
			ids = append(ids, run+"/"+id)
		}
		end := fixture.WaitingEnd(ids, run+"/yes", run+"/open", run+"/soon")
		end.Open[2].Timeout = 50 * time.Millisecond
		status, err := s.EndExecution(ctx, leaseOf(run, fence), end)
		return string(status), err
	}
}

func releaseCall(fence int64, release store.Release) func(context.Context, *Store, string) (string, error) {
	return func(ctx context.Context, s *Store, run string) (string, error) {
		return "", s.Release(ctx, leaseOf(run, fence), release)
	}
}

func claimCall(ctx context.Context, s *Store, run string) (string, error) {
	work, err := s.Claim(ctx, store.Claim{Owner: "test", Lease: fixture.LeaseDuration, Account: "acme", Run: run})
	if work == nil {
		return "nothing", err
	}
	return fmt.Sprintf("fence %d with %d decided", work.Lease.Fence, len(work.Decided)), err
}

// result returns the result of a successful call, or the text of an error of the port.
func (r repeatableCall) result(ctx context.Context, s *Store, run string) (says string, unknown error) {
	says, err := r.call(ctx, s, run)
	if slices.ContainsFunc(portErrors, func(told error) bool { return errors.Is(err, told) }) {
		return err.Error(), nil
	}
	if r.name == "PutIfAbsent" {
		return "", err // the result is the run
	}
	return says, err
}

// The reply to a commit is lost with the connection. A repeated call returns the result and has no
// second effect.
func TestUnknownOutcome_RepeatAfterLostCommitIsSafe(t *testing.T) {
	network, connString := newProxy(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.watch.close() // otherwise a NOTIFY might be cut off
	for n, r := range repeatables {
		// Run the steps for another run first, so that the statement is prepared and has one reply.
		for _, before := range repeatables[:n+1] {
			if before.name == "Expire" {
				continue // it applies to all runs
			}
			if says, err := before.result(t.Context(), s, fmt.Sprint("warm-", n)); err != nil || says != before.firstResult {
				t.Fatalf("%s says %q, %v; want %q", before.name, says, err, before.firstResult)
			}
		}
		if _, err := s.Cancel(t.Context(), "acme", fmt.Sprint("warm-", n), store.StatusCancelled, nil, store.Writes{}); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		lost := "Z" // ready for query: the transaction is committed
		if r.name == "Expire" {
			lost = "C" // it reads first, which has its own reply
		}
		network.cut(lost[0])
		if says, err := r.result(t.Context(), s, "r"); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%s returns %q, %v although the reply to its commit was lost", r.name, says, err)
		}
		wants := []string{r.repeatResult, r.repeatResult}
		if r.name == "Expire" {
			wants = []string{r.firstResult, r.repeatResult}
		}
		for _, want := range wants {
			if says, err := r.result(t.Context(), s, "r"); err != nil || says != want {
				t.Fatalf("%s, repeated, says %q, %v; want %q", r.name, says, err, want)
			}
		}
	}
}

// The connection is lost before anything was done.
func TestUnknownOutcome_RepeatAfterEarlyLossExecutes(t *testing.T) {
	network, connString := newProxy(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.watch.close()
	for _, r := range repeatables {
		network.Reset()
		if says, err := r.result(t.Context(), s, "r"); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%s says %q, %v without a connection", r.name, says, err)
		}
		for _, want := range []string{r.firstResult, r.repeatResult} {
			if says, err := r.result(t.Context(), s, "r"); err != nil || says != want {
				t.Fatalf("%s says %q, %v; want %q", r.name, says, err, want)
			}
		}
	}
}

// A claim whose reply is lost has no owner that knows of it until its lease expires.
func TestUnknownOutcome_ALostClaimIsTakenOver(t *testing.T) {
	network, connString := newProxy(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	s.watch.close()
	want := func(run string) {
		t.Helper()
		work, err := s.Claim(t.Context(), store.Claim{Owner: "test", Lease: time.Nanosecond})
		if err != nil || work != nil && work.Run.ID != run || work == nil && run != "" {
			t.Fatalf("claimed %+v, %v; want %q", work, err, run)
		}
	}
	want("")
	if err := s.Release(t.Context(), fixture.CreateRun(t, s, "r"), store.Release{}); err != nil {
		t.Fatal(err)
	}
	network.cut('Z')
	if _, err := s.Claim(t.Context(), store.Claim{Owner: "lost", Lease: fixture.LeaseDuration}); !errors.Is(err, ErrUnavailable) {
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
		"Get":          func() error { _, err := s.Get(ctx, "secret", "secret"); return err },
		"List":         func() error { _, err := s.List(ctx, "secret", store.RunFilter{}); return err },
		"Interrupts":   func() error { _, err := s.Interrupts(ctx, "secret", "secret"); return err },
		"Receipt":      func() error { _, err := s.Receipt(ctx, "secret", "secret", "secret"); return err },
		"Events":       func() error { _, err := s.Events(ctx, "secret", "secret", 0, 0); return err },
		"Feed":         func() error { _, _, err := s.Feed(ctx, "secret", "", 0); return err },
		"History":      func() error { _, err := s.History(ctx, "secret", "secret"); return err },
		"FinishedRuns": func() error { _, err := s.FinishedRuns(ctx, time.Time{}, time.Now(), 0); return err },
		"Size":         func() error { _, err := s.Size(ctx); return err },
		"Vacuum":       func() error { return s.Vacuum(ctx) },
		"Reencrypt":    func() error { _, err := s.Reencrypt(ctx, "", 0, nil); return err },
		"Now":          func() error { _, err := s.Now(ctx); return err },
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
