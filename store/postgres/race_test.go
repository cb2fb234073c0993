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
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
)

// pauseSQL lets a transaction of a client called slow wait when it is about to commit, with all its locks, as long as somebody else holds an
// advisory lock.
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

// race is a database with two Stores, of which one does not commit before it is told to.
type race struct {
	*testing.T
	fast, slow *Store
	conn       *pgx.Conn // holds the slow one up
	calls      sync.WaitGroup
}

func newRace(t *testing.T) *race {
	t.Helper()
	connString := pgtest.New(t)
	r := &race{T: t, fast: mustOpen(t, connString, patient), slow: mustOpen(t, connString+"&application_name=slow", patient), conn: raw(t, connString)}
	if _, err := r.conn.Exec(t.Context(), pauseSQL); err != nil {
		t.Fatal(err)
	}
	return r
}

// between starts a call of the slow Store, lets it come to its commit, starts one of the fast Store that has to wait for it, lets the slow one
// commit, and waits for both.
func (r *race) between(slow, fast func()) {
	r.Helper()
	r.pause(slow)
	r.calls.Go(fast)
	waitFor(r.T, r.conn, `SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	r.resume()
}

// pause starts a call of the slow Store and lets it come to its commit.
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

// accepts is a call of Decide that has to be accepted.
func (r *race) accepts(s *Store, d store.Decision) func() {
	return func() {
		if receipt, err := s.Decide(r.Context(), d); err != nil || receipt.Result != store.Accepted {
			r.Errorf("Decide: %+v, %v", receipt, err)
		}
	}
}

func (r *race) is(run string, want store.Status) {
	r.Helper()
	if got, err := r.fast.Get(r.Context(), "acme", "key-"+run); err != nil || got.Status != want {
		r.Errorf("%s is %s, %v; want %s", run, got.Status, err, want)
	}
}

// Trap T1: what a statement sees after a wait for a lock is the row that it waited for as it is now, and everything else as it was. A rest
// that looks for decisions in that statement sleeps over the one that it has waited for.
func TestI2_RestDoesNotSleepOverADecisionThatItWaitedFor(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i1", "i2")
	booktest.Accepted(t, r.fast, booktest.Say("r", "1", store.Approve, "i1"))
	lease := booktest.Claim(t, r.fast, "r")
	r.between(
		r.accepts(r.slow, booktest.Say("r", "2", store.Approve, "i2")),
		func() {
			status, err := r.fast.Rest(t.Context(), lease, booktest.Asking([]string{"i1"}, "i2"))
			if err != nil || status != store.Ready {
				t.Errorf("Rest: %s, %v; want ready", status, err)
			}
		},
	)
	if work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long}); err != nil || work == nil || len(work.Decided) != 1 || work.Decided[0].ID != "i2" {
		t.Errorf("the work is %+v, %v", work, err)
	}
}

// The same the other way round.
func TestI2_ADecisionWakesARunThatFellAsleepWhileItWaited(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i1", "i2")
	booktest.Accepted(t, r.fast, booktest.Say("r", "1", store.Approve, "i1"))
	lease := booktest.Claim(t, r.fast, "r")
	r.between(
		func() {
			if status, err := r.slow.Rest(t.Context(), lease, booktest.Asking([]string{"i1"}, "i2")); err != nil || status != store.Waiting {
				t.Errorf("Rest: %s, %v", status, err)
			}
		},
		r.accepts(r.fast, booktest.Say("r", "2", store.Approve, "i2")),
	)
	r.is("r", store.Ready)
}

// Trap T1 itself: a statement that forgets to lock the run first is refused by the database, and does not lose the decision.
func TestI2_TheDatabaseRefusesToSleepOverADecision(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i1", "i2")
	booktest.Accepted(t, r.fast, booktest.Say("r", "1", store.Approve, "i1"))
	booktest.Claim(t, r.fast, "r")
	if _, err := r.fast.pool.Exec(t.Context(), `UPDATE interrupts SET applied = true WHERE id = 'i1'`); err != nil {
		t.Fatal(err)
	}
	r.between(
		r.accepts(r.slow, booktest.Say("r", "2", store.Approve, "i2")),
		func() {
			_, err := r.fast.pool.Exec(t.Context(), `
UPDATE runs SET owner = NULL, lease_until = NULL, ready_no = 1, status = CASE WHEN EXISTS (
    SELECT FROM interrupts WHERE run = 'r' AND state = 'decided' AND NOT applied) THEN 'ready' ELSE 'waiting' END WHERE run = 'r'`)
			if said := refusal(err); !strings.Contains(said, "cannot wait") {
				t.Errorf("the run sleeps over a decision: %v", err)
			}
		},
	)
}

func TestI3_ATwinWaitsAndGetsTheSameReceipt(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i")
	var first, second store.Receipt
	var err, otherErr error
	r.between(
		func() { first, err = r.slow.Decide(t.Context(), booktest.Say("r", "1", store.Approve, "i")) },
		func() { second, otherErr = r.fast.Decide(t.Context(), booktest.Say("r", "1", store.Approve, "i")) },
	)
	if err != nil || otherErr != nil || first.Replayed || !second.Replayed {
		t.Fatalf("%+v, %v and %+v, %v", first, err, second, otherErr)
	}
	if second.Replayed = false; fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%+v and %+v", first, second)
	}
}

// Nobody can use a resume id for another run while the first decision is on its way.
func TestI3_AnotherDecisionOfTheSameIDIsRefused(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i")
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "s"), nil, "j")
	r.between(
		r.accepts(r.slow, booktest.Say("r", "1", store.Approve, "i")),
		func() {
			other := booktest.Say("s", "1", store.Approve, "j")
			other.Body = "other"
			if receipt, err := r.fast.Decide(t.Context(), other); !errors.Is(err, store.ErrReused) {
				t.Errorf("%+v, %v; want ErrReused", receipt, err)
			}
		},
	)
	r.is("s", store.Waiting)
}

func TestI1_TheSecondOfTwoDecidersIsTold(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i")
	r.between(
		r.accepts(r.slow, booktest.Say("r", "1", store.Approve, "i")),
		func() {
			if receipt, err := r.fast.Decide(t.Context(), booktest.Say("r", "2", store.Reject, "i")); err != nil || receipt.Result != store.AlreadyDecided {
				t.Errorf("%+v, %v; want already_decided", receipt, err)
			}
		},
	)
}

// I10: neither the clock nor a person comes in between.
func TestI10_TheClockPassesByWhatIsBeingDecided(t *testing.T) {
	r := newRace(t)
	open := booktest.Asking(nil, "i")
	open.Open[0].Timeout = 5 * time.Second
	if _, err := r.fast.Rest(t.Context(), booktest.Begin(t, r.fast, "r"), open); err != nil {
		t.Fatal(err)
	}
	r.pause(r.accepts(r.slow, booktest.Say("r", "1", store.Approve, "i")))
	waitFor(t, raw(t, r.conn.Config().ConnString()), `SELECT deadline < clock_timestamp() FROM fermata.interrupts`)
	if expired, err := r.fast.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) > 0 {
		t.Errorf("expired %+v, %v", expired, err)
	}
	r.resume()
	if expired, err := r.fast.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) > 0 {
		t.Errorf("expired %+v, %v", expired, err)
	}
}

func TestI10_APersonIsTooLateForWhatIsExpiring(t *testing.T) {
	r := newRace(t)
	open := booktest.Asking(nil, "i", "j")
	open.Open[0].Timeout = time.Nanosecond
	if _, err := r.fast.Rest(t.Context(), booktest.Begin(t, r.fast, "r"), open); err != nil {
		t.Fatal(err)
	}
	r.between(
		func() {
			if expired, err := r.slow.Expire(t.Context(), time.Time{}, 10, nil); err != nil || len(expired) != 1 {
				t.Errorf("expired %+v, %v", expired, err)
			}
		},
		func() {
			if receipt, err := r.fast.Decide(t.Context(), booktest.Say("r", "1", store.Approve, "i")); err != nil || receipt.Result != store.AlreadyDecided {
				t.Errorf("%+v, %v; want already_decided", receipt, err)
			}
		},
	)
	r.is("r", store.Ready)
}

// A claim that waits for the last owner takes over what he has left, and not what he was given.
func TestClaim_SeesWhatTheOwnerThatItWaitedForHasApplied(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i1", "i2")
	booktest.Accepted(t, r.fast, booktest.Say("r", "1", store.Approve, "i1", "i2"))
	lease := booktest.Claim(t, r.fast, "r")
	if err := r.fast.Renew(t.Context(), lease, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	r.between(
		func() {
			if status, err := r.slow.Rest(t.Context(), lease, booktest.Asking([]string{"i1"}, "i2")); err != nil || status != store.Ready {
				t.Errorf("Rest: %s, %v", status, err)
			}
		},
		func() {
			work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long, Account: "acme", Run: "r"})
			if err != nil || work == nil || len(work.Decided) != 1 || work.Decided[0].ID != "i2" {
				t.Errorf("the work is %+v, %v; want i2", work, err)
			}
		},
	)
}

// Without a run id a claim waits for nobody, and a run that somebody has in hand is none to take.
func TestClaim_PassesByWhatIsBeingChanged(t *testing.T) {
	r := newRace(t)
	for _, id := range []string{"r", "s"} {
		if err := r.fast.Release(t.Context(), booktest.Begin(t, r.fast, id), store.Release{}); err != nil {
			t.Fatal(err)
		}
	}
	r.pause(func() {
		if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.Cancelled, nil, store.Beside{}); err != nil {
			t.Error(err)
		}
	})
	booktest.Claim(t, r.fast, "s")
	if work, err := r.fast.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long}); err != nil || work != nil {
		t.Errorf("claimed %+v, %v", work, err)
	}
	r.resume()
}

// I16: an owner whose run is taken or ended while he waits for it is fenced, whatever he wanted to write.
func TestI16_AnOwnerIsFencedByTheOneThatHeWaitedFor(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, s *Store, lease store.Lease) error{
		"Renew": func(ctx context.Context, s *Store, lease store.Lease) error {
			return s.Renew(ctx, lease, booktest.Long)
		},
		"SetRef": func(ctx context.Context, s *Store, lease store.Lease) error { return s.SetRef(ctx, lease, nil) },
		"Release": func(ctx context.Context, s *Store, lease store.Lease) error {
			return s.Release(ctx, lease, store.Release{})
		},
		"Rest": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, err := s.Rest(ctx, lease, booktest.Asking([]string{"i"}, "j"))
			return err
		},
		"Begin": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, _, err := s.Begin(ctx, lease, store.NewEffect{Interrupt: "i", Number: 1, Digest: "action-i"})
			return err
		},
		"Begin what is allowed": func(ctx context.Context, s *Store, lease store.Lease) error {
			_, _, err := s.Begin(ctx, lease, store.NewEffect{Interrupt: "new", Number: 1, Digest: "d", Allowed: &store.Allowed{}})
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
			booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i")
			booktest.Accepted(t, r.fast, booktest.Say("r", "1", store.Approve, "i"))
			lease := booktest.Claim(t, r.fast, "r")
			r.between(
				func() {
					if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.Superseded, nil, store.Beside{}); err != nil {
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
			if err != nil || len(history.Effects) > 0 || len(history.Interrupts) != 1 || history.Interrupts[0].Applied || history.Run.Status != store.Superseded {
				t.Errorf("something was written: %+v, %v", history, err)
			}
		})
	}
}

// Of two that create a run of one state key, one wins; the other waited for it.
func TestCreate_OneOfTwoAtOnce(t *testing.T) {
	r := newRace(t)
	r.between(
		func() {
			if _, err := r.slow.Create(t.Context(), booktest.NewRun("r")); err != nil {
				t.Errorf("Create: %v", err)
			}
		},
		func() {
			other := booktest.NewRun("other")
			other.StateKey = "key-r"
			if _, err := r.fast.Create(t.Context(), other); !errors.Is(err, store.ErrExists) {
				t.Errorf("Create: %v; want ErrExists", err)
			}
		},
	)
}

// The next generation may be created as soon as the last one is over, and not before.
func TestCreate_WaitsForTheEndOfTheLast(t *testing.T) {
	r := newRace(t)
	booktest.Begin(t, r.fast, "r")
	r.between(
		func() {
			if _, err := r.slow.Cancel(t.Context(), "acme", "r", store.Superseded, nil, store.Beside{}); err != nil {
				t.Error(err)
			}
		},
		func() {
			next := booktest.NewRun("next")
			next.StateKey, next.After = "key-r", 1
			if _, err := r.fast.Create(t.Context(), next); err != nil {
				t.Errorf("Create: %v", err)
			}
		},
	)
}

func TestConcurrent_TwoPoolsClaimEachRunOnce(t *testing.T) {
	const runs = 30
	connString := pgtest.New(t)
	first := mustOpen(t, connString, Config{})
	stores := []*Store{first, mustOpen(t, connString, Config{})}
	for n := range runs {
		release := store.Release{Delay: time.Duration(n%3) * time.Microsecond}
		if err := first.Release(t.Context(), booktest.Begin(t, first, fmt.Sprint(n)), release); err != nil {
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
				work, err := stores[n%2].Claim(t.Context(), store.Claim{Owner: fmt.Sprint(n), Lease: booktest.Long})
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
