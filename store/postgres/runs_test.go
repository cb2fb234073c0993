package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
	"github.com/fermata-go/fermata/store/storetest"
)

// The whole port, on a server of its own: what other tests leave open for a while would hold up the feed.
func TestStore(t *testing.T) {
	t.Parallel()
	connString := pgtest.Start(t).Database(t)
	storetest.Store(t, func(t *testing.T) store.Store {
		s := mustOpen(t, connString, Config{Schema: "the suite"})
		empty(t, s)
		return s
	})
}

// empty takes everything out of the book, which nobody but the owner of the tables can.
func empty(t *testing.T, s *Store) {
	t.Helper()
	const keeping, kept = `ALTER TABLE audit %[1]s TRIGGER USER; `, `TRUNCATE `
	text := fmt.Sprintf(keeping, "DISABLE") + kept + strings.Join(tables, ", ") + `; ` + fmt.Sprintf(keeping, "ENABLE")
	if _, err := s.pool.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func TestRest_InterruptOfAnotherRunChangesNothing(t *testing.T) {
	booktest.AskedElsewhere(t, mustOpen(t, prepared(t), Config{}), ErrAskedElsewhere)
}

// All answers are judged; of several to one interrupt the last counts, and it has happened once.
func TestDecide_TwoAnswersToOneInterrupt(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	booktest.Rest(t, s, booktest.Begin(t, s, "r"), nil, "i", "j")
	wrong := booktest.Say("r", "1", store.Approve, "i", "i")
	wrong.Answers[0].Shown = "something else"
	if receipt, err := s.Decide(t.Context(), wrong); err != nil || receipt.Result != store.Mismatch {
		t.Errorf("%+v, %v; want digest_mismatch", receipt, err)
	}
	twice := booktest.Say("r", "2", store.Approve, "j", "i", "j")
	twice.Answers[2].Verdict, twice.Answers[2].Final = store.Reject, ""
	booktest.Accepted(t, s, twice)
	history, err := s.History(t.Context(), "acme", "r")
	if err != nil || history.Interrupts[0].Verdict != store.Approve || history.Interrupts[1].Verdict != store.Reject {
		t.Errorf("%+v, %v", history.Interrupts, err)
	}
	if events := history.Events; len(events) != 6 || events[4].Interrupt != "j" || events[5].Interrupt != "i" {
		t.Errorf("events are %+v", events)
	}
}

// What was delayed gets its turn by when it was released, however many are over their delay at once.
func TestClaim_DelayedRunsKeepTheirTurn(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	for _, r := range []struct {
		id    string
		delay time.Duration
	}{{"first", 20 * time.Millisecond}, {"second", 0}, {"third", time.Microsecond}, {"tomorrow", 24 * time.Hour}, {"fourth", 0}} {
		if err := s.Release(t.Context(), booktest.Begin(t, s, r.id), store.Release{Delay: r.delay}); err != nil {
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
		booktest.Claim(t, s, id)
	}
	if work, err := s.Claim(t.Context(), store.Claim{Owner: "w", Lease: booktest.Long}); err != nil || work != nil {
		t.Errorf("claimed %+v, %v", work, err)
	}
}

// Statements that work on the run in hand change nothing if there is none: nobody has looked whether they may.
func TestStatements_NothingInHandNothingChanges(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	scene(t, s)
	open := questionColumns(booktest.Asking(nil, "new").Open, store.Beside{})
	id := []byte("busy")
	said := append([]any{[]byte("acme"), id, []byte("ann"), []byte("new"), []byte("b"), []byte("v")}, answerColumns(booktest.Say("busy", "new", store.Reject, "open"))...)
	for name, values := range map[string][]any{
		decideSQL: said,
		cancelSQL: {[]byte("acme"), "cancelled", [][]byte{}}, retrySQL: {[]byte("acme")}, releaseSQL: {[]byte("acme"), true, 0},
		restSQL:  append(append([]any{[]byte("acme"), "completed", []byte("x")}, open...), [][]byte{}),
		applySQL: {[]byte("acme"), bytesOf([]string{"yes", "no"}), true}, expireSQL: {bytesOf([]string{"acme"}), bytesOf([]string{"due"}), []byte("clock")},
		allowSQL: {[]byte("acme"), []byte("new"), []byte("d"), id, id, id, id}, beginSQL: {[]byte("acme"), []byte("yes"), 9, []byte("action-yes"), id, false},
		endSQL:         {[]byte("acme"), []byte("yes"), 1, "failed", id, id},
		createOwnedSQL: {[]byte("acme"), id, [][]byte{}, [][]byte{}}, advanceOwnedSQL: {[]byte("acme"), id, [][]byte{}, [][]byte{}, 0, [][]byte{}},
		dropRestingSQL:   {[]byte("acme"), id, 1},
		forgetEffectsSQL: {[]byte("acme")}, forgetInterruptsSQL: {[]byte("acme")}, forgetResumesSQL: {[]byte("acme")},
		forgetEventsSQL: {[]byte("acme")}, forgetPapersSQL: {[]byte("acme")}, forgetCheckpointSQL: {[]byte("acme")}, forgetRunSQL: {[]byte("acme")},
	} {
		before := bookDigest(t, s)
		if _, err := s.pool.Exec(t.Context(), name, values...); err != nil {
			t.Errorf("%v in %s", err, name)
		}
		if after := bookDigest(t, s); after != before {
			t.Errorf("something was changed by %s", name)
		}
	}
}

// bookDigest is a digest of all rows.
func bookDigest(t *testing.T, s *Store) (digest string) {
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
