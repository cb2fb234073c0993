package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	driver "modernc.org/sqlite"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// A repeatableCall has one result when it succeeds and another when it is repeated after an unknown
// outcome.
type repeatableCall struct {
	name                      string
	call                      func(ctx context.Context, s *Store) (string, error)
	firstResult, repeatResult string
}

var ownLease = func(fence int64) store.Lease { return store.Lease{Account: "acme", Run: "r", Fence: fence} }

// repeatables is the life of a run with every write of the port.
var repeatables = []repeatableCall{
	{"Create", func(ctx context.Context, s *Store) (string, error) {
		lease, err := s.Create(ctx, fixture.NewRun("r"))
		return fmt.Sprint("fence ", lease.Fence), err
	}, "fence 1", store.ErrExists.Error()},
	{"Renew", func(ctx context.Context, s *Store) (string, error) {
		return "", s.Renew(ctx, ownLease(1), fixture.LeaseDuration)
	}, "", ""},
	{"SetProviderRef", func(ctx context.Context, s *Store) (string, error) {
		return "", s.SetProviderRef(ctx, ownLease(1), []byte("ref"))
	}, "", ""},
	{"Save", func(ctx context.Context, s *Store) (string, error) {
		version, err := s.Fenced(ownLease(1)).Save(ctx, demo, 0, putRun("x"))
		return fmt.Sprint("version ", version), err
	}, "version 1", store.ErrStale.Error()},
	{"EndExecution", endExecutionCall(1, nil), "waiting", store.ErrFenced.Error()},
	{"Decide", func(ctx context.Context, s *Store) (string, error) {
		receipt, err := s.Decide(ctx, fixture.Decision("r", "1", store.VerdictApprove, "yes"))
		return fmt.Sprint(receipt.Result, ", replayed ", receipt.Replayed), err
	}, "accepted, replayed false", "accepted, replayed true"},
	{"Claim", claimCall, "fence 2 with 1 decided", "nothing"},
	{"BeginEffect", func(ctx context.Context, s *Store) (string, error) {
		line, begun, err := s.BeginEffect(ctx, ownLease(2), store.NewEffect{Interrupt: "yes", Attempt: 1, ActionDigest: "action-yes"})
		return fmt.Sprint(line.State, ", begun ", begun), err
	}, "started, begun true", "started, begun false"},
	{"EndEffect", func(ctx context.Context, s *Store) (string, error) {
		return "", s.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: "yes", Attempt: 1, State: store.EffectSucceeded})
	}, "", ""},
	{"Release", func(ctx context.Context, s *Store) (string, error) {
		return "", s.Release(ctx, ownLease(2), store.Release{})
	}, "", store.ErrFenced.Error()},
	{"Claim what was released", claimCall, "fence 3 with 1 decided", "nothing"},
	{"EndExecution with a decision applied", endExecutionCall(3, []string{"yes"}), "waiting", store.ErrFenced.Error()},
	{"PutIfAbsent", func(ctx context.Context, s *Store) (string, error) {
		kept, err := s.PutIfAbsent(ctx, "name", []byte("value"))
		return string(kept), err
	}, "value", "value"},
	{"Reencrypt", func(ctx context.Context, s *Store) (string, error) {
		_, err := s.Reencrypt(ctx, "", 100, func(sealed store.SealedValue) ([]byte, error) { return append([]byte("x"), sealed.Data...), nil })
		return "", err
	}, "", ""},
	{"Expire", func(ctx context.Context, s *Store) (string, error) {
		s.clock = func() time.Time { return time.Now().Add(2 * time.Hour) }
		expired, err := s.Expire(ctx, time.Time{}, 10, nil)
		return fmt.Sprint(len(expired), " expired"), err
	}, "1 expired", "0 expired"},
	{"Claim after the clock", claimCall, "fence 4 with 1 decided", "nothing"},
	{"BeginEffect that a policy allows", func(ctx context.Context, s *Store) (string, error) {
		line, begun, err := s.BeginEffect(ctx, ownLease(4), store.NewEffect{Interrupt: "allowed", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "policy"}})
		return fmt.Sprint(line.State, ", begun ", begun), err
	}, "started, begun true", "started, begun false"},
	{"Release to park", func(ctx context.Context, s *Store) (string, error) {
		return "", s.Release(ctx, ownLease(4), store.Release{Park: true})
	}, "", store.ErrFenced.Error()},
	{"Retry", func(ctx context.Context, s *Store) (string, error) {
		run, err := s.Retry(ctx, "acme", "r", store.Writes{})
		return fmt.Sprint(run.Status), err
	}, "ready", store.ErrNotFound.Error()},
	{"Cancel", func(ctx context.Context, s *Store) (string, error) {
		run, err := s.Cancel(ctx, "acme", "r", store.StatusCancelled, nil, store.Writes{})
		return fmt.Sprint(run.Status), err
	}, "cancelled", store.ErrNotFound.Error()},
	{"DeleteRun", func(ctx context.Context, s *Store) (string, error) {
		return "", s.DeleteRun(ctx, "acme", "r", store.Writes{})
	}, "", ""},
}

func endExecutionCall(fence int64, applied []string) func(context.Context, *Store) (string, error) {
	return func(ctx context.Context, s *Store) (string, error) {
		status, err := s.EndExecution(ctx, ownLease(fence), fixture.WaitingEnd(applied, "yes", "open", "due"))
		return string(status), err
	}
}

func claimCall(ctx context.Context, s *Store) (string, error) {
	work, err := s.Claim(ctx, store.Claim{Owner: "test", Lease: fixture.LeaseDuration})
	if work == nil {
		return "nothing", err
	}
	return fmt.Sprintf("fence %d with %d decided", work.Lease.Fence, len(work.Decided)), err
}

// result returns the result of a successful call, or the text of an error of the port.
func (r repeatableCall) result(ctx context.Context, s *Store) (says string, unknown error) {
	says, err := r.call(ctx, s)
	if slices.ContainsFunc(portErrors, func(told error) bool { return errors.Is(err, told) }) {
		return err.Error(), nil
	}
	return says, err
}

// check repeats a call whose outcome is unknown, and repeats it again.
func (r repeatableCall) check(ctx context.Context, s *Store) error {
	for _, want := range []string{r.firstResult, r.repeatResult, r.repeatResult} {
		if says, err := r.result(ctx, s); err != nil || says != want {
			return fmt.Errorf("%s says %q, %v; want %q", r.name, says, err, want)
		}
	}
	return nil
}

func TestUnknownOutcome_RepeatAfterFailedCommitIsSafe(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	failing := failCommits(t, s)
	for _, r := range repeatables {
		*failing = true
		if says, err := r.result(t.Context(), s); err == nil {
			t.Fatalf("%s returns %q although it could not commit", r.name, says)
		}
		*failing = false
		if err := r.check(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// failCommits returns a switch. The pool has one connection, which all writes use.
func failCommits(t *testing.T, s *Store) *bool {
	t.Helper()
	failing := new(bool)
	conn, err := s.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		c.(driver.HookRegisterer).RegisterCommitHook(func() int32 {
			if *failing {
				return 1
			}
			return 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return failing
}

// Claim and Expire without work do not wait for writers.
func TestClaimAndExpire_WithoutWorkDoNotWaitForWriters(t *testing.T) {
	s, err := open(filepath.Join(t.TempDir(), "fermata.db"), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "r"), nil, "i", "due")
	// holds the only connection and the lock
	err = s.write(t.Context(), func(context.Context, *sql.Tx) error {
		if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work != nil {
			t.Errorf("claimed %+v, %v", work, err)
		}
		if expired, err := s.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) > 0 {
			t.Errorf("expired %+v, %v", expired, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
