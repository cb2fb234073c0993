package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// overdue creates runs with two interrupts each, both past their deadline at the next call.
func overdue(t *testing.T, s *Store, runs ...string) {
	t.Helper()
	for _, run := range runs {
		open := fixture.WaitingEnd(nil, "1 of "+run, "2 of "+run)
		open.Open[0].Timeout, open.Open[1].Timeout = time.Nanosecond, time.Nanosecond
		if _, err := s.EndExecution(t.Context(), fixture.CreateRun(t, s, run), open); err != nil {
			t.Fatal(err)
		}
	}
}

// expires checks which interrupts expire. Each leaves an audit line. meanwhile runs after they were
// found and before they expire.
func expires(t *testing.T, s *Store, meanwhile func(), want ...string) {
	t.Helper()
	first := true
	before, err := s.AuditHead(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	expired, err := s.Expire(t.Context(), time.Time{}, 10, func(store.Interrupt, *store.Document) store.Writes {
		if first {
			meanwhile()
		}
		first = false
		return store.Writes{Audit: [][]byte{[]byte(`{"a":1}`)}}
	})
	var ids []string
	for _, i := range expired {
		ids = append(ids, i.ID)
	}
	if slices.Sort(ids); err != nil || !slices.Equal(ids, want) {
		t.Errorf("expired %q, %v; want %q", ids, err, want)
	}
	if after, err := s.AuditHead(t.Context(), "acme"); err != nil || after.Seq-before.Seq != int64(len(want)) {
		t.Errorf("%d lines for what expired, %v; want %d", after.Seq-before.Seq, err, len(want))
	}
}

func nothing() {}

// Many interrupts expire in one transaction; a locked run only delays its own.
func TestExpire_LockedRunDoesNotBlockOthers(t *testing.T) {
	r := newRace(t)
	overdue(t, r.fast, "a", "b", "c")
	r.pause(func() {
		if _, err := r.slow.Cancel(t.Context(), "acme", "b", store.StatusCancelled, nil, store.Writes{}); err != nil {
			t.Error(err)
		}
	})
	expires(t, r.fast, nothing, "1 of a", "1 of c", "2 of a", "2 of c")
	r.resume()
	expires(t, r.fast, nothing)
	r.wantStatus("a", store.StatusReady)
	r.wantStatus("b", store.StatusCancelled)
}

// A transaction that is about to write events of a run may have a lower number than a later one
// although it has not locked the run yet. The feed would then be out of order.
func TestExpire_WaitsForTheEventLockOfEachRun(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	overdue(t, s, "a", "b", "c")
	other := raw(t, s.pool.Config().ConnString())
	mustExec(t, other, `BEGIN`, `SELECT pg_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 2)) FROM fermata.runs WHERE run = 'b'`)
	expires(t, s, nothing, "1 of a", "1 of c", "2 of a", "2 of c")
	mustExec(t, other, `ROLLBACK`)
	expires(t, s, nothing, "1 of b", "2 of b")
}

// All in one transaction, in order within their runs.
func TestExpire_ManyAtOnce(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	overdue(t, s, "a", "b", "c")
	expires(t, s, nothing, "1 of a", "1 of b", "1 of c", "2 of a", "2 of b", "2 of c")
	var transactions int
	var events []string
	err := s.pool.QueryRow(t.Context(), `
SELECT count(DISTINCT xid), array_agg(number || ': ' || convert_from(interrupt, 'UTF8') ORDER BY run, number) FROM events WHERE kind = 'expired'`).Scan(&transactions, &events)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"5: 1 of a", "6: 2 of a", "5: 1 of b", "6: 2 of b", "5: 1 of c", "6: 2 of c"}
	if transactions != 1 || !slices.Equal(events, want) {
		t.Errorf("%d transactions with %q; want one with %q", transactions, events, want)
	}
}

// Interrupts that were decided or postponed after they were found do not expire.
func TestExpire_SkipsInterruptsNoLongerDue(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	overdue(t, s, "a", "b", "c")
	other := raw(t, s.pool.Config().ConnString())
	expires(t, s, func() {
		mustExec(t, other, `UPDATE fermata.interrupts SET deadline = now() + interval '1 hour' WHERE id IN ('1 of b', '2 of c')`)
		fixture.MustAccept(t, s, fixture.Decision("b", "1", store.VerdictApprove, "1 of b"))
	}, "1 of a", "1 of c", "2 of a", "2 of b")
	questions, err := s.Interrupts(t.Context(), "acme", "b")
	if err != nil || questions[0].Verdict != store.VerdictApprove {
		t.Errorf("the first is %+v, %v; want it approved", questions[0], err)
	}
}
