package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/store"
)

const (
	paperColumns = `p.account, p.kind, p.id, p.run, p.revision, p.body, p.facts, p.next_at, p.created_at, p.updated_at`

	paperSQL = `SELECT ` + paperColumns + ` FROM papers AS p WHERE p.account = ?1 AND p.kind = ?2 AND p.id = ?3`

	papersSQL = `
SELECT ` + paperColumns + ` FROM papers AS p
WHERE p.account = ?1 AND p.kind = ?2 AND p.id > ?3 ORDER BY p.id LIMIT ?4`

	papersOfKindSQL = `
SELECT ` + paperColumns + ` FROM papers AS p INDEXED BY papers_of_run
WHERE p.account = ?1 AND p.kind = ?2 AND p.id > ?3 AND p.run = ?5 AND length(p.run) > 0 ORDER BY p.id LIMIT ?4`

	papersOfSQL = `
SELECT ` + paperColumns + ` FROM papers AS p INDEXED BY papers_of_run
WHERE p.account = ?1 AND p.run = ?2 AND length(p.run) > 0 ORDER BY p.kind, p.id`

	// duePapersSQL passes over requests that nobody can decide any more.
	duePapersSQL = `
SELECT ` + paperColumns + ` FROM papers AS p INDEXED BY papers_due
WHERE p.kind = ?1 AND p.next_at IS NOT NULL AND p.next_at <= ?2
  AND (p.kind <> 'request' OR EXISTS (SELECT 1 FROM interrupts AS i WHERE i.account = p.account AND i.id = p.id AND i.state = 'pending'))
ORDER BY p.next_at, p.account, p.id LIMIT ?3`

	addPaperSQL = `
INSERT INTO papers (account, kind, id, run, revision, body, facts, next_at, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?8)
ON CONFLICT DO NOTHING`

	paperExistsSQL = `SELECT 1 FROM papers WHERE account = ?1 AND kind = ?2 AND id = ?3`

	//mutate:sqlite-document-revision
	amendSQL = `
UPDATE papers SET revision = revision + 1, body = ?5, facts = ?6, next_at = ?7, updated_at = ?8
WHERE account = ?1 AND kind = ?2 AND id = ?3 AND revision = ?4`

	// moveOnSQL is for a request whose interrupt was withdrawn: what was prepared on it before is stale. One that is changed with the
	// withdrawal itself moves on by that.
	moveOnSQL = `
UPDATE papers SET revision = revision + 1, next_at = NULL, updated_at = ?3 WHERE account = ?1 AND kind = 'request' AND id = ?2`

	moveDeadlineSQL = `UPDATE interrupts SET deadline = ?3 WHERE account = ?1 AND id = ?2 AND state = 'pending'`

	auditHeadSQL = `SELECT seq, hash FROM audit WHERE account = ?1 ORDER BY seq DESC LIMIT 1`
	// auditAccountsSQL goes from one account to the next, past all that it has.
	auditAccountsSQL = `
WITH RECURSIVE found (account) AS (
    SELECT min(account) FROM audit WHERE account >= ?1
    UNION ALL SELECT (SELECT min(a.account) FROM audit AS a WHERE a.account > found.account) FROM found WHERE found.account IS NOT NULL
) SELECT account FROM found WHERE account IS NOT NULL LIMIT ?2`
	auditLinesSQL = `SELECT seq, raw FROM audit WHERE account = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`
	recordLineSQL = `INSERT INTO audit (account, seq, raw, hash) VALUES (?1, ?2, ?3, ?4)`

	forgetPapersSQL = `DELETE FROM papers INDEXED BY papers_of_run WHERE account = ?1 AND run = ?2 AND length(run) > 0`
)

// word is text, where what callers choose is bytes.
type word string

// paperDest takes a paper, or none: all of its columns may be NULL.
func paperDest(p *store.Paper) []any {
	return []any{
		zero(&p.Account), zero(&p.Kind), zero(&p.ID), zero(&p.Run), zero(&p.Revision), sealed{&p.Body}, text{&p.Facts}, moment{&p.Next}, moment{&p.Created}, moment{&p.Updated},
	}
}

func scanPaper(row scanner) (p store.Paper, err error) {
	err = row.Scan(paperDest(&p)...)
	return p, err
}

// beside writes what goes with a change. If it is stale, the transaction must not be committed: part of it may be written.
func (t turn) beside(ctx context.Context, account string, beside store.Beside) error {
	for _, p := range beside.Papers {
		if err := t.amend(ctx, account, p); err != nil {
			return err
		}
	}
	return t.record(ctx, account, beside.Audit)
}

func (t turn) amend(ctx context.Context, account string, p store.PaperChange) error {
	var facts, next any
	if p.Facts != nil {
		facts = word(p.Facts)
	}
	if !p.Next.IsZero() {
		next = ceilMicro(p.Next)
	}
	changed := int64(0)
	var err error
	if p.Base != 0 {
		changed, err = t.exec(ctx, amendSQL, account, p.Kind, p.ID, p.Base, p.Body, facts, next, t.now)
	} else if exists, failure := t.exists(ctx, paperExistsSQL, account, p.Kind, p.ID); failure != nil || exists {
		err = failure
	} else {
		changed, err = t.exec(ctx, addPaperSQL, account, p.Kind, p.ID, p.Run, p.Body, facts, next, t.now)
	}
	if err == nil && changed == 0 {
		err = store.ErrStale
	}
	if err == nil && p.Kind == store.RequestPaper && !p.Deadline.IsZero() {
		_, err = t.exec(ctx, moveDeadlineSQL, account, p.ID, ceilMicro(p.Deadline))
	}
	return err
}

// stale says whether something else than what papers were prepared on is there.
func (t turn) stale(ctx context.Context, account string, papers []store.PaperChange) (bool, error) {
	for _, p := range papers {
		revision := int64(0)
		kept, err := t.paper(ctx, account, p.Kind, p.ID)
		if err != nil {
			return false, err
		}
		if kept != nil {
			revision = kept.Revision
		}
		if p.Base != revision {
			return true, nil
		}
	}
	return false, nil
}

// ceilMicro rounds up: nothing is due before its time.
func ceilMicro(at time.Time) int64 { return at.Add(time.Microsecond - 1).UnixMicro() }

// record adds lines to the log of an account. Nobody else can write before the commit, so its end stays where it is.
func (t turn) record(ctx context.Context, account string, lines [][]byte) error {
	if len(lines) == 0 { //mutate:sqlite-audit-written
		return nil
	}
	head, err := t.auditHead(ctx, account)
	if err != nil {
		return err
	}
	for _, object := range lines {
		raw, next, err := chain.Next(head, atMicro(t.now), object)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, recordLineSQL, account, next.Seq, raw, next.Hash[:]); err != nil {
			return err
		}
		head = next
	}
	return nil
}

func (t turn) auditHead(ctx context.Context, account string) (head chain.Head, err error) {
	var hash []byte
	found, err := t.find(ctx, []any{&head.Seq, &hash}, auditHeadSQL, account)
	if err == nil && found {
		copy(head.Hash[:], hash)
	}
	return head, err
}

// bring is for a decision: it must have the change of each request that it decides.
func (t turn) bring(ctx context.Context, d store.Decision) error {
	changed := d.Beside.Requests()
	var decided []string
	for _, a := range d.Answers {
		decided = append(decided, a.Interrupt)
		if slices.Contains(changed, a.Interrupt) {
			continue
		}
		if exists, err := t.exists(ctx, paperExistsSQL, d.Account, store.RequestPaper, a.Interrupt); err != nil {
			return err
		} else if exists { //mutate:sqlite-decision-has-request
			return store.ErrStale
		}
	}
	return t.besideDecided(ctx, d.Account, d.Beside, decided...)
}

// besideDecided writes what goes with decisions. It comes before them, and does not move the deadlines of what is decided.
func (t turn) besideDecided(ctx context.Context, account string, beside store.Beside, decided ...string) error {
	beside.Papers = slices.Clone(beside.Papers)
	for n, p := range beside.Papers {
		if p.Kind == store.RequestPaper && slices.Contains(decided, p.ID) {
			beside.Papers[n].Deadline = time.Time{}
		}
	}
	return t.beside(ctx, account, beside)
}

// Paper returns a paper; see [store.Desk].
func (s *Store) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	p, err := s.look().paper(ctx, account, kind, id)
	if err == nil && p == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Paper{}, s.fail(ctx, "look up a paper in", err)
	}
	return *p, nil
}

// paper is nil if there is none.
func (t turn) paper(ctx context.Context, account string, kind store.PaperKind, id string) (*store.Paper, error) {
	found, err := list(ctx, t, scanPaper, paperSQL, account, kind, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Papers returns papers of one kind; see [store.Desk].
func (s *Store) Papers(ctx context.Context, account string, kind store.PaperKind, f store.PaperFilter) ([]store.Paper, error) {
	text, values := papersSQL, []any{account, kind, f.After, page(f.Limit, 100)}
	if f.Run != "" {
		text, values = papersOfKindSQL, append(values, f.Run)
	}
	papers, err := list(ctx, s.look(), scanPaper, text, values...)
	if err != nil {
		return nil, s.fail(ctx, "list papers of", err)
	}
	return papers, nil
}

// Due returns papers whose time has come; see [store.Desk].
func (s *Store) Due(ctx context.Context, kind store.PaperKind, limit int) ([]store.Paper, error) {
	t := s.look()
	papers, err := list(ctx, t, scanPaper, duePapersSQL, kind, t.now, max(limit, 0))
	if err != nil {
		return nil, s.fail(ctx, "list papers that are due in", err)
	}
	return papers, nil
}

// Amend writes papers and audit lines; see [store.Desk].
func (s *Store) Amend(ctx context.Context, account string, beside store.Beside) error {
	if err := beside.Check(); err != nil {
		return err
	}
	_, err := do(ctx, s, "amend papers of", func(ctx context.Context, t turn) (struct{}, error) {
		for _, run := range beside.NewRuns() {
			var status store.Status
			if there, err := t.find(ctx, []any{&status}, statusSQL, account, run); err != nil || !there {
				return struct{}{}, cmp.Or(err, store.ErrNotFound)
			}
		}
		return struct{}{}, t.beside(ctx, account, beside)
	})
	return err
}

// AuditHead returns the end of an account's chain; see [store.AuditLog].
func (s *Store) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	head, err := s.look().auditHead(ctx, account)
	if err != nil {
		return chain.Head{}, s.fail(ctx, "look up the audit log of", err)
	}
	return head, nil
}

// AuditAccounts returns the accounts that have a line; see [store.AuditLog].
func (s *Store) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	accounts, err = list(ctx, s.look(), func(row scanner) (account string, err error) {
		err = row.Scan(&account)
		return account, err
	}, auditAccountsSQL, after, page(limit, 1000))
	if err != nil {
		return nil, "", s.fail(ctx, "list the audit logs of", err)
	}
	if len(accounts) == page(limit, 1000) {
		next = accounts[len(accounts)-1] + "\x00" // nothing is between the two
	}
	return accounts, next, nil
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (s *Store) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := list(ctx, s.look(), scanLine, auditLinesSQL, account, after, page(limit, 1000))
	if err != nil {
		return nil, s.fail(ctx, "read the audit log of", err)
	}
	return lines, nil
}

func scanLine(row scanner) (line store.AuditLine, err error) {
	err = row.Scan(&line.Seq, sealed{&line.Raw})
	return line, err
}
