package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	documentColumns = `p.account, p.kind, p.id, p.run, p.revision, p.body, p.facts, p.next_at, p.created_at, p.updated_at`

	// requestKey is the key of the request of the interrupt i.
	requestKey = `sha256(sha256(i.account) || sha256('request'::bytea) || sha256(i.id))`

	// requestCondition selects the requests p of interrupts i of the account.
	requestCondition = `p.key = sha256(sha256($1) || sha256('request'::bytea) || sha256(i.id)) AND p.account = $1`

	// reviseWithdrawnRequests gives requests of withdrawn interrupts a new revision, so that
	// prepared changes become stale. A request that is changed with the withdrawal gets its
	// revision from that change.
	reviseWithdrawnRequests = `UPDATE papers AS p SET revision = p.revision + 1, next_at = NULL, updated_at = clock.now`

	// markChanged tells the following statements that the change was made. It lasts until the end
	// of the transaction.
	markChanged = `set_config('fermata.made', 'on', true)`

	// writesSQL applies the writes of a change that was made; writesOfRunSQL those of a change of
	// the locked run.
	//mutate:postgres-audit-only-of-changes
	writesSQL = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE current_setting('fermata.made', true) = 'on'`
	//mutate:postgres-audit-needs-fence
	writesOfRunSQL  = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE ` + hasLockedRun
	commitWritesSQL = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	// keyShareRunsSQL prevents the deletion of these runs until the transaction ends. It does not
	// conflict with other locks of a run.
	keyShareRunsSQL = `
SELECT FROM runs WHERE key = ANY (ARRAY(SELECT sha256(sha256($1) || sha256(run)) FROM unnest($2::bytea[]) AS named (run))) AND account = $1
ORDER BY key FOR KEY SHARE`

	// commitWritesOfRunsSQL writes only if all runs of new documents exist.
	commitWritesOfRunsSQL = commitWritesSQL + `
WHERE NOT EXISTS (
    SELECT FROM unnest($11::bytea[]) AS named (run)
    WHERE NOT EXISTS (SELECT FROM runs WHERE key = sha256(sha256($1) || sha256(named.run)) AND account = $1))`

	// staleState is the SQLSTATE of write_beside for stale writes and for a decision without its
	// request.
	staleState = "FM001"

	documentSQL = `
SELECT ` + documentColumns + ` FROM papers AS p WHERE p.key = sha256(sha256($1) || sha256($2) || sha256($3)) AND p.account = $1`

	documentsSQL = `
SELECT ` + documentColumns + ` FROM papers AS p
WHERE sha256(p.account) = sha256($1) AND p.account = $1 AND p.kind = $2 AND p.id > $3 ORDER BY p.id LIMIT $4`

	documentsOfRunByKindSQL = `
SELECT ` + documentColumns + ` FROM papers AS p
WHERE p.run_key = sha256(sha256($1) || sha256($5)) AND p.account = $1 AND p.kind = $2 AND p.id > $3 ORDER BY p.id LIMIT $4`

	documentsOfRunSQL = `
SELECT ` + documentColumns + ` FROM papers AS p WHERE p.run_key = ` + keyOfArgs + ` AND p.account = $1 ORDER BY p.kind, p.id`

	// dueDocumentsSQL skips requests whose interrupt is no longer pending.
	dueDocumentsSQL = `
SELECT ` + documentColumns + ` FROM papers AS p
LEFT JOIN interrupts AS i ON i.key = sha256(sha256(p.account) || sha256(p.id)) AND i.account = p.account AND p.kind = 'request'::bytea
WHERE p.kind = $1 AND p.next_at <= statement_timestamp() AND (p.kind <> 'request'::bytea OR i.state = 'pending')
ORDER BY p.next_at, p.account, p.id LIMIT $2`

	auditHeadSQL = `SELECT seq, chain_hash(raw) FROM audit WHERE key = sha256($1) AND account = $1 ORDER BY seq DESC LIMIT 1`
	// auditAccountsSQL is ordered by hash, because accounts may be too long for an index. It jumps
	// from the first line of an account to that of the next.
	auditAccountsSQL = `
WITH RECURSIVE found AS (
    (SELECT key, account, 1 AS n FROM audit WHERE key > $1 ORDER BY key LIMIT 1)
    UNION ALL
    SELECT next.key, next.account, found.n + 1
    FROM found CROSS JOIN LATERAL (SELECT key, account FROM audit WHERE key > found.key ORDER BY key LIMIT 1) AS next
    WHERE found.n < $2
)
SELECT account FROM found`
	auditLinesSQL = `SELECT seq, raw FROM audit WHERE key = sha256($1) AND account = $1 AND seq > $2 ORDER BY seq LIMIT $3`
)

func documentDest(p *store.Document) []any {
	return []any{
		nameScanner{&p.Account}, kindScanner{&p.Kind}, nameScanner{&p.ID}, nameScanner{&p.Run}, intScanner{&p.Revision}, &p.Body, &p.Index, timeScanner{&p.DueAt}, timeScanner{&p.Created}, timeScanner{&p.Updated},
	}
}

func scanDocument(rows pgx.CollectableRow) (p store.Document, err error) {
	err = rows.Scan(documentDest(&p)...)
	return p, err
}

// kindScanner scans a document kind.
type kindScanner struct{ to *store.DocumentKind }

// ScanBytes implements pgtype.BytesScanner.
func (k kindScanner) ScanBytes(data []byte) error {
	*k.to = store.DocumentKind(data)
	return nil
}

// intScanner scans a number; NULL is 0.
type intScanner struct{ to *int64 }

// ScanInt64 implements pgtype.Int64Scanner.
func (c intScanner) ScanInt64(n pgtype.Int8) error {
	*c.to = n.Int64
	return nil
}

// applyWrites adds the writes of a change that marks itself as made.
func (t *txn) applyWrites(account string, writes store.Writes) error {
	return t.applyWritesWith(writesSQL, account, writes)
}

// applyWritesOfRun adds the writes of a change of the locked run.
func (t *txn) applyWritesOfRun(account string, writes store.Writes) error {
	return t.applyWritesWith(writesOfRunSQL, account, writes)
}

func (t *txn) applyWritesWith(text, account string, writes store.Writes, more ...any) error {
	if err := writes.Validate(); err != nil {
		return err
	}
	if writes.IsEmpty() {
		return nil
	}
	documents := slices.SortedFunc(slices.Values(writes.Documents), func(a, b store.DocumentChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	kinds, ids, runs, bodies := [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}
	bases, facts, nexts, deadlines := []int64{}, []*string{}, []pgtype.Timestamptz{}, []pgtype.Timestamptz{}
	for _, p := range documents {
		kinds, ids, runs = append(kinds, []byte(p.Kind)), append(ids, []byte(p.ID)), append(runs, []byte(p.Run))
		bases, bodies = append(bases, p.BaseRevision), append(bodies, p.Body)
		var known *string
		if p.Index != nil {
			text := string(p.Index)
			known = &text
		}
		facts, nexts, deadlines = append(facts, known), append(nexts, microsUp(p.DueAt)), append(deadlines, microsUp(p.InterruptDeadline))
	}
	lines := writes.Audit
	if lines == nil {
		lines = [][]byte{}
	}
	t.queue(text, append([]any{account, kinds, ids, runs, bases, bodies, facts, nexts, deadlines, lines}, more...)...)
	return nil
}

// microsUp rounds up, so that nothing is due too early. The zero time is NULL.
func microsUp(at time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: at.Add(time.Microsecond - 1).Truncate(time.Microsecond), Valid: !at.IsZero()}
}

// Document returns a document; see [store.Documents].
func (s *Store) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (p store.Document, err error) {
	var t txn
	found := false
	t.queryRow(&found, documentDest(&p), documentSQL, account, string(kind), id)
	if err := s.view(ctx, "read a document of", &t); err != nil {
		return store.Document{}, err
	}
	if !found {
		return store.Document{}, store.ErrNotFound
	}
	return p, nil
}

// Documents returns documents of one kind; see [store.Documents].
func (s *Store) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) (documents []store.Document, err error) {
	var t txn
	text, values := documentsSQL, []any{account, string(kind), f.After, pageSize(f.Limit, 100)}
	if f.Run != "" {
		text, values = documentsOfRunByKindSQL, append(values, f.Run)
	}
	queryAll(&t, &documents, scanDocument, text, values...)
	return documents, s.view(ctx, "list documents of", &t)
}

// DueDocuments returns documents whose DueAt has passed; see [store.Documents].
func (s *Store) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) (documents []store.Document, err error) {
	var t txn
	queryAll(&t, &documents, scanDocument, dueDocumentsSQL, string(kind), max(limit, 0))
	return documents, s.view(ctx, "list due documents in", &t)
}

// CommitWrites writes documents and audit lines; see [store.Documents].
func (s *Store) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	var t txn
	written := true
	if runs := bytesColumn(writes.RunsOfNewDocuments()); len(runs) == 0 {
		if err := t.applyWritesWith(commitWritesSQL, account, writes); err != nil {
			return err
		}
	} else {
		t.queue(keyShareRunsSQL, account, runs)
		if err := t.applyWritesWith(commitWritesOfRunsSQL, account, writes, runs); err != nil {
			return err
		}
		last := t.batch.QueuedQueries[len(t.batch.QueuedQueries)-1]
		last.Exec(func(tag pgconn.CommandTag) error {
			written = tag.RowsAffected() > 0
			return nil
		})
	}
	err := s.update(ctx, "write documents of", &t)
	if err == nil && !written {
		return store.ErrNotFound
	}
	if err == nil {
		s.publish(account, "")
	}
	return err
}

// AuditHead returns the head of an account's chain; see [store.AuditLog].
func (s *Store) AuditHead(ctx context.Context, account string) (head chain.Head, err error) {
	var t txn
	var hash []byte
	found := false
	t.queryRow(&found, []any{&head.Seq, &hash}, auditHeadSQL, account)
	if err := s.view(ctx, "read the audit log of", &t); err != nil {
		return chain.Head{}, err
	}
	copy(head.Hash[:], hash)
	return head, nil
}

// AuditAccounts returns the accounts that have an audit line; see [store.AuditLog].
func (s *Store) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	behind, err := hex.DecodeString(after)
	if err != nil {
		return nil, "", store.ErrInvalid
	}
	var t txn
	queryAll(&t, &accounts, func(rows pgx.CollectableRow) (account string, err error) {
		err = rows.Scan(nameScanner{&account})
		return account, err
	}, auditAccountsSQL, behind, pageSize(limit, 1000))
	if err := s.view(ctx, "list the audit logs of", &t); err != nil {
		return nil, "", err
	}
	if len(accounts) == pageSize(limit, 1000) {
		key := sha256.Sum256([]byte(accounts[len(accounts)-1]))
		next = hex.EncodeToString(key[:])
	}
	return accounts, next, nil
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (s *Store) AuditLines(ctx context.Context, account string, after int64, limit int) (lines []store.AuditLine, err error) {
	var t txn
	queryAll(&t, &lines, func(rows pgx.CollectableRow) (line store.AuditLine, err error) {
		err = rows.Scan(&line.Seq, &line.Raw)
		return line, err
	}, auditLinesSQL, account, after, pageSize(limit, 1000))
	return lines, s.view(ctx, "read the audit log of", &t)
}
