package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// pauseSQL makes a transaction of a client named slow wait before its commit, with all its locks,
// while an advisory lock is held.
const pauseSQL = `
CREATE FUNCTION fermata.pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('application_name') = 'slow' THEN
        PERFORM pg_advisory_xact_lock_shared(4711);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER pause_receipt AFTER INSERT ON fermata.resumes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause();
CREATE CONSTRAINT TRIGGER pause_event AFTER INSERT ON fermata.events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause()`

// race is a database with two Stores; one of them commits only when it is told to.
type race struct {
	*testing.T
	fast, slow *Store
	conn       *pgx.Conn // pauses the slow one
	calls      sync.WaitGroup
}

func newRace(t *testing.T) *race {
	t.Helper()
	connString := pgtest.New(t)
	r := &race{T: t, fast: mustOpen(t, connString, longTimeouts), slow: mustOpen(t, connString+"&application_name=slow", longTimeouts), conn: raw(t, connString)}
	if _, err := r.conn.Exec(t.Context(), pauseSQL); err != nil {
		t.Fatal(err)
	}
	return r
}

// between starts a call of the slow Store up to its commit, starts a call of the fast Store that
// has to wait for it, lets the slow one commit, and waits for both.
func (r *race) between(slow, fast func()) {
	r.Helper()
	r.pause(slow)
	r.calls.Go(fast)
	waitFor(r.T, r.conn, `SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	r.resume()
}

// pause starts a call of the slow Store up to its commit.
func (r *race) pause(slow func()) {
	r.Helper()
	mustExec(r.T, r.conn, `SELECT pg_advisory_lock(4711)`)
	r.calls.Go(slow)
	waitFor(r.T, r.conn, `SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted`)
}

// resume lets the slow Store commit.
func (r *race) resume() {
	r.Helper()
	mustExec(r.T, r.conn, `SELECT pg_advisory_unlock(4711)`)
	r.calls.Wait()
}

// decides is a call of Decide that must be accepted.
func (r *race) decides(s *Store, d store.Decision) func() {
	return func() {
		if receipt, err := s.Decide(r.Context(), d); err != nil || receipt.Result != store.ResultAccepted {
			r.Errorf("Decide: %+v, %v", receipt, err)
		}
	}
}

func (r *race) wantStatus(run string, want store.Status) {
	r.Helper()
	if got, err := r.fast.Get(r.Context(), "acme", "key-"+run); err != nil || got.Status != want {
		r.Errorf("%s is %s, %v; want %s", run, got.Status, err, want)
	}
}

// Trap T1: after a wait for a lock, a statement sees the current version of that row and the old
// versions of all others. An EndExecution that looks for decisions in that statement misses the one
// that it has waited for.
func TestI2_EndExecutionSeesADecisionItWaitedFor(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i1", "i2")
	fixture.MustAccept(t, r.fast, fixture.Decision("r", "1", store.VerdictApprove, "i1"))
	lease := fixture.MustClaim(t, r.fast, "r")
	r.between(
		r.decides(r.slow, fixture.Decision("r", "2", store.VerdictApprove, "i2")),
		func() {
			status, err := r.fast.EndExecution(t.Context(), lease, fixture.WaitingEnd([]string{"i1"}, "i2"))
			if err != nil || status != store.StatusReady {
				t.Errorf("EndExecution: %s, %v; want ready", status, err)
			}
		},
	)
	if work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work == nil || len(work.Decided) != 1 || work.Decided[0].ID != "i2" {
		t.Errorf("claimed %+v, %v", work, err)
	}
}

// The other order.
func TestI2_DecisionWakesARunThatStartedWaiting(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i1", "i2")
	fixture.MustAccept(t, r.fast, fixture.Decision("r", "1", store.VerdictApprove, "i1"))
	lease := fixture.MustClaim(t, r.fast, "r")
	r.between(
		func() {
			if status, err := r.slow.EndExecution(t.Context(), lease, fixture.WaitingEnd([]string{"i1"}, "i2")); err != nil || status != store.StatusWaiting {
				t.Errorf("EndExecution: %s, %v", status, err)
			}
		},
		r.decides(r.fast, fixture.Decision("r", "2", store.VerdictApprove, "i2")),
	)
	r.wantStatus("r", store.StatusReady)
}

// Trap T1 itself: the database rejects a statement that does not lock the run first, so the
// decision is not lost.
func TestI2_DatabaseRejectsWaitingWithUnappliedDecision(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i1", "i2")
	fixture.MustAccept(t, r.fast, fixture.Decision("r", "1", store.VerdictApprove, "i1"))
	fixture.MustClaim(t, r.fast, "r")
	if _, err := r.fast.pool.Exec(t.Context(), `UPDATE interrupts SET applied = true WHERE id = 'i1'`); err != nil {
		t.Fatal(err)
	}
	r.between(
		r.decides(r.slow, fixture.Decision("r", "2", store.VerdictApprove, "i2")),
		func() {
			_, err := r.fast.pool.Exec(t.Context(), `
UPDATE runs SET owner = NULL, lease_until = NULL, ready_no = 1, status = CASE WHEN EXISTS (
    SELECT FROM interrupts WHERE run = 'r' AND state = 'decided' AND NOT applied) THEN 'ready' ELSE 'waiting' END WHERE run = 'r'`)
			if said := refusal(err); !strings.Contains(said, "cannot wait") {
				t.Errorf("the run waits with an unapplied decision: %v", err)
			}
		},
	)
}

func TestI3_ConcurrentDuplicateGetsTheSameReceipt(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i")
	var first, second store.DecisionReceipt
	var err, otherErr error
	r.between(
		func() { first, err = r.slow.Decide(t.Context(), fixture.Decision("r", "1", store.VerdictApprove, "i")) },
		func() {
			second, otherErr = r.fast.Decide(t.Context(), fixture.Decision("r", "1", store.VerdictApprove, "i"))
		},
	)
	if err != nil || otherErr != nil || first.Replayed || !second.Replayed {
		t.Fatalf("%+v, %v and %+v, %v", first, err, second, otherErr)
	}
	if second.Replayed = false; fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%+v and %+v", first, second)
	}
}

// A resume id cannot be used for another run while the first decision is in progress.
func TestI3_OtherDecisionWithSameResumeIDIsRejected(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i")
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "s"), nil, "j")
	r.between(
		r.decides(r.slow, fixture.Decision("r", "1", store.VerdictApprove, "i")),
		func() {
			other := fixture.Decision("s", "1", store.VerdictApprove, "j")
			other.BodyDigest = "other"
			if receipt, err := r.fast.Decide(t.Context(), other); !errors.Is(err, store.ErrResumeIDReused) {
				t.Errorf("%+v, %v; want ErrReused", receipt, err)
			}
		},
	)
	r.wantStatus("s", store.StatusWaiting)
}

func TestI1_SecondDeciderGetsAlreadyDecided(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i")
	r.between(
		r.decides(r.slow, fixture.Decision("r", "1", store.VerdictApprove, "i")),
		func() {
			if receipt, err := r.fast.Decide(t.Context(), fixture.Decision("r", "2", store.VerdictReject, "i")); err != nil || receipt.Result != store.ResultAlreadyDecided {
				t.Errorf("%+v, %v; want already_decided", receipt, err)
			}
		},
	)
}

// I10: neither the clock nor a person interferes.
func TestI10_ExpirySkipsInterruptBeingDecided(t *testing.T) {
	r := newRace(t)
	open := fixture.WaitingEnd(nil, "i")
	open.Open[0].Timeout = 5 * time.Second
	if _, err := r.fast.EndExecution(t.Context(), fixture.CreateRun(t, r.fast, "r"), open); err != nil {
		t.Fatal(err)
	}
	r.pause(r.decides(r.slow, fixture.Decision("r", "1", store.VerdictApprove, "i")))
	waitFor(t, raw(t, r.conn.Config().ConnString()), `SELECT deadline < clock_timestamp() FROM fermata.interrupts`)
	if expired, err := r.fast.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) > 0 {
		t.Errorf("expired %+v, %v", expired, err)
	}
	r.resume()
	if expired, err := r.fast.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) > 0 {
		t.Errorf("expired %+v, %v", expired, err)
	}
}

func TestI10_DecisionDuringExpiryIsTooLate(t *testing.T) {
	r := newRace(t)
	open := fixture.WaitingEnd(nil, "i", "j")
	open.Open[0].Timeout = time.Nanosecond
	if _, err := r.fast.EndExecution(t.Context(), fixture.CreateRun(t, r.fast, "r"), open); err != nil {
		t.Fatal(err)
	}
	r.between(
		func() {
			if expired, err := r.slow.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) != 1 {
				t.Errorf("expired %+v, %v", expired, err)
			}
		},
		func() {
			if receipt, err := r.fast.Decide(t.Context(), fixture.Decision("r", "1", store.VerdictApprove, "i")); err != nil || receipt.Result != store.ResultAlreadyDecided {
				t.Errorf("%+v, %v; want already_decided", receipt, err)
			}
		},
	)
	r.wantStatus("r", store.StatusReady)
}

// A claim that waits for the former owner sees what it applied.
func TestClaim_SeesAnswersAppliedByFormerOwner(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i1", "i2")
	fixture.MustAccept(t, r.fast, fixture.Decision("r", "1", store.VerdictApprove, "i1", "i2"))
	lease := fixture.MustClaim(t, r.fast, "r")
	if err := r.fast.Renew(t.Context(), lease, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	r.between(
		func() {
			if status, err := r.slow.EndExecution(t.Context(), lease, fixture.WaitingEnd([]string{"i1"}, "i2")); err != nil || status != store.StatusReady {
				t.Errorf("EndExecution: %s, %v", status, err)
			}
		},
		func() {
			work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration, Account: "acme", Run: "r"})
			if err != nil || work == nil || len(work.Decided) != 1 || work.Decided[0].ID != "i2" {
				t.Errorf("claimed %+v, %v; want i2", work, err)
			}
		},
	)
}

// Without a run id a claim does not wait, and skips locked runs.
func TestClaim_SkipsLockedRuns(t *testing.T) {
	r := newRace(t)
	for _, id := range []string{"r", "s"} {
		if err := r.fast.Release(t.Context(), fixture.CreateRun(t, r.fast, id), store.Release{}); err != nil {
			t.Fatal(err)
		}
	}
	r.pause(func() {
		if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.StatusCancelled, nil, store.Writes{}); err != nil {
			t.Error(err)
		}
	})
	fixture.MustClaim(t, r.fast, "s")
	if work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work != nil {
		t.Errorf("claimed %+v, %v", work, err)
	}
	r.resume()
}

// I16: an owner whose run is claimed or ended while it waits is fenced, for every type of write.
func TestI16_OwnerIsFencedByATransactionItWaitedFor(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, s *Store, lease store.Lease) error{
		"Renew": func(ctx context.Context, s *Store, lease store.Lease) error {
			return s.Renew(ctx, lease, fixture.LeaseDuration)
		},
		"SetProviderRef": func(ctx context.Context, s *Store, lease store.Lease) error { return s.SetProviderRef(ctx, lease, nil) },
		"Release": func(ctx context.Context, s *Store, lease store.Lease) error {
			return s.Release(ctx, lease, store.Release{})
		},
		"EndExecution": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, err := s.EndExecution(ctx, lease, fixture.WaitingEnd([]string{"i"}, "j"))
			return err
		},
		"BeginEffect": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, _, err := s.BeginEffect(ctx, lease, store.NewEffect{Interrupt: "i", Attempt: 1, ActionDigest: "action-i"})
			return err
		},
		"BeginEffect what is allowed": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, _, err := s.BeginEffect(ctx, lease, store.NewEffect{Interrupt: "new", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{}})
			return err
		},
		"Save": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, err := s.Fenced(lease).Save(ctx, store.Key{Account: "acme", Run: "r"}, 0, putRun("x"))
			return err
		},
		"Save again": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, err := s.Fenced(lease).Save(ctx, demo, 1, putRun("x"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRace(t)
			mustSave(t, r.fast, 0, "kept")
			fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i")
			fixture.MustAccept(t, r.fast, fixture.Decision("r", "1", store.VerdictApprove, "i"))
			lease := fixture.MustClaim(t, r.fast, "r")
			r.between(
				func() {
					if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.StatusSuperseded, nil, store.Writes{}); err != nil {
						t.Error(err)
					}
				},
				func() {
					if err := write(t.Context(), r.fast, lease); !errors.Is(err, store.ErrFenced) {
						t.Errorf("%v; want ErrFenced", err)
					}
				},
			)
			wantRun(t, r.fast, 1, "kept")
			history, err := r.fast.History(t.Context(), "acme", "r")
			if err != nil || len(history.Effects) > 0 || len(history.Interrupts) != 1 || history.Interrupts[0].Applied || history.Run.Status != store.StatusSuperseded {
				t.Errorf("a write of the fenced owner: %+v, %v", history, err)
			}
		})
	}
}

// Of two calls that create a run with one state key, one wins; the other waits for it.
func TestCreate_OneOfTwoConcurrentCallsWins(t *testing.T) {
	r := newRace(t)
	r.between(
		func() {
			if _, err := r.slow.Create(t.Context(), fixture.NewRun("r")); err != nil {
				t.Errorf("Create: %v", err)
			}
		},
		func() {
			other := fixture.NewRun("other")
			other.StateKey = "key-r"
			if _, err := r.fast.Create(t.Context(), other); !errors.Is(err, store.ErrExists) {
				t.Errorf("Create: %v; want ErrExists", err)
			}
		},
	)
}

// The next generation can be created as soon as the previous one has ended.
func TestCreate_WaitsForTheEndOfThePreviousRun(t *testing.T) {
	r := newRace(t)
	fixture.CreateRun(t, r.fast, "r")
	r.between(
		func() {
			if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.StatusSuperseded, nil, store.Writes{}); err != nil {
				t.Error(err)
			}
		},
		func() {
			next := fixture.NewRun("next")
			next.StateKey, next.AfterGeneration = "key-r", 1
			if _, err := r.fast.Create(t.Context(), next); err != nil {
				t.Errorf("Create: %v", err)
			}
		},
	)
}

func TestClaim_TwoPoolsClaimEachRunOnce(t *testing.T) {
	const runs = 30
	connString := pgtest.New(t)
	first := mustOpen(t, connString, Config{})
	stores := []*Store{first, mustOpen(t, connString, Config{})}
	for n := range runs {
		release := store.Release{Delay: time.Duration(n%3) * time.Microsecond}
		if err := first.Release(t.Context(), fixture.CreateRun(t, first, fmt.Sprint(n)), release); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var claimed []string
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				all := len(claimed) >= runs
				mu.Unlock()
				if all {
					return
				}
				work, err := stores[n%2].Claim(t.Context(), store.Claim{Owner: fmt.Sprint(n), Lease: fixture.LeaseDuration})
				if err != nil {
					t.Error(err)
					return
				}
				if work != nil {
					mu.Lock()
					claimed = append(claimed, work.Run.ID)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(claimed)
	if len(slices.Compact(claimed)) != runs {
		t.Errorf("claimed are %q", claimed)
	}
}
