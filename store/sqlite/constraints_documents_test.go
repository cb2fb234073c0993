package sqlite

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/store"
)

// forbiddenDocumentWrites are writes that would spoil what people have before them, or the log of what was done.
var forbiddenDocumentWrites = []forbiddenWrite{
	// The revision of a paper is its lock.
	{"paper that begins later", "made once", documentRow(`b'new', 2`)},
	{"paper that replaces another", "made once", `INSERT OR REPLACE ` + documentRow(`b'g', 1`)[len(`INSERT `):]},
	{"paper without a name", "CHECK", documentRow(`b'', 1`)},
	{"facts that are no object", "CHECK", `UPDATE papers SET revision = revision + 1, facts = '[1]' WHERE id = b'g'`},
	{"paper of another run", "paper is cannot change", `UPDATE papers SET run = b'second', revision = revision + 1 WHERE id = b'held'`},
	{"paper under another name", "paper is cannot change", `UPDATE papers SET id = b'other', revision = revision + 1 WHERE id = b'g'`},
	{"paper that changes under its revision", "with its revision", `UPDATE papers SET facts = NULL WHERE id = b'held'`},
	{"paper that is due under its revision", "with its revision", `UPDATE papers SET next_at = 1 WHERE id = b'g'`},
	{"paper that leaves a revision out", "with its revision", `UPDATE papers SET revision = revision + 2 WHERE id = b'g'`},
	{"paper that goes back", "with its revision", `UPDATE papers SET revision = revision - 1 WHERE id = b'held'`},
	{"paper that is lost", "only what is there", reencryptedAs(`UPDATE papers SET body = NULL WHERE id = b'held'`)},
	{"paper where there was nothing", "only what is there", reencryptedAs(`UPDATE papers SET body = b'x' WHERE id = b'g'`)},
	{"revision with the body", "nothing else", reencryptedAs(`UPDATE papers SET body = b'x', revision = revision + 1 WHERE id = b'held'`)},
	{"time with the body", "nothing else", reencryptedAs(`UPDATE papers SET body = b'x', next_at = 1 WHERE id = b'held'`)},
	{"deleted paper of a run that is alive", "run is alive, or", `DELETE FROM papers WHERE id = b'held'`},
	{"deleted paper of no run", "run is alive, or", `DELETE FROM papers WHERE id = b'g'`},

	// What people have before them is decided as it is, and in time.
	{"decision without its request", "request was not changed", decision(`verdict = 'reject'`, `id = b'held'`)},
	{"decision before its request was changed", "request was not changed", decision(`verdict = 'reject', decided_at = 9e15`, `id = b'held'`)},
	{"deadline that moves after the decision", "deadline to move", `UPDATE interrupts SET deadline = 9e15 WHERE id = b'no'`},
	{"deadline that goes", "deadline to move", `UPDATE interrupts SET deadline = NULL WHERE id = b'due'`},

	// I12: the chain.
	{"line with a gap before it", "without a gap", auditRow(`9`, `9, zeros`)},
	{"line that replaces another", "without a gap", `INSERT OR REPLACE ` + auditRow(`1`, `1, zeros`)[len(`INSERT `):]},
	{"line that names another one", "names the one before", auditRow(`seq + 1`, `seq + 1, zeros`)},
	{"line that names another number", "names the one before", auditRow(`seq + 1`, `seq, before`)},
	{"changed line", "recorded cannot change", `UPDATE audit SET raw = b'{}'`},
	{"deleted line", "recorded is kept", `DELETE FROM audit`},
}

func documentRow(values string) string {
	return `INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES (` + values + `, b'acme', 'grant', b'', 0, 0)`
}

// auditRow is one for the log that is there, with what it says of its own number and of the hash of the one before.
func auditRow(number, says string) string {
	return fmt.Sprintf(`INSERT INTO audit (account, seq, raw, hash)
		SELECT account, %s, CAST(format('{"v":1,"seq":%%d,"prev":"%%s","time":"', %s) AS BLOB), hash
		FROM (SELECT account, max(seq) AS seq, lower(hex(hash)) AS before, hash, format('%%064d', 0) AS zeros FROM audit)`, number, says)
}

func TestConstraints_AllowedDocumentWritesPass(t *testing.T) {
	s := populatedStore(t)
	for name, write := range map[string]string{
		"paper":                  documentRow(`b'new', 1`),
		"changed paper":          `UPDATE papers SET revision = revision + 1, facts = '{}', next_at = 1, body = NULL WHERE id = b'held'`,
		"paper sealed anew":      reencryptedAs(`UPDATE papers SET body = b'x' WHERE id = b'held'`),
		"expiry of a request":    decision(`verdict = 'expire', source = 'clock', resume = NULL, deadline = 1, decided_at = 9e15`, `id = b'held'`),
		"moved deadline":         `UPDATE interrupts SET deadline = 9e15 WHERE id = b'due'`,
		"next line":              auditRow(`seq + 1`, `seq + 1, before`),
		"paper of nobody's run":  `INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES (b'x', 1, b'acme', 'k', b'over', 0, 0); DELETE FROM papers WHERE id = b'x'`,
		"decision with its time": `UPDATE papers SET revision = revision + 1, updated_at = 1 WHERE id = b'held'; ` + decision(`verdict = 'reject'`, `id = b'held'`),
	} {
		wantAllowed(t, s, name, write)
	}
}

// addDocuments puts the request of a question before people, and a paper that belongs to no run.
func addDocuments(t *testing.T, s *Store) {
	t.Helper()
	request := store.DocumentChange{Kind: store.RequestDocument, ID: "held", Run: "busy", Body: []byte("sealed"), Index: []byte(`{"a":1}`)}
	for request.BaseRevision = range 2 {
		if err := s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{request}, Audit: [][]byte{[]byte(`{"type":"viewed"}`)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "grant", ID: "g"}}}); err != nil {
		t.Fatal(err)
	}
}

// writesOf is a line for the log, and papers.
func writesOf(act, of string, papers ...store.DocumentChange) store.Writes {
	return store.Writes{Documents: papers, Audit: [][]byte{fmt.Appendf(nil, `{"type":%q,"of":%q}`, act, of)}}
}
