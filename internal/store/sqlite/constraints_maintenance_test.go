package sqlite

import (
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// reencryptedAs is a write during re-encryption.
func reencryptedAs(write string) string { return `INSERT INTO resealing (one) VALUES (1); ` + write }

// forbiddenMaintenanceWrites are writes that would corrupt sealed values, events or named values.
var forbiddenMaintenanceWrites = []forbiddenWrite{
	// Sealed values change only by re-encryption.
	{"changed input", "cannot change", `UPDATE runs SET input = b'other' WHERE run = b'done'`},
	{"changed interrupt that was there", "cannot change", `UPDATE interrupts SET data = b'other' WHERE id = b'told'`},
	{"changed answer that was there", "was decided", `UPDATE interrupts SET answer = b'other' WHERE id = b'told'`},
	{"changed outcome that was there", "cannot change", `UPDATE resumes SET outcome = b'other' WHERE id = b'done'`},
	{"changed receipt of an effect", "cannot change", `UPDATE effects SET receipt = b'other' WHERE number = 3`},
	{"answer without a decision", "answer_of_decided", `UPDATE interrupts SET answer = b'x' WHERE id = b'open'`},

	// A run that has ended.
	{"another reference of a run that has ended", "stays as it is", `UPDATE runs SET ref = b'x' WHERE run = b'done'`},
	{"another outcome of a run that has ended", "stays as it is", `UPDATE runs SET outcome = b'x' WHERE run = b'done'`},
	{"another end of a run that has ended", "stays as it is", `UPDATE runs SET updated_at = 9 WHERE run = b'done'`},

	// Re-encryption only replaces bytes.
	{"reference where there was none", "only what is there", reencryptedAs(`UPDATE runs SET ref = b'x' WHERE run = b'busy'`)},
	{"input that is lost", "only what is there", reencryptedAs(`UPDATE runs SET input = NULL WHERE run = b'done'`)},
	{"outcome that is lost", "only what is there", reencryptedAs(`UPDATE runs SET outcome = NULL WHERE run = b'done'`)},
	{"interrupt where there was none", "only what is there", reencryptedAs(`UPDATE interrupts SET data = b'x' WHERE id = b'open'`)},
	{"answer where there was none", "only what is there", reencryptedAs(`UPDATE interrupts SET answer = b'x' WHERE id = b'yes'`)},
	{"answer that is lost", "only what is there", reencryptedAs(`UPDATE interrupts SET answer = NULL WHERE id = b'told'`)},
	{"outcome of a resume where there was none", "only what is there", reencryptedAs(`UPDATE resumes SET outcome = b'x' WHERE id = b'1'`)},
	{"outcome of a resume that is lost", "only what is there", reencryptedAs(`UPDATE resumes SET outcome = NULL WHERE id = b'done'`)},
	{"receipt where there was none", "only what is there", reencryptedAs(`UPDATE effects SET receipt = b'x' WHERE number = 2`)},
	{"receipt that is lost", "only what is there", reencryptedAs(`UPDATE effects SET receipt = NULL WHERE number = 3`)},

	// And nothing else.
	{"time with the input", "nothing else", reencryptedAs(`UPDATE runs SET input = b'x', updated_at = 9 WHERE run = b'busy'`)},
	{"lease with the reference", "nothing else", reencryptedAs(`UPDATE runs SET lease_until = 9e15 WHERE run = b'busy'`)},
	{"name with the input", "cannot change", reencryptedAs(`UPDATE runs SET input = b'x', graph = b'x' WHERE run = b'done'`)},
	{"verdict with the answer", "nothing else", reencryptedAs(`UPDATE interrupts SET answer = b'x', verdict = 'reject', final = b'' WHERE id = b'told'`)},
	{"decision with the interrupt", "nothing else", reencryptedAs(decision(`data = b'x', verdict = 'reject'`, `id = b'open'`))},
	{"application with the answer", "nothing else", reencryptedAs(`UPDATE interrupts SET applied = 1 WHERE id = b'yes'`)},
	{"digest with the interrupt", "cannot change", reencryptedAs(`UPDATE interrupts SET data = b'x', shown = b'x' WHERE id = b'told'`)},
	{"result with the outcome", "cannot change", reencryptedAs(`UPDATE resumes SET outcome = b'x', body = b'x' WHERE id = b'done'`)},
	{"end with the receipt", "nothing else", reencryptedAs(`UPDATE effects SET receipt = b'x', state = 'failed' WHERE number = 3`)},
	{"digest with the receipt", "cannot change", reencryptedAs(`UPDATE effects SET receipt = b'x', digest = b'x' WHERE number = 3`)},

	// Events are append-only.
	{"event with a gap before it", "without a gap", event(`b'busy', 99, 'asked'`)},
	{"second event of a number", "without a gap", event(`b'busy', 1, 'asked'`)},
	{"event before the first", "without a gap", event(`b'busy', 0, 'asked'`)},
	{"event that replaces another", "without a gap", `INSERT OR REPLACE INTO events (id, account, run, number, kind, interrupt, at)
		SELECT min(id), b'acme', b'second', 2, 'waiting', b'', 0 FROM events`},
	{"event of no run", "FOREIGN KEY", event(`b'unknown', 1, 'created'`)},
	{"event of another account's run", "FOREIGN KEY", `INSERT INTO events (account, run, number, kind, interrupt, at) VALUES (b'other', b'second', 1, 'created', b'', 0)`},
	{"event of an unknown kind", "CHECK", event(`b'second', 2, 'exploded'`)},
	{"changed event", "cannot change", `UPDATE events SET at = 9 WHERE run = b'second'`},
	{"deleted event", "alive", `DELETE FROM events WHERE run = b'second'`},

	// Data of an active run cannot be deleted.
	{"deleted interrupt", "alive", `DELETE FROM interrupts WHERE id = b'open'`},
	{"deleted receipt", "alive", `DELETE FROM resumes WHERE id = b'refused'`},
	{"deleted run", "FOREIGN KEY", `DELETE FROM runs WHERE run = b'second'`},

	// A name has one value.
	{"other value", "has its value", `UPDATE once SET value = b'x'`},
	{"other name", "has its value", `UPDATE once SET name = b'x'`},
	{"other name with the value", "has its value", reencryptedAs(`UPDATE once SET name = b'x', value = b'x'`)},
	{"replaced value", "has its value", `INSERT OR REPLACE INTO once (name, value) VALUES (b'name', b'x')`},
	{"deleted value", "has its value", `DELETE FROM once`},
	{"value without a name", "CHECK", `INSERT INTO once (name, value) VALUES (b'', b'x')`},
	{"lost value", "NOT NULL", reencryptedAs(`UPDATE once SET value = NULL`)},
}

// forbiddenCredentialWrites are writes that would grant access.
var forbiddenCredentialWrites = []forbiddenWrite{
	{"credential that replaces another", "made once", `INSERT OR REPLACE INTO credentials (id, account, name, role, hash, created_at) VALUES (b'good', b'acme', b'', b'', b'x', 0)`},
	{"credential that was revoked before it was made", "made once",
		`INSERT INTO credentials (id, account, name, role, hash, created_at, revoked_at) VALUES (b'new', b'acme', b'', b'', b'x', 0, 1)`},
	{"credential with another hash", "only be revoked", `UPDATE credentials SET hash = b'x' WHERE id = b'good'`},
	{"credential with another role", "only be revoked", `UPDATE credentials SET revoked_at = 1, role = b'admin' WHERE id = b'good'`},
	{"credential of another account", "only be revoked", `UPDATE credentials SET revoked_at = 1, account = b'other' WHERE id = b'good'`},
	{"credential that lasts longer", "only be revoked", `UPDATE credentials SET expires_at = 9e15 WHERE id = b'good'`},
	{"credential that is valid again", "only be revoked", `UPDATE credentials SET revoked_at = NULL WHERE id = b'revoked'`},
	{"credential that was revoked later", "only be revoked", `UPDATE credentials SET revoked_at = 9e15 WHERE id = b'revoked'`},
}

func event(values string) string {
	return `INSERT INTO events (account, interrupt, at, run, number, kind) VALUES (b'acme', b'', 0, ` + values + `)`
}

func TestConstraints_AllowedMaintenanceWritesPass(t *testing.T) {
	s := populatedStore(t)
	for name, write := range map[string]string{
		"reference re-encrypted":           reencryptedAs(`UPDATE runs SET ref = b'x' WHERE run = b'done'`),
		"input re-encrypted":               reencryptedAs(`UPDATE runs SET input = b'x' WHERE run = b'done'`),
		"outcome re-encrypted":             reencryptedAs(`UPDATE runs SET outcome = b'x' WHERE run = b'done'`),
		"outcome of a run that goes on":    reencryptedAs(`UPDATE runs SET outcome = b'x' WHERE run = b'busy'`),
		"interrupt re-encrypted":           reencryptedAs(`UPDATE interrupts SET data = b'x' WHERE id = b'told'`),
		"answer re-encrypted":              reencryptedAs(`UPDATE interrupts SET answer = b'x' WHERE id = b'told'`),
		"outcome of a resume re-encrypted": reencryptedAs(`UPDATE resumes SET outcome = b'x' WHERE id = b'done'`),
		"receipt re-encrypted":             reencryptedAs(`UPDATE effects SET receipt = b'x' WHERE number = 3`),
		"value re-encrypted":               reencryptedAs(`UPDATE once SET value = b'x'`),
		"event":                            event(`b'second', 2, 'waiting'`),
		"event of a run that has ended":    event(`b'over', (SELECT 1 + max(number) FROM events WHERE run = b'over'), 'effect_ended'`),
		"name":                             `INSERT INTO once (name, value) VALUES (b'new', b'x')`,
		"credential":                       `INSERT INTO credentials (id, account, name, role, hash, created_at) VALUES (b'new', b'acme', b'', b'', b'x', 0)`,
		"revoked credential":               `UPDATE credentials SET revoked_at = 1 WHERE id = b'good'`,
		"deleted event":                    `DELETE FROM events WHERE run = b'done' AND number = 1`,
		"deleted receipt":                  `DELETE FROM resumes WHERE id = b'never'; DELETE FROM effects WHERE number = 3`,
	} {
		wantAllowed(t, s, name, write)
	}
}

// No row is orphaned when a run is deleted.
func TestDeleteRun_LeavesNoOrphanRows(t *testing.T) {
	s := populatedStore(t)
	for _, id := range []string{"done", "over"} {
		if err := s.DeleteRun(t.Context(), "acme", id, store.Writes{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"asleep", "busy", "second"} {
		if err := s.DeleteRun(t.Context(), "acme", run, store.Writes{}); err != store.ErrRunActive {
			t.Errorf("%s: %v", run, err)
		}
	}
	var orphans, rest int
	err := s.readers.QueryRowContext(t.Context(), inHex(`SELECT (SELECT count(*) FROM pragma_foreign_key_check),
		(SELECT count(*) FROM runs WHERE run IN (b'done', b'over')) + (SELECT count(*) FROM interrupts WHERE run IN (b'done', b'over'))
		+ (SELECT count(*) FROM resumes WHERE run IN (b'done', b'over')) + (SELECT count(*) FROM effects WHERE run IN (b'done', b'over'))
		+ (SELECT count(*) FROM events WHERE run IN (b'done', b'over')) + (SELECT count(*) FROM resealing)`)).Scan(&orphans, &rest)
	if err != nil || orphans != 0 || rest != 0 {
		t.Errorf("%d orphan rows, %d rows left: %v", orphans, rest, err)
	}
}
