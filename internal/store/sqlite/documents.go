package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	documentColumns = `p.account, p.kind, p.id, p.run, p.revision, p.body, p.facts, p.next_at, p.created_at, p.updated_at`

	documentSQL = `SELECT ` + documentColumns + ` FROM papers AS p WHERE p.account = ?1 AND p.kind = ?2 AND p.id = ?3`

	documentsSQL = `
SELECT ` + documentColumns + ` FROM papers AS p
WHERE p.account = ?1 AND p.kind = ?2 AND p.id > ?3 ORDER BY p.id LIMIT ?4`

	documentsOfRunByKindSQL = `
SELECT ` + documentColumns + ` FROM papers AS p INDEXED BY papers_of_run
WHERE p.account = ?1 AND p.kind = ?2 AND p.id > ?3 AND p.run = ?5 AND length(p.run) > 0 ORDER BY p.id LIMIT ?4`

	documentsOfRunSQL = `
SELECT ` + documentColumns + ` FROM papers AS p INDEXED BY papers_of_run
WHERE p.account = ?1 AND p.run = ?2 AND length(p.run) > 0 ORDER BY p.kind, p.id`

	// dueDocumentsSQL skips requests whose interrupt is no longer pending.
	dueDocumentsSQL = `
SELECT ` + documentColumns + ` FROM papers AS p INDEXED BY papers_due
WHERE p.kind = ?1 AND p.next_at IS NOT NULL AND p.next_at <= ?2
  AND (p.kind <> 'request' OR EXISTS (SELECT 1 FROM interrupts AS i WHERE i.account = p.account AND i.id = p.id AND i.state = 'pending'))
ORDER BY p.next_at, p.account, p.id LIMIT ?3`

	addDocumentSQL = `
INSERT INTO papers (account, kind, id, run, revision, body, facts, next_at, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?8)
ON CONFLICT DO NOTHING`

	documentExistsSQL = `SELECT 1 FROM papers WHERE account = ?1 AND kind = ?2 AND id = ?3`

	//mutate:sqlite-document-revision
	updateDocumentSQL = `
UPDATE papers SET revision = revision + 1, body = ?5, facts = ?6, next_at = ?7, updated_at = ?8
WHERE account = ?1 AND kind = ?2 AND id = ?3 AND revision = ?4`

	// reviseWithdrawnRequestSQL gives the request of a withdrawn interrupt a new revision, so that
	// prepared changes become stale. A request that is changed with the withdrawal gets its
	// revision from that change.
	reviseWithdrawnRequestSQL = `
UPDATE papers SET revision = revision + 1, next_at = NULL, updated_at = ?3 WHERE account = ?1 AND kind = 'request' AND id = ?2`

	setDeadlineSQL = `UPDATE interrupts SET deadline = ?3 WHERE account = ?1 AND id = ?2 AND state = 'pending'`

	auditHeadSQL = `SELECT seq, hash FROM audit WHERE account = ?1 ORDER BY seq DESC LIMIT 1`
	// auditAccountsSQL jumps from one account to the next in the index.
	auditAccountsSQL = `
WITH RECURSIVE found (account) AS (
    SELECT min(account) FROM audit WHERE account >= ?1
    UNION ALL SELECT (SELECT min(a.account) FROM audit AS a WHERE a.account > found.account) FROM found WHERE found.account IS NOT NULL
) SELECT account FROM found WHERE account IS NOT NULL LIMIT ?2`
	auditLinesSQL  = `SELECT seq, raw FROM audit WHERE account = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`
	appendAuditSQL = `INSERT INTO audit (account, seq, raw, hash) VALUES (?1, ?2, ?3, ?4)`

	deleteDocumentsSQL = `DELETE FROM papers INDEXED BY papers_of_run WHERE account = ?1 AND run = ?2 AND length(run) > 0`
)

// textArg is an argument that stays text; strings from callers are stored as bytes.
type textArg string

// documentDest scans a document, or none: all of its columns may be NULL.
func documentDest(p *store.Document) []any {
	return []any{
		orZero(&p.Account), orZero(&p.Kind), orZero(&p.ID), orZero(&p.Run), orZero(&p.Revision), bytesScanner{&p.Body}, textScanner{&p.Index}, timeScanner{&p.DueAt}, timeScanner{&p.Created}, timeScanner{&p.Updated},
	}
}

func scanDocument(row rowScanner) (p store.Document, err error) {
	err = row.Scan(documentDest(&p)...)
	return p, err
}

// applyWrites applies the writes of a change. If it returns ErrStale, the transaction must not be
// committed, because a part may have been written.
func (t txn) applyWrites(ctx context.Context, account string, writes store.Writes) error {
	for _, p := range writes.Documents {
		if err := t.writeDocument(ctx, account, p); err != nil {
			return err
		}
	}
	return t.appendAudit(ctx, account, writes.Audit)
}

func (t txn) writeDocument(ctx context.Context, account string, p store.DocumentChange) error {
	var facts, next any
	if p.Index != nil {
		facts = textArg(p.Index)
	}
	if !p.DueAt.IsZero() {
		next = microsUp(p.DueAt)
	}
	changed := int64(0)
	var err error
	if p.BaseRevision != 0 {
		changed, err = t.exec(ctx, updateDocumentSQL, account, p.Kind, p.ID, p.BaseRevision, p.Body, facts, next, t.now)
	} else if exists, failure := t.exists(ctx, documentExistsSQL, account, p.Kind, p.ID); failure != nil || exists {
		err = failure
	} else {
		changed, err = t.exec(ctx, addDocumentSQL, account, p.Kind, p.ID, p.Run, p.Body, facts, next, t.now)
	}
	if err == nil && changed == 0 {
		err = store.ErrStale
	}
	if err == nil && p.Kind == store.RequestDocument && !p.InterruptDeadline.IsZero() {
		_, err = t.exec(ctx, setDeadlineSQL, account, p.ID, microsUp(p.InterruptDeadline))
	}
	return err
}

// stale reports whether a document does not have the expected revision.
func (t txn) stale(ctx context.Context, account string, documents []store.DocumentChange) (bool, error) {
	for _, p := range documents {
		revision := int64(0)
		kept, err := t.document(ctx, account, p.Kind, p.ID)
		if err != nil {
			return false, err
		}
		if kept != nil {
			revision = kept.Revision
		}
		if p.BaseRevision != revision {
			return true, nil
		}
	}
	return false, nil
}

// microsUp rounds up, so that nothing is due too early.
func microsUp(at time.Time) int64 { return at.Add(time.Microsecond - 1).UnixMicro() }

// appendAudit adds lines to the audit log of an account. There is no other writer before the
// commit, so the head of the chain does not change.
func (t txn) appendAudit(ctx context.Context, account string, lines [][]byte) error {
	if len(lines) == 0 { //mutate:sqlite-audit-written
		return nil
	}
	head, err := t.auditHead(ctx, account)
	if err != nil {
		return err
	}
	for _, object := range lines {
		raw, next, err := chain.Next(head, timeOf(t.now), object)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, appendAuditSQL, account, next.Seq, raw, next.Hash[:]); err != nil {
			return err
		}
		head = next
	}
	return nil
}

func (t txn) auditHead(ctx context.Context, account string) (head chain.Head, err error) {
	var hash []byte
	found, err := t.queryRow(ctx, []any{&head.Seq, &hash}, auditHeadSQL, account)
	if err == nil && found {
		copy(head.Hash[:], hash)
	}
	return head, err
}

// requireRequestChanges checks that a decision changes the request of each interrupt that it
// decides.
func (t txn) requireRequestChanges(ctx context.Context, d store.Decision) error {
	changed := d.Writes.RequestIDs()
	var decided []string
	for _, a := range d.Answers {
		decided = append(decided, a.Interrupt)
		if slices.Contains(changed, a.Interrupt) {
			continue
		}
		if exists, err := t.exists(ctx, documentExistsSQL, d.Account, store.RequestDocument, a.Interrupt); err != nil {
			return err
		} else if exists { //mutate:sqlite-decision-has-request
			return store.ErrStale
		}
	}
	return t.writeWithDecisions(ctx, d.Account, d.Writes, decided...)
}

// writeWithDecisions applies the writes of a decision. It runs before the interrupts are decided
// and does not change their deadlines.
func (t txn) writeWithDecisions(ctx context.Context, account string, writes store.Writes, decided ...string) error {
	writes.Documents = slices.Clone(writes.Documents)
	for n, p := range writes.Documents {
		if p.Kind == store.RequestDocument && slices.Contains(decided, p.ID) {
			writes.Documents[n].InterruptDeadline = time.Time{}
		}
	}
	return t.applyWrites(ctx, account, writes)
}

// Document returns a document; see [store.Documents].
func (s *Store) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	p, err := s.view().document(ctx, account, kind, id)
	if err == nil && p == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Document{}, s.fail(ctx, "read a document in", err)
	}
	return *p, nil
}

// document returns a document, or nil if there is none.
func (t txn) document(ctx context.Context, account string, kind store.DocumentKind, id string) (*store.Document, error) {
	found, err := queryAll(ctx, t, scanDocument, documentSQL, account, kind, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Documents returns documents of one kind; see [store.Documents].
func (s *Store) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) ([]store.Document, error) {
	text, values := documentsSQL, []any{account, kind, f.After, pageSize(f.Limit, 100)}
	if f.Run != "" {
		text, values = documentsOfRunByKindSQL, append(values, f.Run)
	}
	documents, err := queryAll(ctx, s.view(), scanDocument, text, values...)
	if err != nil {
		return nil, s.fail(ctx, "list documents of", err)
	}
	return documents, nil
}

// DueDocuments returns documents whose DueAt has passed; see [store.Documents].
func (s *Store) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	t := s.view()
	documents, err := queryAll(ctx, t, scanDocument, dueDocumentsSQL, kind, t.now, max(limit, 0))
	if err != nil {
		return nil, s.fail(ctx, "list due documents in", err)
	}
	return documents, nil
}

// CommitWrites writes documents and audit lines; see [store.Documents].
func (s *Store) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	_, err := update(ctx, s, "write documents of", func(ctx context.Context, t txn) (struct{}, error) {
		for _, run := range writes.RunsOfNewDocuments() {
			var status store.Status
			if there, err := t.queryRow(ctx, []any{&status}, statusSQL, account, run); err != nil || !there {
				return struct{}{}, cmp.Or(err, store.ErrNotFound)
			}
		}
		*t.changed = append(*t.changed, store.Key{Account: account})
		return struct{}{}, t.applyWrites(ctx, account, writes)
	})
	return err
}

// AuditHead returns the head of an account's chain; see [store.AuditLog].
func (s *Store) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	head, err := s.view().auditHead(ctx, account)
	if err != nil {
		return chain.Head{}, s.fail(ctx, "read the audit log of", err)
	}
	return head, nil
}

// AuditAccounts returns the accounts that have an audit line; see [store.AuditLog].
func (s *Store) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	accounts, err = queryAll(ctx, s.view(), func(row rowScanner) (account string, err error) {
		err = row.Scan(&account)
		return account, err
	}, auditAccountsSQL, after, pageSize(limit, 1000))
	if err != nil {
		return nil, "", s.fail(ctx, "list the audit logs of", err)
	}
	if len(accounts) == pageSize(limit, 1000) {
		next = accounts[len(accounts)-1] + "\x00" // there is no account between the two
	}
	return accounts, next, nil
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (s *Store) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := queryAll(ctx, s.view(), scanAuditLine, auditLinesSQL, account, after, pageSize(limit, 1000))
	if err != nil {
		return nil, s.fail(ctx, "read the audit log of", err)
	}
	return lines, nil
}

func scanAuditLine(row rowScanner) (line store.AuditLine, err error) {
	err = row.Scan(&line.Seq, bytesScanner{&line.Raw})
	return line, err
}
