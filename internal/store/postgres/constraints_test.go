package postgres

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// forbiddenWrite is a write that the database rejects, and a part of the error.
type forbiddenWrite struct{ name, refusal, write string }

// forbiddenWrites are writes that the database rejects from any writer: a bug of ours, another
// build, or a user with a shell. They run on the data of [populatedStore].
var forbiddenWrites = []forbiddenWrite{
	// I4: no effect without an approval of exactly this action.
	{"effect before a decision", "approved_exactly", effect(`'acme', 'busy', 'open', 1, 'action-open', 2`)},
	{"effect of a rejected action", "approved_exactly", effect(`'acme', 'busy', 'no', 1, 'action-no', 2`)},
	{"effect with other arguments", "approved_exactly", effect(`'acme', 'busy', 'yes', 9, 'action-other', 2`)},
	{"effect without a digest", "identifier", effect(`'acme', 'busy', 'yes', 9, '', 2`)},
	{"effect of another run", "approved_exactly", effect(`'acme', 'second', 'yes', 9, 'action-yes', 1`)},
	{"effect of another account", "approved_exactly", effect(`'other', 'busy', 'yes', 9, 'action-yes', 2`)},
	{"effect of a former owner", "only the owner", effect(`'acme', 'busy', 'yes', 9, 'action-yes', 1`)},
	{"effect of a run that has ended", "only the owner", effect(`'acme', 'over', 'was', 1, 'action-was', 2`)},
	{"effect before its number", "effects_number_check", effect(`'acme', 'busy', 'yes', 0, 'action-yes', 2`)},
	{"effect that chooses its approval", "approval", `UPDATE effects SET approval = sha256('x') WHERE number = 1`},
	{"second line of one effect", "effects_pkey", effect(`'acme', 'busy', 'yes', 1, 'action-yes', 2`)},
	{"line that begins at its end", "begins at its beginning",
		`INSERT INTO effects (account, run, interrupt, number, digest, target_key, fence, started_at, state, ended_at)
		 VALUES ('acme', 'busy', 'yes', 9, 'action-yes', '', 2, now(), 'succeeded', now())`},
	{"line with another digest", "begun cannot change", `UPDATE effects SET digest = 'action-yes' WHERE number = 1`},
	{"line under another interrupt", "approved_exactly", `UPDATE effects SET interrupt = 'no' WHERE number = 1`},
	{"line of another owner", "begun cannot change", `UPDATE effects SET fence = 9 WHERE number = 1`},
	{"line that ends twice", "ended cannot change", `UPDATE effects SET state = 'failed' WHERE number = 2`},
	{"line that begins again", "ended cannot change", `UPDATE effects SET state = 'started', ended_at = NULL, receipt = NULL WHERE number = 2`},
	{"line that ends at no time", "ended_unless_started", `UPDATE effects SET state = 'failed' WHERE number = 1`},
	{"line that ends in an unknown state", "effect_state", `UPDATE effects SET state = 'maybe', ended_at = now() WHERE number = 1`},
	{"line that loses its receipt", "receipt of an effect stays", `UPDATE effects SET receipt = NULL WHERE number = 2`},
	{"receipt before the end", "ended_unless_started", `UPDATE effects SET receipt = 'x' WHERE number = 1`},
	{"line that is deleted", "alive", `DELETE FROM effects WHERE number = 2`},

	// I1: one verdict per interrupt, ever.
	{"overwritten verdict", "was decided", `UPDATE interrupts SET verdict = 'answer' WHERE id = 'no'`},
	{"overwritten digest of the approved action", "was decided", `UPDATE interrupts SET final = 'action-other' WHERE id = 'no'`},
	{"overwritten digest of a begun action", "approved_exactly", `UPDATE interrupts SET final = 'action-other' WHERE id = 'yes'`},
	{"overwritten decider", "was decided", `UPDATE interrupts SET decided_by = decided_by WHERE id = 'yes'`},
	{"answer that comes later", "asked or answered stays", `UPDATE interrupts SET answer = 'yes' WHERE id = 'no'`},
	{"answer that goes", "asked or answered stays", `UPDATE interrupts SET answer = NULL WHERE id = 'yes'`},
	{"reopened decision", "was decided", undecide(`id = 'no'`)},
	{"withdrawn decision", "was decided", strings.Replace(undecide(`id = 'no'`), "'pending'", "'withdrawn'", 1)},
	{"second interrupt of one id", "interrupts_pkey", question(`'acme', 'no', 'busy', 9`)},
	{"deleted decision", "alive", `DELETE FROM interrupts WHERE id = 'no'`},
	{"deleted interrupt", "alive", `DELETE FROM interrupts WHERE id = 'open'`},
	{"decision on what was withdrawn", "withdrawn", decision(`gone`, `verdict`, `'reject'`)},
	{"interrupt that was decided before it was raised", "becomes visible",
		`INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at, state, verdict, final, decided_by, via, source, decided_at, resume)
		 VALUES ('acme', 'new', 'busy', 9, '', '', '', '', 0, now(), 'decided', 'reject', '', 'ann', '', 'person', now(), '1')`},
	{"policy that decides for a waiting run", "not woken", strings.ReplaceAll(policy(`''`), `'busy'`, `'asleep'`)},
	{"unknown verdict", "interrupt_verdict", decision(`open`, `verdict`, `'perhaps'`)},
	{"unknown source", "interrupt_source", decision(`open`, `verdict`, `'reject'`, `source`, `'rumour'`, `resume`, `NULL`)},
	{"unknown state", "interrupt_state", `UPDATE interrupts SET state = 'lost' WHERE id = 'open'`},

	// I6: shown = approved.
	{"changed shown digest", "asked cannot change", `UPDATE interrupts SET shown = 'other' WHERE id = 'open'`},
	{"changed action", "asked cannot change", `UPDATE interrupts SET action = 'other' WHERE id = 'open'`},
	{"interrupt that goes", "asked or answered stays", `UPDATE interrupts SET data = NULL WHERE id = 'open'`},
	{"approve that does not say what", "approve_says_what", decision(`open`, `verdict`, `'approve'`)},
	{"policy that does not say what", "approve_says_what", policy(`'action'`)},

	// I10, I11: deadlines.
	{"clock that approves", "nothing_after_the_deadline", decision(`due`, `verdict`, `'approve'`, `final`, `'action-due'`, `source`, `'clock'`, `resume`, `NULL`, `decided_at`, `'infinity'`)},
	{"clock that rejects", "nothing_after_the_deadline", decision(`due`, `verdict`, `'reject'`, `source`, `'clock'`, `resume`, `NULL`, `decided_at`, `'infinity'`)},
	{"clock before the deadline", "nothing_after_the_deadline", decision(`due`, `verdict`, `'expire'`, `source`, `'clock'`, `resume`, `NULL`)},
	{"clock without a deadline", "nothing_after_the_deadline", decision(`open`, `verdict`, `'expire'`, `source`, `'clock'`, `resume`, `NULL`)},
	{"person after the deadline", "nothing_after_the_deadline", decision(`due`, `verdict`, `'reject'`, `decided_at`, `'infinity'`)},
	{"policy after the deadline", "nothing_after_the_deadline", decision(`due`, `verdict`, `'reject'`, `source`, `'policy'`, `resume`, `NULL`, `decided_at`, `'infinity'`)},

	// I2: an accepted decision is never lost.
	{"decided without a verdict", "verdict_exactly_when_decided", `UPDATE interrupts SET state = 'decided' WHERE id = 'open'`},
	{"verdict that is not decided", "verdict_exactly_when_decided", `UPDATE interrupts SET verdict = 'approve', final = 'action-open' WHERE id = 'open'`},
	{"decision without an actor", "verdict_exactly_when_decided", decision(`open`, `verdict`, `'reject'`, `decided_by`, `NULL`)},
	{"decision of a person without a resume", "receipt_for_a_person", decision(`open`, `verdict`, `'reject'`, `resume`, `NULL`)},
	{"decision of a person without a receipt", "decided_with_a_receipt", decision(`open`, `verdict`, `'reject'`, `resume`, `'never'`)},
	{"decision with the receipt of another", "decided_with_a_receipt", decision(`open`, `verdict`, `'reject'`, `decided_by`, `'bob'`)},
	{"decision that does not wake its run", "not woken", decision(`asleep`, `verdict`, `'reject'`)},
	{"decision for a run that has ended", "is over", decision(`late`, `verdict`, `'reject'`)},
	{"waiting with an unapplied decision", "cannot wait", `UPDATE runs SET status = 'waiting', owner = NULL, lease_until = NULL WHERE run = 'busy'`},
	{"applied before it was decided", "verdict_exactly_when_decided", `UPDATE interrupts SET applied = true WHERE id = 'open'`},
	{"applied no more", "applied once", `UPDATE interrupts SET applied = false WHERE id = 'was'`},

	// I3: one resume id, one receipt.
	{"changed receipt", "receipt cannot change", `UPDATE resumes SET result = 'expired' WHERE id = '1'`},
	{"changed body", "receipt cannot change", `UPDATE resumes SET body = 'other' WHERE id = '1'`},
	{"unknown result", "receipt_result", `UPDATE resumes SET result = 'perhaps' WHERE id = '1'`},
	{"second receipt", "resumes_pkey", `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
		VALUES ('acme', 'ann', '1', 'x', 'busy', 'expired', 'yes', now())`},
	{"outcome that goes", "outcome of a resume stays", `UPDATE resumes SET outcome = NULL WHERE id = '0'`},
	{"outcome that a receipt needs", "needs the outcome", `UPDATE runs SET outcome = 'x', status = 'parked', owner = NULL, lease_until = NULL WHERE run = 'slept'`},
	{"execution that did not happen", "are counted", `UPDATE runs SET rests = rests + 1 WHERE run = 'second'`},
	{"execution that was left out", "are counted", `UPDATE runs SET rests = rests + 2, status = 'parked', owner = NULL, lease_until = NULL WHERE run = 'second'`},
	{"receipt that was applied before it was given", "by a later rest", `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at, rest)
		VALUES ('acme', 'ann', 'new', 'x', 'busy', 'accepted', '', now(), 2)`},
	{"receipt of another execution", "applied once", `UPDATE resumes SET rest = 3 WHERE id = 'slept'`},
	{"rejection that was applied", "applied_if_accepted", `UPDATE resumes SET rest = 2 WHERE id = 'refused'`},
	{"outcome of a rejection", "accepted_or_refused", `UPDATE resumes SET outcome = 'x' WHERE id = 'refused'`},
	{"rejection in an acceptance", "accepted_or_refused", `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
		VALUES ('acme', 'ann', 'new', 'x', 'busy', 'accepted', 'yes', now())`},
	{"deleted receipt", "decided_with_a_receipt", `DELETE FROM resumes WHERE id = '1'`},
	{"deleted rejection", "alive", `DELETE FROM resumes WHERE id = 'refused'`},

	// I16 and the states of a run.
	{"second active run", "runs_alive", run(`'acme', 'new', 'key-busy', 9`)},
	{"second run of one id", "runs_pkey", run(`'acme', 'busy', 'key-new', 1`)},
	{"second of a generation", "runs_generations", run(`'acme', 'new', 'key-over', 1`)},
	{"run without an id", "identifier", run(`'acme', '', 'key-new', 1`)},
	{"run without a state key", "identifier", run(`'acme', 'new', '', 1`)},
	{"running without a lease", "lease_exactly_while_running", `UPDATE runs SET lease_until = NULL WHERE run = 'busy'`},
	{"running without an owner", "lease_exactly_while_running", `UPDATE runs SET owner = NULL WHERE run = 'busy'`},
	{"lease of a run that waits", "lease_exactly_while_running", `UPDATE runs SET lease_until = now(), owner = 'w' WHERE run = 'asleep'`},
	{"lowered fence", "higher fence", `UPDATE runs SET fence = 1 WHERE run = 'busy'`},
	{"new owner under the old fence", "higher fence", `UPDATE runs SET owner = 'thief' WHERE run = 'busy'`},
	{"owner of a ready run under the old fence", "higher fence", `UPDATE runs SET status = 'running', owner = 'w', lease_until = now() WHERE run = 'ready'`},
	{"end from outside under the old fence", "higher fence", `UPDATE runs SET status = 'cancelled', owner = NULL, lease_until = NULL WHERE run = 'busy'`},
	{"run that becomes active again", "cannot go", `UPDATE runs SET status = 'ready', ready_no = 1 WHERE run = 'over'`},
	{"run that is taken while it waits", "cannot go", `UPDATE runs SET status = 'running', fence = 9, owner = 'w', lease_until = now() WHERE run = 'asleep'`},
	{"run that waits while it is ready", "cannot go", `UPDATE runs SET status = 'waiting' WHERE run = 'ready'`},
	{"run that has ended without having run", "cannot go", `UPDATE runs SET status = 'completed', fence = 9 WHERE run = 'asleep'`},
	{"ready without a place in the order", "ready_in_order", `UPDATE runs SET status = 'ready' WHERE run = 'asleep'`},
	{"delay of a run that waits", "delayed_only_while_ready", `UPDATE runs SET ready_after = now() WHERE run = 'asleep'`},
	{"hold on a run that is not parked", "held_only_while_parked", `UPDATE runs SET held = true WHERE run = 'asleep'`},
	{"events that become less", "cannot become less", `UPDATE runs SET events = events - 1 WHERE run = 'busy'`},
	{"places that become less", "cannot become less", `UPDATE runs SET places = places - 1 WHERE run = 'busy'`},
	{"run under another state key", "began with cannot change", `UPDATE runs SET state_key = 'x' WHERE run = 'second'`},
	{"run of another account", "began with cannot change", `UPDATE runs SET account = 'other' WHERE run = 'second'`},
	{"input that goes", "given or has come to stays", `UPDATE runs SET input = NULL WHERE run = 'busy'`},
	{"outcome that is lost without an execution", "given or has come to stays", `UPDATE runs SET outcome = NULL WHERE run = 'asleep'`},
	{"ref that comes without an owner", "given or has come to stays", `UPDATE runs SET ref = 'x' WHERE run = 'asleep'`},
	{"unknown status", "run_status", `UPDATE runs SET status = 'lost', owner = NULL, lease_until = NULL WHERE run = 'busy'`},
	{"run without its interrupts", "asked_by_a_run", `DELETE FROM runs WHERE run = 'over'`},
	{"deleted run", "alive", `DELETE FROM runs WHERE run = 'second'`},
	{"interrupt of no run", "asked_by_a_run", question(`'acme', 'new', 'unknown', 9`)},
	{"interrupt of another account's run", "asked_by_a_run", question(`'other', 'new', 'busy', 9`)},

	// Events, and named values.
	{"changed event", "happened cannot change", `UPDATE events SET kind = 'decided' WHERE run = 'busy' AND number = 1`},
	{"second event of one number", "events_pkey", `INSERT INTO events (account, run, number, kind, interrupt, at) VALUES ('acme', 'busy', 1, 'created', '', now())`},
	{"deleted event", "alive", `DELETE FROM events WHERE run = 'busy'`},
	{"second value", "once_pkey", `INSERT INTO once (name, value) VALUES ('name', 'other')`},
	{"value under another name", "kept once stays", `UPDATE once SET name = 'other'`},
	{"value that goes", "value", `UPDATE once SET value = NULL`},
	{"deleted value", "kept once stays", `DELETE FROM once`},

	// Credentials.
	{"a second base of the feed", "feed_base_alone_check", `INSERT INTO feed_base (alone) VALUES (false)`},
	{"credential without an id", "credentials_id_check", credential(`'', NULL`)},
	{"credential that was revoked before it was made", "good when it is made", credential(`'new', now()`)},
}

func effect(values string) string {
	return `INSERT INTO effects (account, run, interrupt, number, digest, fence, target_key, started_at) VALUES (` + values + `, '', now())`
}

func question(values string) string {
	return `INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at) VALUES (` + values + `, '', '', '', '', 0, now())`
}

func run(values string) string {
	return `INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, created_at, updated_at)
	        VALUES (` + values + `, '', '', '', 'running', 1, '', now(), now(), now())`
}

func policy(action string) string {
	return `INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at, state, verdict, final, decided_by, via, source, decided_at)
	        VALUES ('acme', 'new', 'busy', 9, '', '', '', ` + action + `, 0, now(), 'decided', 'approve', '', 'p', '', 'policy', now())`
}

func credential(values string) string {
	return `INSERT INTO credentials (id, revoked_at, account, name, role, hash, created_at) VALUES (` + values + `, 'acme', '', '', '', now())`
}

// decision is a valid decision of Ann except for the differences.
func decision(interrupt string, different ...string) string {
	values := map[string]string{
		"state": `'decided'`, "final": `''`, "decided_by": `'ann'`, "via": `''`, "source": `'person'`, "decided_at": `now()`, "resume": `'1'`,
	}
	for i := 0; i < len(different); i += 2 {
		values[different[i]] = different[i+1]
	}
	var set []string
	for _, column := range slices.Sorted(maps.Keys(values)) {
		set = append(set, column+` = `+values[column])
	}
	return `UPDATE interrupts SET ` + strings.Join(set, ", ") + ` WHERE id = '` + interrupt + `'`
}

func undecide(where string) string {
	return `UPDATE interrupts SET state = 'pending', verdict = NULL, final = NULL, answer = NULL, decided_by = NULL, via = NULL, source = NULL,
	        decided_at = NULL, resume = NULL WHERE ` + where
}

// populatedStore fills a store with data of every kind. Run busy has an owner, has begun the first
// and ended the second effect that Ann approved; asleep waits; ready has work; over has ended with
// an open interrupt; second has an owner and no interrupts.
func populatedStore(t *testing.T, s *Store) {
	t.Helper()
	over := fixture.CreateRun(t, s, "over")
	fixture.EndExecution(t, s, over, nil, "was", "and", "late")
	fixture.MustAccept(t, s, fixture.Decision("over", "0", store.VerdictApprove, "was"))
	fixture.EndExecution(t, s, fixture.MustClaim(t, s, "over"), []string{"was"}, "and", "late")
	fixture.MustAccept(t, s, fixture.Decision("over", "last", store.VerdictApprove, "and"))
	end := fixture.WaitingEnd([]string{"and"}, "late")
	end.Status = store.StatusCompleted
	if _, err := s.EndExecution(t.Context(), fixture.MustClaim(t, s, "over"), end); err != nil {
		t.Fatal(err)
	}
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "asleep"), nil, "asleep")
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "slept"), nil, "before", "after")
	fixture.MustAccept(t, s, fixture.Decision("slept", "slept", store.VerdictApprove, "before"))
	fixture.EndExecution(t, s, fixture.MustClaim(t, s, "slept"), []string{"before"}, "after")
	fixture.MustAccept(t, s, fixture.Decision("slept", "awake", store.VerdictApprove, "after"))
	fixture.MustClaim(t, s, "slept")
	fixture.CreateRun(t, s, "second")
	busy := fixture.NewRun("busy")
	busy.Input = []byte("input")
	lease, err := s.Create(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	fixture.EndExecution(t, s, lease, nil, "yes", "no", "open", "due", "gone")
	yes := fixture.Decision("busy", "1", store.VerdictApprove, "yes")
	yes.Answers[0].Data = []byte("gladly")
	fixture.MustAccept(t, s, yes)
	fixture.MustAccept(t, s, fixture.Decision("busy", "2", store.VerdictReject, "no"))
	lease = fixture.MustClaim(t, s, "busy")
	for n := 1; n <= 2; n++ {
		if _, begun, err := s.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "yes", Attempt: n, ActionDigest: "action-yes"}); err != nil || !begun {
			t.Fatal(begun, err)
		}
	}
	if err := s.EndEffect(t.Context(), store.EffectEnd{Account: "acme", Interrupt: "yes", Attempt: 2, State: store.EffectSucceeded, Receipt: []byte("done")}); err != nil {
		t.Fatal(err)
	}
	if receipt, err := s.Decide(t.Context(), fixture.Decision("busy", "refused", store.VerdictApprove, "unknown")); err != nil || receipt.Result != store.ResultNotFound {
		t.Fatal(receipt, err)
	}
	if err := s.Release(t.Context(), fixture.CreateRun(t, s, "ready"), store.Release{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutIfAbsent(t.Context(), "name", []byte("value")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE interrupts SET state = 'withdrawn' WHERE id = 'gone'`); err != nil {
		t.Fatal(err)
	}
	addDocuments(t, s)
}

// try runs a write in a transaction that is rolled back. All constraints are checked at once, none
// at the commit.
func try(t *testing.T, s *Store, before, write string) (rows int64, err error) {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	tag, err := tx.Exec(t.Context(), write, pgx.QueryExecModeSimpleProtocol)
	return tag.RowsAffected(), err
}

// refusal returns how the server rejected a write, or "".
func refusal(err error) string {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %s %s %s", refused.Code, refused.Message, refused.ConstraintName, refused.ColumnName)
}

func TestConstraints_ForbiddenWritesAreRejected(t *testing.T) {
	s := mustOpen(t, pgtest.New(t), Config{})
	populatedStore(t, s)
	for _, test := range slices.Concat(forbiddenWrites, forbiddenDocumentWrites) {
		t.Run(test.name, func(t *testing.T) {
			rows, err := try(t, s, `SELECT 1`, test.write)
			if err == nil {
				t.Fatalf("%d rows were written by\n%s", rows, test.write)
			}
			said := refusal(err)
			// 23: an integrity constraint; 428C9: a generated column; FM001: a stale write.
			if !strings.HasPrefix(said, "23") && !strings.HasPrefix(said, "428C9") && !strings.HasPrefix(said, staleState) || !strings.Contains(said, test.refusal) {
				t.Errorf("refused as %q, want something with %q", err, test.refusal)
			}
		})
	}
}

// Every trigger and every check has a purpose: without it, one of the forbidden writes passes or is
// rejected for another reason.
func TestConstraints_EveryGuardRejectsAWrite(t *testing.T) {
	s := mustOpen(t, pgtest.New(t), Config{})
	populatedStore(t, s)
	for name, drop := range guards(t, s) {
		idle := true
		for _, test := range slices.Concat(forbiddenWrites, forbiddenDocumentWrites) {
			if _, err := try(t, s, drop, test.write); !strings.Contains(refusal(err), test.refusal) {
				idle = false
				break
			}
		}
		if idle {
			t.Errorf("every forbidden write is still rejected without %s", name)
		}
	}
}

// guards returns the constraints, and the statements that remove them.
func guards(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `
SELECT tgname, format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
WHERE NOT tgisinternal AND c.relnamespace = current_schema()::regnamespace
UNION ALL
SELECT conname, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
WHERE connamespace = current_schema()::regnamespace AND contype IN ('c', 'f') AND conrelid <> 0 AND conrelid::regclass::text NOT LIKE '%checkpoint%'
UNION ALL
SELECT conname, format('ALTER DOMAIN %s DROP CONSTRAINT %I', contypid::regtype, conname) FROM pg_constraint
WHERE connamespace = current_schema()::regnamespace AND contypid <> 0`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var name, drop string
	if _, err := pgx.ForEachRow(rows, []any{&name, &drop}, func() error { all[name] = drop; return nil }); err != nil || len(all) < 30 {
		t.Fatalf("%d guards, %v", len(all), err)
	}
	return all
}

// Each forbidden write must be rejected for its own reason: without the one wrong thing, the write
// passes.
func TestConstraints_AllowedWritesPass(t *testing.T) {
	s := mustOpen(t, pgtest.New(t), Config{})
	populatedStore(t, s)
	for name, write := range map[string]string{
		"effect of what was approved":           effect(`'acme', 'busy', 'yes', 9, 'action-yes', 2`),
		"end of an effect":                      `UPDATE effects SET state = 'failed', ended_at = now(), receipt = 'r' WHERE number = 1`,
		"interrupt":                             question(`'acme', 'new', 'busy', 9`),
		"rejection":                             decision(`open`, `verdict`, `'reject'`),
		"approval":                              decision(`open`, `verdict`, `'approve'`, `final`, `'action-open'`),
		"rejection before the deadline":         decision(`due`, `verdict`, `'reject'`),
		"expiry after the deadline":             decision(`due`, `verdict`, `'expire'`, `source`, `'clock'`, `resume`, `NULL`, `decided_at`, `'infinity'`),
		"ruling of a policy":                    decision(`open`, `verdict`, `'reject'`, `source`, `'policy'`, `resume`, `NULL`),
		"ruling of a policy on a new interrupt": policy(`''`),
		"interrupt that is raised again":        `UPDATE interrupts SET state = 'pending' WHERE id = 'gone'`,
		"applied":                               `UPDATE interrupts SET applied = true WHERE id = 'yes'`,
		"outcome":                               `UPDATE resumes SET outcome = 'x' WHERE id = '1'`,
		"outcome that is copied":                `UPDATE resumes SET outcome = 'x' WHERE id = 'slept'`,
		"outcome that is re-encrypted":          `UPDATE runs SET outcome = 'x' WHERE run = 'slept'`,
		"receipt of the next execution":         `UPDATE resumes SET rest = 2 WHERE id = '1'`,
		"execution that is counted":             `UPDATE runs SET rests = rests + 1, outcome = 'x', status = 'parked', owner = NULL, lease_until = NULL WHERE run = 'busy'`,
		"receipt of a rejection":                `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) VALUES ('acme', 'ann', 'new', 'x', 'busy', 'expired', 'yes', now())`,
		"new run":                               run(`'acme', 'new', 'key-new', 1`),
		"next generation":                       run(`'acme', 'new', 'key-over', 2`),
		"run that is released":                  `UPDATE runs SET status = 'parked', held = true, owner = NULL, lease_until = NULL WHERE run = 'busy'`,
		"run that is woken":                     `UPDATE runs SET status = 'ready', ready_no = 1, ready_after = now() WHERE run = 'asleep'`,
		"run that is taken":                     `UPDATE runs SET status = 'running', owner = 'w', lease_until = now(), fence = fence + 1 WHERE run = 'ready'`,
		"end from outside":                      `UPDATE runs SET status = 'cancelled', fence = fence + 1, owner = NULL, lease_until = NULL WHERE run = 'busy'`,
		"takeover":                              `UPDATE runs SET owner = 'other', fence = fence + 1 WHERE run = 'busy'`,
		"deletion of an unused checkpoint":      `DELETE FROM interrupts WHERE id = 'was'`,
		"next event":                            `INSERT INTO events (account, run, number, kind, interrupt, at) VALUES ('acme', 'busy', 99, 'decided', '', now())`,
		"events of a run that has ended":        `DELETE FROM events WHERE run = 'over' AND number = 1`,
		// Sealed values may be re-encrypted.
		"other bytes of an input":         `UPDATE runs SET input = 'other' WHERE run = 'busy'`,
		"other bytes of a run's outcome":  `UPDATE runs SET outcome = 'other' WHERE run = 'over'`,
		"other bytes of a question":       `UPDATE interrupts SET data = 'other' WHERE id = 'yes' AND data IS NOT NULL`,
		"other bytes of an answer":        `UPDATE interrupts SET answer = 'other' WHERE id = 'yes'`,
		"other bytes of a receipt":        `UPDATE effects SET receipt = 'other' WHERE number = 2`,
		"other bytes of a resume outcome": `UPDATE resumes SET outcome = 'other' WHERE id = '0'`,
		"other bytes of a value":          `UPDATE once SET value = 'other'`,
	} {
		wantAllowed(t, s, name, write)
	}
	for name, write := range allowedDocumentWrites {
		wantAllowed(t, s, name, write)
	}
}

func wantAllowed(t *testing.T, s *Store, name, write string) {
	t.Run(name, func(t *testing.T) {
		if rows, err := try(t, s, `SELECT 1`, write); err != nil || rows != 1 {
			t.Errorf("%d rows, %v in\n%s", rows, err, write)
		}
	})
}
