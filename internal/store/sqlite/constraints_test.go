package sqlite

import (
	"encoding/hex"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// forbiddenWrite is a write that the database rejects, and a part of the error.
type forbiddenWrite struct{ name, refusal, write string }

// forbiddenWrites are writes that the database rejects from any writer: a bug of ours, another
// build, or a user with a shell.
//
// b'…' stands for the bytes of a text. They run on the data of [populatedStore].
var forbiddenWrites = []forbiddenWrite{
	// I4: no effect without an approval of exactly this action.
	{"effect before a decision", "FOREIGN KEY", effect(`b'acme', b'busy', b'open', 1, b'action-open', 2`)},
	{"effect of a rejected action", "FOREIGN KEY", effect(`b'acme', b'busy', b'no', 1, b'action-no', 2`)},
	{"effect with other arguments", "FOREIGN KEY", effect(`b'acme', b'busy', b'yes', 9, b'action-other', 2`)},
	{"effect without a digest", "CHECK", effect(`b'acme', b'busy', b'yes', 9, b'', 2`)},
	{"effect of another run", "FOREIGN KEY", effect(`b'acme', b'second', b'yes', 9, b'action-yes', 1`)},
	{"effect of another account", "only the owner", effect(`b'other', b'busy', b'yes', 9, b'action-yes', 2`)},
	{"effect of a former owner", "only the owner", effect(`b'acme', b'busy', b'yes', 9, b'action-yes', 1`)},
	{"effect of a run that has ended", "only the owner", effect(`b'acme', b'over', b'was', 1, b'action-was', 2`)},
	{"effect that calls itself something else than approved", "CHECK",
		`INSERT INTO effects (account, run, interrupt, number, verdict, digest, target_key, fence, started_at)
		 VALUES (b'acme', b'busy', b'no', 1, 'reject', b'action-no', b'', 2, 0)`},
	{"second line of one effect", "begun once", effect(`b'acme', b'busy', b'yes', 1, b'action-yes', 2`)},
	{"line that replaces another", "begun once", strings.Replace(effect(`b'acme', b'busy', b'yes', 2, b'action-yes', 2`), "INSERT", "INSERT OR REPLACE", 1)},
	{"line that begins at its end", "begun once",
		`INSERT INTO effects (account, run, interrupt, number, digest, target_key, fence, started_at, state, ended_at)
		 VALUES (b'acme', b'busy', b'yes', 9, b'action-yes', b'', 2, 0, 'succeeded', 0)`},
	{"line with another digest", "cannot change", `UPDATE effects SET digest = b'action-other' WHERE number = 1`},
	{"line under another interrupt", "cannot change", `UPDATE effects SET interrupt = b'no' WHERE number = 1`},
	{"line of another owner", "cannot change", `UPDATE effects SET fence = 9 WHERE number = 1`},
	{"line that ends twice", "cannot change", `UPDATE effects SET state = 'failed' WHERE number = 2`},
	{"line that begins again", "cannot change", `UPDATE effects SET state = 'started', ended_at = NULL WHERE number = 2`},
	{"line that ends at no time", "CHECK", `UPDATE effects SET state = 'failed' WHERE number = 1`},
	{"line that is deleted", "alive", `DELETE FROM effects WHERE number = 2`},

	// I1: one verdict per interrupt, ever.
	{"overwritten verdict", "was decided", `UPDATE interrupts SET verdict = 'reject' WHERE id = b'yes'`},
	{"overwritten digest of the approved action", "was decided", `UPDATE interrupts SET final = b'action-other' WHERE id = b'yes'`},
	{"overwritten answer", "was decided", `UPDATE interrupts SET answer = b'no' WHERE id = b'yes'`},
	{"overwritten decider", "was decided", `UPDATE interrupts SET decided_by = b'bob' WHERE id = b'yes'`},
	{"reopened decision", "was decided", undecide(`id = b'no'`)},
	{"withdrawn decision", "was decided", `UPDATE interrupts SET state = 'withdrawn' WHERE id = b'no'`},
	{"replaced decision", "becomes visible once", strings.Replace(question(`b'acme', b'no', b'busy', 9`), "INSERT", "INSERT OR REPLACE", 1)},
	{"deleted decision", "alive", `DELETE FROM interrupts WHERE id = b'no'`},
	{"decision on what was withdrawn", "withdrawn", decision(`verdict = 'reject'`, `id = b'gone'`)},
	{"interrupt that was decided before it was raised", "only a policy",
		`INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at, state, verdict, final, decided_by, via, source, decided_at, resume)
		 VALUES (b'acme', b'new', b'busy', 9, b'', b'', b'', b'', 0, 0, 'decided', 'reject', b'', b'ann', b'', 'person', 1, b'1')`},

	// I6: shown = approved.
	{"changed shown digest", "cannot change", `UPDATE interrupts SET shown = b'other' WHERE id = b'open'`},
	{"changed action", "cannot change", `UPDATE interrupts SET action = b'other' WHERE id = b'open'`},
	{"changed interrupt", "cannot change", `UPDATE interrupts SET data = b'other' WHERE id = b'open'`},
	{"approve that does not say what", "approve_says_what", decision(`verdict = 'approve'`, `id = b'open'`)},

	// I10, I11: deadlines.
	{"clock that approves", "clock_only_expires", decision(`verdict = 'approve', final = b'action-due', source = 'clock', resume = NULL, decided_at = 9e15`, `id = b'due'`)},
	{"clock that rejects", "clock_only_expires", decision(`verdict = 'reject', source = 'clock', resume = NULL, decided_at = 9e15`, `id = b'due'`)},
	{"clock before the deadline", "clock_only_after_deadline", decision(`verdict = 'expire', source = 'clock', resume = NULL`, `id = b'due'`)},
	{"clock without a deadline", "clock_only_after_deadline", decision(`verdict = 'expire', source = 'clock', resume = NULL`, `id = b'open'`)},
	{"person after the deadline", "others_only_before_deadline", decision(`verdict = 'reject', decided_at = 9e15`, `id = b'due'`)},

	// I4, I11: an interrupt that was never raised is decided only by a policy, and only as an
	// approval of what the owner is about to do.
	{"policy that rejects", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'reject', b'a', b'a', 1, NULL, NULL`)},
	{"policy that allows something else", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'approve', b'b', b'a', 1, NULL, NULL`)},
	{"policy that allows nothing in particular", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'approve', b'', b'', 1, NULL, NULL`)},
	{"policy that leaves work", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'approve', b'a', b'a', 0, NULL, NULL`)},
	{"policy with a deadline", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'approve', b'a', b'a', 1, 9e15, NULL`)},
	{"policy with an answer", "only a policy", mutateRow(`b'busy', 'decided', 'policy', 'approve', b'a', b'a', 1, NULL, b'yes'`)},
	{"policy for a run without an owner", "only a policy", mutateRow(`b'asleep', 'decided', 'policy', 'approve', b'a', b'a', 1, NULL, NULL`)},
	{"clock that decides what was never raised", "only a policy", mutateRow(`b'busy', 'decided', 'clock', 'approve', b'a', b'a', 1, NULL, NULL`)},
	{"interrupt that was withdrawn before it was raised", "only a policy", mutateRow(`b'busy', 'withdrawn', NULL, NULL, NULL, b'a', 0, NULL, NULL`)},

	// I2: an accepted decision is never lost.
	{"decided without a verdict", "verdict_exactly_when_decided", `UPDATE interrupts SET state = 'decided' WHERE id = b'open'`},
	{"verdict that is not decided", "verdict_exactly_when_decided", `UPDATE interrupts SET verdict = 'approve' WHERE id = b'open'`},
	{"decision without an actor", "verdict_exactly_when_decided", decision(`verdict = 'reject', decided_by = NULL`, `id = b'open'`)},
	{"decision of a person without a resume", "receipt_for_a_person", decision(`verdict = 'reject', resume = NULL`, `id = b'open'`)},
	{"decision of a person without a receipt", "FOREIGN KEY", decision(`verdict = 'reject', resume = b'never'`, `id = b'open'`)},
	{"decision that does not wake its run", "not woken", decision(`verdict = 'reject'`, `id = b'asleep'`)},
	{"decision for a run that has ended", "is over", decision(`verdict = 'reject'`, `id = b'late'`)},
	{"waiting with an unapplied decision", "cannot wait", `UPDATE runs SET status = 'waiting', owner = NULL, lease_until = NULL WHERE run = b'busy'`},
	{"applied before it was decided", "applied_after_decided", `UPDATE interrupts SET applied = 1 WHERE id = b'open'`},
	{"applied no more", "applied once", `UPDATE interrupts SET applied = 0 WHERE id = b'was'`},

	// I3: one resume id, one receipt.
	{"changed receipt", "cannot change", `UPDATE resumes SET result = 'expired' WHERE id = b'1'`},
	{"changed body", "cannot change", `UPDATE resumes SET body = b'other' WHERE id = b'1'`},
	{"replaced receipt", "was answered", `INSERT OR REPLACE INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
		VALUES (b'acme', b'ann', b'1', b'x', b'busy', 'expired', b'yes', 0)`},
	{"second outcome", "cannot change", `UPDATE resumes SET outcome = b'another' WHERE id = b'done'`},
	{"outcome of another execution", "that of its rest", `UPDATE resumes SET outcome = b'another' WHERE id = b'slept'`},
	{"outcome that a receipt needs", "needs the outcome", `UPDATE runs SET outcome = b'another' WHERE run = b'slept'`},
	{"execution that was not", "are counted", `UPDATE runs SET rests = rests + 1 WHERE run = b'second'`},
	{"execution that was left out", "are counted", `UPDATE runs SET rests = rests + 2, status = 'parked', owner = NULL, lease_until = NULL WHERE run = b'second'`},
	{"receipt that was applied before it was given", "by a later rest", `INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at, rest)
		VALUES (b'acme', b'ann', b'new', b'x', b'busy', 'accepted', b'', 0, 2)`},
	{"receipt of an earlier execution", "by the next rest", `UPDATE resumes SET rest = 1 WHERE id = b'1'`},
	{"receipt of another execution", "by the next rest", `UPDATE resumes SET rest = 3 WHERE id = b'slept'`},
	{"rejection that was applied", "CHECK", `UPDATE resumes SET rest = 2 WHERE id = b'refused'`},
	{"outcome of a rejection", "outcome_of_accepted", `UPDATE resumes SET outcome = b'x' WHERE id = b'refused'`},

	// I16 and the states of a run.
	{"second active run", "alive", run(`b'acme', b'new', b'key-busy', 9`)},
	{"run that replaces another", "exists", strings.Replace(run(`b'acme', b'busy', b'key-new', 1`), "INSERT", "INSERT OR REPLACE", 1)},
	{"second of a generation", "UNIQUE", run(`b'acme', b'new', b'key-over', 1`)},
	{"running without a lease", "lease_exactly_while_running", `UPDATE runs SET lease_until = NULL WHERE run = b'busy'`},
	{"lease of a run that waits", "lease_exactly_while_running", `UPDATE runs SET lease_until = 1, owner = b'w' WHERE run = b'asleep'`},
	{"lowered fence", "higher fence", `UPDATE runs SET fence = 1 WHERE run = b'busy'`},
	{"new owner under the old fence", "higher fence", `UPDATE runs SET owner = b'thief' WHERE run = b'busy'`},
	{"end from outside under the old fence", "higher fence", `UPDATE runs SET status = 'cancelled', owner = NULL, lease_until = NULL WHERE run = b'busy'`},
	{"run that becomes active again", "cannot go", `UPDATE runs SET status = 'ready', ready_no = 1 WHERE run = b'over'`},
	{"run that is retried although its state key has a newer one", "newer run",
		`UPDATE runs SET status = 'failed', owner = NULL, lease_until = NULL WHERE run = b'busy'; ` + run(`b'acme', b'new', b'key-busy', 9`) + `;
		 UPDATE runs SET status = 'failed', owner = NULL, lease_until = NULL WHERE run = b'new'; UPDATE runs SET status = 'ready', ready_no = 1 WHERE run = b'busy'`},
	{"run that is retried with another outcome", "stays as it is",
		`UPDATE runs SET status = 'failed', owner = NULL, lease_until = NULL WHERE run = b'busy'; UPDATE runs SET status = 'ready', ready_no = 1, outcome = b'x' WHERE run = b'busy'`},
	{"run that is taken while it waits", "cannot go", `UPDATE runs SET status = 'running', fence = 9, owner = b'w', lease_until = 1 WHERE run = b'asleep'`},
	{"ready without a place in the order", "ready_in_order", `UPDATE runs SET status = 'ready' WHERE run = b'asleep'`},
	{"run under another state key", "cannot change", `UPDATE runs SET state_key = b'x' WHERE run = b'busy'`},
	{"run of another account", "cannot change", `UPDATE runs SET account = b'other' WHERE run = b'busy'`},
	{"unknown status", "CHECK", `UPDATE runs SET status = 'lost', owner = NULL, lease_until = NULL WHERE run = b'busy'`},
	{"run without its interrupts", "FOREIGN KEY", `DELETE FROM runs WHERE run = b'over'`},
	{"interrupt of no run", "FOREIGN KEY", question(`b'acme', b'new', b'unknown', 9`)},
	{"interrupt of another account's run", "FOREIGN KEY", question(`b'other', b'new', b'busy', 9`)},
	{"parked by an operator while it is not parked", "held_only_while_parked", `UPDATE runs SET held = 1 WHERE run = b'busy'`},
	{"text for bytes", "cannot store TEXT", run(`'acme', b'new', b'key-new', 1`)},
}

func mutateRow(values string) string {
	return `INSERT INTO interrupts (account, id, place, address, kind, shown, timeout, created_at, via, decided_by, decided_at, run, state, source, verdict, final, action, applied, deadline, answer)
	        VALUES (b'acme', b'new', 9, b'', b'', b'', 0, 0, b'', b'policy', 1, ` + values + `)`
}

func effect(values string) string {
	return `INSERT INTO effects (account, run, interrupt, number, digest, fence, target_key, started_at) VALUES (` + values + `, b'', 0)`
}

func question(values string) string {
	return `INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at) VALUES (` + values + `, b'', b'', b'', b'', 0, 0)`
}

func run(values string) string {
	return `INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, created_at, updated_at)
	        VALUES (` + values + `, b'', b'', b'', 'running', 1, b'', 1, 0, 0)`
}

// decision is a valid decision of Ann except for the differences. (SQLite uses the last of two
// values.)
func decision(different, where string) string {
	return `UPDATE interrupts SET state = 'decided', final = b'', decided_by = b'ann', via = b'', source = 'person', decided_at = 1, resume = b'1', ` +
		different + ` WHERE ` + where
}

func undecide(where string) string {
	return `UPDATE interrupts SET state = 'pending', verdict = NULL, final = NULL, answer = NULL, decided_by = NULL, via = NULL, source = NULL,
	        decided_at = NULL, resume = NULL WHERE ` + where
}

var bytesLiteral = regexp.MustCompile(`\bb'([^']*)'`)

func inHex(text string) string {
	return bytesLiteral.ReplaceAllStringFunc(text, func(literal string) string {
		return "x'" + hex.EncodeToString([]byte(literal[2:len(literal)-1])) + "'"
	})
}

// populatedStore returns a store with data of every kind. Run busy has an owner, has begun the
// first and ended the second effect that Ann approved; asleep waits; slept waits again after one
// decision was applied; over was cancelled after one decision was applied; second has an owner and
// no interrupts; done has ended and has every sealed value.
func populatedStore(t *testing.T) *Store {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	over := fixture.CreateRun(t, s, "over")
	fixture.EndExecution(t, s, over, nil, "was", "late")
	fixture.MustAccept(t, s, fixture.Decision("over", "0", store.VerdictApprove, "was"))
	over = fixture.MustClaim(t, s, "over")
	fixture.EndExecution(t, s, over, []string{"was"}, "late")
	if _, err := s.Cancel(t.Context(), "acme", "over", store.StatusCancelled, nil, store.Writes{}); err != nil {
		t.Fatal(err)
	}
	done(t, s)
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "asleep"), nil, "asleep")
	fixture.EndExecution(t, s, fixture.CreateRun(t, s, "slept"), nil, "before", "after")
	fixture.MustAccept(t, s, fixture.Decision("slept", "slept", store.VerdictApprove, "before"))
	fixture.EndExecution(t, s, fixture.MustClaim(t, s, "slept"), []string{"before"}, "after")
	fixture.CreateRun(t, s, "second")
	many := fixture.WaitingEnd(nil, "yes", "no", "open", "due", "gone", "held")
	many.Open[2].Data = nil
	if _, err := s.EndExecution(t.Context(), fixture.CreateRun(t, s, "busy"), many); err != nil {
		t.Fatal(err)
	}
	fixture.MustAccept(t, s, fixture.Decision("busy", "1", store.VerdictApprove, "yes"))
	fixture.MustAccept(t, s, fixture.Decision("busy", "2", store.VerdictReject, "no"))
	busy := fixture.MustClaim(t, s, "busy")
	for n := 1; n <= 2; n++ {
		if _, begun, err := s.BeginEffect(t.Context(), busy, store.NewEffect{Interrupt: "yes", Attempt: n, ActionDigest: "action-yes"}); err != nil || !begun {
			t.Fatal(begun, err)
		}
	}
	if err := s.EndEffect(t.Context(), store.EffectEnd{Account: "acme", Interrupt: "yes", Attempt: 2, State: store.EffectSucceeded}); err != nil {
		t.Fatal(err)
	}
	if receipt, err := s.Decide(t.Context(), fixture.Decision("busy", "refused", store.VerdictApprove, "unknown")); err != nil || receipt.Result != store.ResultNotFound {
		t.Fatal(receipt, err)
	}
	if _, err := s.writer.ExecContext(t.Context(), inHex(`UPDATE interrupts SET state = 'withdrawn' WHERE id = b'gone'`)); err != nil {
		t.Fatal(err)
	}
	addDocuments(t, s)
	return s
}

func done(t *testing.T, s *Store) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	run := fixture.NewRun("done")
	run.ProviderRef, run.Input = []byte("ref"), []byte("input")
	lease, err := s.Create(t.Context(), run)
	must(err)
	asked := fixture.WaitingEnd(nil, "told")
	asked.Open[0].Data = []byte("question")
	_, err = s.EndExecution(t.Context(), lease, asked)
	must(err)
	word := fixture.Decision("done", "done", store.VerdictApprove, "told")
	word.Answers[0].Data = []byte("yes")
	fixture.MustAccept(t, s, word)
	lease = fixture.MustClaim(t, s, "done")
	_, _, err = s.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "told", Attempt: 3, ActionDigest: "action-told"})
	must(err)
	must(s.EndEffect(t.Context(), store.EffectEnd{Account: "acme", Interrupt: "told", Attempt: 3, State: store.EffectSucceeded, Receipt: []byte("receipt")}))
	told := fixture.WaitingEnd([]string{"told"}, "more")
	told.Outcome = []byte("outcome")
	_, err = s.EndExecution(t.Context(), lease, told)
	must(err)
	fixture.MustAccept(t, s, fixture.Decision("done", "last", store.VerdictApprove, "more"))
	_, err = s.EndExecution(t.Context(), fixture.MustClaim(t, s, "done"), store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"more"}, Outcome: []byte("the last outcome")})
	must(err)
	_, err = s.PutIfAbsent(t.Context(), "name", []byte("value"))
	must(err)
	for _, id := range []string{"good", "revoked"} {
		must(s.AddCredential(t.Context(), store.Credential{ID: id, Account: "acme", Hash: []byte("hash")}, store.Writes{}))
	}
	must(s.RevokeCredential(t.Context(), "acme", "revoked", store.Writes{}))
}

func TestConstraints_ForbiddenWritesAreRejected(t *testing.T) {
	s := populatedStore(t)
	for _, test := range slices.Concat(forbiddenWrites, forbiddenMaintenanceWrites, forbiddenCredentialWrites, forbiddenDocumentWrites) {
		t.Run(test.name, func(t *testing.T) {
			tx, err := s.writer.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			result, err := tx.ExecContext(t.Context(), inHex(test.write))
			if err == nil {
				rows, _ := result.RowsAffected()
				t.Fatalf("%d rows were written by\n%s", rows, test.write)
			}
			if resultCode(err)&0xff != sqlite3.SQLITE_CONSTRAINT || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("refused as %q, want something with %q", err, test.refusal)
			}
		})
	}
}

// Every trigger has a purpose: without it, one of the forbidden writes passes.
func TestConstraints_EveryTriggerRejectsAWrite(t *testing.T) {
	s := populatedStore(t)
	for _, trigger := range triggers(t, s) {
		tx, err := s.writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), `DROP TRIGGER `+trigger.name); err != nil {
			t.Fatal(err)
		}
		passed := 0
		for _, test := range slices.Concat(forbiddenWrites, forbiddenMaintenanceWrites, forbiddenCredentialWrites, forbiddenDocumentWrites) {
			if !strings.Contains(trigger.text, test.refusal) { // not a check of this trigger
				continue
			}
			if _, err := tx.ExecContext(t.Context(), `SAVEPOINT before; `+inHex(test.write)); err == nil {
				passed++
			}
			if _, err := tx.ExecContext(t.Context(), `ROLLBACK TO before`); err != nil {
				t.Fatal(err)
			}
		}
		if passed == 0 {
			t.Errorf("every forbidden write is still rejected without %s", trigger.name)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

type trigger struct{ name, text string }

func triggers(t *testing.T, s *Store) (all []trigger) {
	t.Helper()
	rows, err := s.readers.QueryContext(t.Context(), `SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one trigger
		if err := rows.Scan(&one.name, &one.text); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) == 0 || rows.Err() != nil {
		t.Fatal("no triggers", rows.Err())
	}
	return all
}

// Each forbidden write must be rejected for its own reason: without the one wrong thing, the write
// passes.
func TestConstraints_AllowedWritesPass(t *testing.T) {
	s := populatedStore(t)
	for name, write := range map[string]string{
		"effect of what was approved":          effect(`b'acme', b'busy', b'yes', 9, b'action-yes', 2`),
		"end of an effect":                     `UPDATE effects SET state = 'failed', ended_at = 1 WHERE number = 1`,
		"interrupt":                            question(`b'acme', b'new', b'busy', 9`),
		"rejection":                            decision(`verdict = 'reject'`, `id = b'open'`),
		"approval":                             decision(`verdict = 'approve', final = b'action-open'`, `id = b'open'`),
		"rejection before the deadline":        decision(`verdict = 'reject'`, `id = b'due'`),
		"expiry after the deadline":            decision(`verdict = 'expire', source = 'clock', resume = NULL, decided_at = 9e15`, `id = b'due'`),
		"ruling of a policy":                   decision(`verdict = 'reject', source = 'policy', resume = NULL`, `id = b'open'`),
		"interrupt that is raised again":       `UPDATE interrupts SET state = 'pending' WHERE id = b'gone'`,
		"applied":                              `UPDATE interrupts SET applied = 1 WHERE id = b'yes'`,
		"outcome":                              `UPDATE resumes SET outcome = b'x' WHERE id = b'1'`,
		"outcome that is copied":               `UPDATE resumes SET outcome = (SELECT outcome FROM runs WHERE run = b'slept') WHERE id = b'slept'`,
		"receipt of the next execution":        `UPDATE resumes SET rest = 2 WHERE id = b'1'`,
		"execution that is counted":            `UPDATE runs SET rests = rests + 1, outcome = b'x', status = 'parked', owner = NULL, lease_until = NULL WHERE run = b'busy'`,
		"new run":                              run(`b'acme', b'new', b'key-new', 1`),
		"next generation":                      run(`b'acme', b'new', b'key-over', 2`),
		"run that is released":                 `UPDATE runs SET status = 'parked', owner = NULL, lease_until = NULL WHERE run = b'busy'`,
		"run that is woken":                    `UPDATE runs SET status = 'ready', ready_no = 1 WHERE run = b'asleep'`,
		"failed run that is retried":           `UPDATE runs SET status = 'failed', owner = NULL, lease_until = NULL WHERE run = b'busy'; UPDATE runs SET status = 'ready', ready_no = 1, updated_at = 1 WHERE run = b'busy'`,
		"end from outside":                     `UPDATE runs SET status = 'cancelled', fence = fence + 1, owner = NULL, lease_until = NULL WHERE run = b'busy'`,
		"takeover":                             `UPDATE runs SET owner = b'other', fence = fence + 1 WHERE run = b'busy'`,
		"run that is parked by an operator":    `UPDATE runs SET status = 'parked', held = 1, owner = NULL, lease_until = NULL WHERE run = b'busy'`,
		"ruling of a policy on what it allows": mutateRow(`b'busy', 'decided', 'policy', 'approve', b'a', b'a', 1, NULL, NULL`),
		"deletion of an unused checkpoint":     `DELETE FROM interrupts WHERE id = b'was'`,
	} {
		wantAllowed(t, s, name, write)
	}
}

// wantAllowed checks that a write passes and changes a row.
func wantAllowed(t *testing.T, s *Store, name, write string) {
	t.Run(name, func(t *testing.T) {
		tx, err := s.writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		result, err := tx.ExecContext(t.Context(), inHex(write))
		if err != nil {
			t.Fatalf("%v in\n%s", err, write)
		}
		if rows, err := result.RowsAffected(); err != nil || rows != 1 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
}
