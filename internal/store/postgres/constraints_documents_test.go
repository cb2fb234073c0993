package postgres

import (
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// immediateConstraints checks constraints at once that are otherwise checked at the commit.
const immediateConstraints = `SET CONSTRAINTS ALL IMMEDIATE; `

// forbiddenDocumentWrites are writes that would corrupt requests or the audit log.
var forbiddenDocumentWrites = []forbiddenWrite{
	// The revision of a document is its lock.
	{"document that begins later", "made with revision 1", documentRow(`'new', 2`)},
	{"second document of one name", "papers_pkey", documentRow(`'g', 1`)},
	{"document without a name", "papers_id_check", documentRow(`'', 1`)},
	{"document without a kind", "papers_kind_check", `UPDATE papers SET kind = '' WHERE false; ` +
		`INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES ('new', 1, 'acme', '', '', now(), now())`},
	{"document of another run", "paper is cannot change", `UPDATE papers SET run = 'second', revision = revision + 1 WHERE id = 'due'`},
	{"document under another name", "paper is cannot change", `UPDATE papers SET id = 'other', revision = revision + 1 WHERE id = 'g'`},
	{"document of another account", "paper is cannot change", `UPDATE papers SET account = 'other', revision = revision + 1 WHERE id = 'g'`},
	{"document that changes under its revision", "with its revision", `UPDATE papers SET facts = '{}' WHERE id = 'g'`},
	{"document that is due under its revision", "with its revision", `UPDATE papers SET next_at = now() WHERE id = 'g'`},
	{"document that is lost under its revision", "with its revision", `UPDATE papers SET body = NULL WHERE id = 'due'`},
	{"document that leaves a revision out", "with its revision", `UPDATE papers SET revision = revision + 2 WHERE id = 'g'`},
	{"document that goes back", "with its revision", `UPDATE papers SET revision = revision - 1 WHERE id = 'due'`},
	{"deleted document of a run that is active", "run is alive", `DELETE FROM papers WHERE id = 'due'`},
	{"deleted document of no run", "belongs to none", `DELETE FROM papers WHERE id = 'g'`},

	// A request is decided as it was shown, and in time.
	{"decision without its request", "request was not changed", immediateConstraints + decision(`due`, `verdict`, `'reject'`)},
	{"deadline that moves after the decision", "deadline to move", `UPDATE interrupts SET deadline = 'infinity' WHERE id = 'no'`},
	{"deadline that goes", "deadline to move", `UPDATE interrupts SET deadline = NULL WHERE id = 'due'`},

	// I12: the chain.
	{"line with a gap before it", "names the one before", auditRow(`seq + 2`, `seq + 1`, `raw`)},
	{"line that names another one", "names the one before", auditRow(`seq + 1`, `seq`, `sha256(raw)`)},
	{"line that says another number", "names the one before", auditRow(`seq + 1`, `seq + 1`, `raw`)},
	{"second line of a number", "audit_pkey", auditRow(`seq`, `seq`, `raw`)},
	{"line before the first", "names the one before", auditRow(`0`, `-1`, `NULL`)},
	{"first line that names another one", "names the one before", `INSERT INTO audit (account, seq, raw) VALUES ('new', 1, chain_link(0, sha256('x')))`},
	{"second line of a log that has no first", "names the one before", `INSERT INTO audit (account, seq, raw) VALUES ('new', 2, chain_link(1, chain_hash(NULL)))`},
	{"changed line", "recorded cannot change", `UPDATE audit SET raw = '{}'`},
	{"deleted line", "recorded is kept", `DELETE FROM audit`},
	{"log that is emptied", "recorded is kept", `TRUNCATE audit`},
}

// allowedDocumentWrites are the same writes without the error.
var allowedDocumentWrites = map[string]string{
	"document":                  documentRow(`'new', 1`),
	"changed document":          `UPDATE papers SET revision = revision + 1, facts = '{}', next_at = now(), body = NULL WHERE id = 'due'`,
	"other bytes of a document": `UPDATE papers SET body = 'other' WHERE id = 'due'`,
	"document of a missing run": `INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES ('x', 1, 'acme', 'k', 'over', now(), now()); DELETE FROM papers WHERE id = 'x'`,
	"decision with its request": immediateConstraints + `UPDATE papers SET revision = revision + 1 WHERE id = 'due'; ` + decision(`due`, `verdict`, `'reject'`),
	"expiry without a change":   immediateConstraints + decision(`due`, `verdict`, `'expire'`, `source`, `'clock'`, `resume`, `NULL`, `decided_at`, `'infinity'`),
	"moved deadline":            `UPDATE interrupts SET deadline = 'infinity' WHERE id = 'due'`,
	"next line":                 auditRow(`seq + 1`, `seq`, `raw`),
	"first line of a new log":   `INSERT INTO audit (account, seq, raw) VALUES ('new', 1, chain_link(0, chain_hash(NULL)))`,
}

// auditRow is a row with a chosen number that names another row by number and content; the last row
// is available as a table.
func auditRow(seq, named, raw string) string {
	return `INSERT INTO audit (account, seq, raw) SELECT account, ` + seq + `, chain_link(` + named + `, chain_hash(` + raw + `)) FROM audit ORDER BY seq DESC LIMIT 1`
}

func documentRow(values string) string {
	return `INSERT INTO papers (id, revision, account, kind, run, created_at, updated_at) VALUES (` + values + `, 'acme', 'grant', '', now(), now())`
}

// addDocuments adds the request of an interrupt, and a document without a run.
func addDocuments(t *testing.T, s *Store) {
	t.Helper()
	for range 2 {
		if err := s.CommitWrites(t.Context(), "acme", store.Writes{
			Documents: []store.DocumentChange{{Kind: store.RequestDocument, ID: "due", Run: "busy", BaseRevision: revision(t, s, store.RequestDocument, "due"), Body: []byte("sealed")}},
			Audit:     [][]byte{[]byte(`{"type":"viewed"}`)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "grant", ID: "g"}}}); err != nil {
		t.Fatal(err)
	}
}

// revision returns the revision of a document, or 0 if there is none.
func revision(t testing.TB, s *Store, kind store.DocumentKind, id string) int64 {
	t.Helper()
	p, err := s.Document(t.Context(), "acme", kind, id)
	if err != nil && err != store.ErrNotFound {
		t.Fatal(err)
	}
	return p.Revision
}
