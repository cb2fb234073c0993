package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// The whole suite, on its own server: transactions of other tests would delay the feed.
func TestStore(t *testing.T) {
	t.Parallel()
	connString := pgtest.Start(t).Database(t)
	storetest.Store(t, func(t *testing.T) store.Store {
		s := mustOpen(t, connString, Config{Schema: "the suite"})
		truncateAll(t, s)
		return s
	})
}

// truncateAll deletes everything, which only the owner of the tables can.
func truncateAll(t *testing.T, s *Store) {
	t.Helper()
	const keeping, kept = `ALTER TABLE audit %[1]s TRIGGER USER; `, `TRUNCATE `
	text := fmt.Sprintf(keeping, "DISABLE") + kept + strings.Join(tables, ", ") + `; ` + fmt.Sprintf(keeping, "ENABLE")
	if _, err := s.pool.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func TestEndExecution_InterruptOfAnotherRunChangesNothing(t *testing.T) {
	fixture.CheckInterruptOfAnotherRun(t, mustOpen(t, prepared(t), Config{}), ErrInterruptOfAnotherRun)
}

// All answers are checked; of several to one interrupt the last counts, with one event.
func TestDecide_TwoAnswersToOneInterrupt(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "r"), nil, "i", "j")
	wrong := fixture.Decision("r", "1", store.VerdictApprove, "i", "i")
	wrong.Answers[0].ShownDigest = "something else"
	if receipt, err := s.Decide(t.Context(), wrong); err != nil || receipt.Result != store.ResultDigestMismatch {
		t.Errorf("%+v, %v; want digest_mismatch", receipt, err)
	}
	twice := fixture.Decision("r", "2", store.VerdictApprove, "j", "i", "j")
	twice.Answers[2].Verdict, twice.Answers[2].ApprovedDigest = store.VerdictReject, ""
	fixture.MustAccept(t, s, twice)
	history, err := s.History(t.Context(), "acme", "r")
	if err != nil || history.Interrupts[0].Verdict != store.VerdictApprove || history.Interrupts[1].Verdict != store.VerdictReject {
		t.Errorf("%+v, %v", history.Interrupts, err)
	}
	if events := history.Events; len(events) != 6 || events[4].Interrupt != "j" || events[5].Interrupt != "i" {
		t.Errorf("events are %+v", events)
	}
}

// Delayed runs are claimed in the order of their release, even if many delays end at once.
func TestClaim_DelayedRunsAreClaimedInReleaseOrder(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	for _, r := range []struct {
		id    string
		delay time.Duration
	}{{"first", 20 * time.Millisecond}, {"second", 0}, {"third", time.Microsecond}, {"tomorrow", 24 * time.Hour}, {"fourth", 0}} {
		if err := s.Release(t.Context(), fixture.CreateRun(t, s, r.id), store.Release{Delay: r.delay}); err != nil {
			t.Fatal(err)
		}
	}
	start, err := s.Now(t.Context())
	for now := start; now.Sub(start) <= 20*time.Millisecond && err == nil; {
		now, err = s.Now(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second", "third", "fourth"} {
		fixture.MustClaim(t, s, id)
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: fixture.LeaseDuration}); err != nil || work != nil {
		t.Errorf("claimed %+v, %v", work, err)
	}
}

// Statements that work on the locked run change nothing if there is none, because the condition was
// not checked.
func TestStatements_WithoutLockedRunChangeNothing(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	populatedStore(t, s)
	open := interruptArgs(fixture.WaitingEnd(nil, "new").Open, store.Writes{})
	id := []byte("busy")
	said := append([]any{[]byte("acme"), id, []byte("ann"), []byte("new"), []byte("b"), []byte("v")}, answerColumns(fixture.Decision("busy", "new", store.VerdictReject, "open"))...)
	for name, values := range map[string][]any{
		decideSQL: said,
		cancelSQL: {[]byte("acme"), "cancelled", [][]byte{}}, retrySQL: {[]byte("acme")}, releaseSQL: {[]byte("acme"), true, 0},
		endExecutionSQL: append(append([]any{[]byte("acme"), "completed", []byte("x")}, open...), [][]byte{}),
		markAppliedSQL:  {[]byte("acme"), bytesColumn([]string{"yes", "no"}), true}, expireSQL: {bytesColumn([]string{"acme"}), bytesColumn([]string{"due"}), []byte("clock")},
		recordRulingSQL: {[]byte("acme"), []byte("new"), []byte("d"), id, id, id, id}, beginEffectSQL: {[]byte("acme"), []byte("yes"), 9, []byte("action-yes"), id, false},
		endEffectSQL:   {[]byte("acme"), []byte("yes"), 1, "failed", id, id},
		createOwnedSQL: {[]byte("acme"), id, [][]byte{}, [][]byte{}}, advanceOwnedSQL: {[]byte("acme"), id, [][]byte{}, [][]byte{}, 0, [][]byte{}},
		dropEndingSQL:    {[]byte("acme"), id, 1},
		deleteEffectsSQL: {[]byte("acme")}, deleteInterruptsSQL: {[]byte("acme")}, deleteResumesSQL: {[]byte("acme")},
		deleteEventsSQL: {[]byte("acme")}, deleteDocumentsSQL: {[]byte("acme")}, deleteCheckpointOfRunSQL: {[]byte("acme")}, deleteRunRowSQL: {[]byte("acme")},
	} {
		before := tablesDigest(t, s)
		if _, err := s.pool.Exec(t.Context(), name, values...); err != nil {
			t.Errorf("%v in %s", err, name)
		}
		if after := tablesDigest(t, s); after != before {
			t.Errorf("something was changed by %s", name)
		}
	}
}

// tablesDigest is a digest of all rows.
func tablesDigest(t *testing.T, s *Store) (digest string) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), `
SELECT md5(concat((SELECT string_agg(r::text, ' ' ORDER BY key) FROM runs AS r), (SELECT string_agg(i::text, ' ' ORDER BY key) FROM interrupts AS i),
    (SELECT string_agg(p::text, ' ' ORDER BY key) FROM resumes AS p), (SELECT string_agg(e::text, ' ' ORDER BY interrupt_key, number) FROM effects AS e),
    (SELECT string_agg(p::text, ' ' ORDER BY key) FROM papers AS p), (SELECT count(*) FROM audit),
    (SELECT count(*) FROM events), (SELECT count(*) FROM checkpoints)))`).Scan(&digest)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}
