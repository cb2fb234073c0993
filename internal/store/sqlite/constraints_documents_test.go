package sqlite

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// forbiddenDocumentWrites are writes that would corrupt requests or the audit log.
var forbiddenDocumentWrites = []forbiddenWrite{
	// The revision of a document is its lock.
	{"document that begins later", "made once", documentRow(`b'new', 2`)},
	{"document that replaces another", "made once", `INSERT OR REPLACE ` + documentRow(`b'g', 1`)[len(`INSERT `):]},
	{"document without a name", "CHECK", documentRow(`b'', 1`)},
	{"index that is not an object", "CHECK", `UPDATE papers SET revision = revision + 1, facts = '[1]' WHERE id = b'g'`},
	{"document of another run", "paper is cannot change", `UPDATE papers SET run = b'second', revision = revision + 1 WHERE id = b'held'`},
	{"document under another name", "paper is cannot change", `UPDATE papers SET id = b'other', revision = revision + 1 WHERE id = b'g'`},
	{"document that changes under its revision", "with its revision", `UPDATE papers SET facts = NULL WHERE id = b'held'`},
	{"document that is due under its revision", "with its revision", `UPDATE papers SET next_at = 1 WHERE id = b'g'`},
	{"document that leaves a revision out", "with its revision", `UPDATE papers SET revision = revision + 2 WHERE id = b'g'`},
	{"document that goes back", "with its revision", `UPDATE papers SET revision = revision - 1 WHERE id = b'held'`},
	{"document that is lost", "only what is there", reencryptedAs(`UPDATE papers SET body = NULL WHERE id = b'held'`)},
	{"document where there was nothing", "only what is there", reencryptedAs(`UPDATE papers SET body = b'x' WHERE id = b'g'`)},
	{"revision with the body", "nothing else", reencryptedAs(`UPDATE papers SET body = b'x', revision = revision + 1 WHERE id = b'held'`)},
	{"time with the body", "nothing else", reencryptedAs(`UPDATE papers SET body = b'x', next_at = 1 WHERE id = b'held'`)},
	{"deleted document of a run that is active", "run is alive, or", `DELETE FROM papers WHERE id = b'held'`},
	{"deleted document of no run", "run is alive, or", `DELETE FROM papers WHERE id = b'g'`},

	// A request is decided as it was shown, and in time.
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

// auditRow is a row for the audit log with a chosen number, and with the number and hash that it
// claims.
func auditRow(number, says string) string {
	return fmt.Sprintf(`INSERT INTO audit (account, seq, raw, hash)
		SELECT account, %s, CAST(format('{"v":1,"seq":%%d,"prev":"%%s","time":"', %s) AS BLOB), hash
		FROM (SELECT account, max(seq) AS seq, lower(hex(hash)) AS before, hash, format('%%064d', 0) AS zeros FROM audit)`, number, says)
}

func TestConstraints_AllowedDocumentWritesPass(t *testing.T) {
	s := populatedStore(t)
	for name, write := range map[string]string{
		"document":                  documentRow(`b'new', 1`),
		"changed document":          `UPDATE papers SET revision = revision + 1, facts = '{}', next_at = 1, body = NULL WHERE id = b'held'`,
		"document re-encrypted":     reencryptedAs(`UPDATE papers SET body = b'x' WHERE id = b'held'`),
		"expiry of a request":       decision(`verdict = 'expire', source = 'clock', resume = NULL, deadline = 1, decided_at = 9e15`, `id = b'held'`),
		"moved deadline":            `UPDATE interrupts SET deadline = 9e15 WHERE id = b'due'`,
		"next line":                 auditRow(`seq + 1`, `seq + 1, before`),
		"document of a missing run": `INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES (b'x', 1, b'acme', 'k', b'over', 0, 0); DELETE FROM papers WHERE id = b'x'`,
		"decision with its time":    `UPDATE papers SET revision = revision + 1, updated_at = 1 WHERE id = b'held'; ` + decision(`verdict = 'reject'`, `id = b'held'`),
	} {
		wantAllowed(t, s, name, write)
	}
}

// addDocuments adds the request of an interrupt, and a document without a run.
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

// writesOf returns an audit line and documents.
func writesOf(act, of string, documents ...store.DocumentChange) store.Writes {
	return store.Writes{Documents: documents, Audit: [][]byte{fmt.Appendf(nil, `{"type":%q,"of":%q}`, act, of)}}
}
