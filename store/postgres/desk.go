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
	"github.com/fermata-go/fermata/store"
)

const (
	paperColumns = `p.account, p.kind, p.id, p.run, p.revision, p.body, p.facts, p.next_at, p.created_at, p.updated_at`

	// requestKey is the key of the request of the interrupt i.
	requestKey = `sha256(sha256(i.account) || sha256('request'::bytea) || sha256(i.id))`

	// theRequest are papers p of interrupts i of the account.
	theRequest = `p.key = sha256(sha256($1) || sha256('request'::bytea) || sha256(i.id)) AND p.account = $1`

	// moveOn is for requests whose interrupts are withdrawn: what was prepared on them before is stale. Those that are changed with the
	// withdrawal itself move on by that.
	moveOn = `UPDATE papers AS p SET revision = p.revision + 1, next_at = NULL, updated_at = clock.now`

	// changeIsMade tells the statements that follow that what they go with was done. It lasts as long as the transaction.
	changeIsMade = `set_config('fermata.made', 'on', true)`

	// besideSQL writes what goes with a change that is made, besideRunSQL what goes with one of the run in hand.
	//mutate:postgres-audit-only-of-changes
	besideSQL = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE current_setting('fermata.made', true) = 'on'`
	//mutate:postgres-audit-needs-fence
	besideRunSQL = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE ` + somethingInHand
	amendSQL     = `SELECT write_beside($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	// keepRunsSQL lets nobody forget these runs before the transaction is over. Whoever has one in hand does not mind.
	keepRunsSQL = `
SELECT FROM runs WHERE key = ANY (ARRAY(SELECT sha256(sha256($1) || sha256(run)) FROM unnest($2::bytea[]) AS named (run))) AND account = $1
ORDER BY key FOR KEY SHARE`

	// amendOfSQL writes only if all of the runs are there that new papers belong to.
	amendOfSQL = amendSQL + `
WHERE NOT EXISTS (
    SELECT FROM unnest($11::bytea[]) AS named (run)
    WHERE NOT EXISTS (SELECT FROM runs WHERE key = sha256(sha256($1) || sha256(named.run)) AND account = $1))`

	// staleState is the code by which write_beside refuses, and a decision without its request.
	staleState = "FM001"

	paperSQL = `
SELECT ` + paperColumns + ` FROM papers AS p WHERE p.key = sha256(sha256($1) || sha256($2) || sha256($3)) AND p.account = $1`

	papersSQL = `
SELECT ` + paperColumns + ` FROM papers AS p
WHERE sha256(p.account) = sha256($1) AND p.account = $1 AND p.kind = $2 AND p.id > $3 ORDER BY p.id LIMIT $4`

	papersOfKindSQL = `
SELECT ` + paperColumns + ` FROM papers AS p
WHERE p.run_key = sha256(sha256($1) || sha256($5)) AND p.account = $1 AND p.kind = $2 AND p.id > $3 ORDER BY p.id LIMIT $4`

	papersOfSQL = `
SELECT ` + paperColumns + ` FROM papers AS p WHERE p.run_key = ` + thisKey + ` AND p.account = $1 ORDER BY p.kind, p.id`

	// duePapersSQL passes over requests that nobody can decide any more.
	duePapersSQL = `
SELECT ` + paperColumns + ` FROM papers AS p
LEFT JOIN interrupts AS i ON i.key = sha256(sha256(p.account) || sha256(p.id)) AND i.account = p.account AND p.kind = 'request'::bytea
WHERE p.kind = $1 AND p.next_at <= statement_timestamp() AND (p.kind <> 'request'::bytea OR i.state = 'pending')
ORDER BY p.next_at, p.account, p.id LIMIT $2`

	auditHeadSQL = `SELECT seq, chain_hash(raw) FROM audit WHERE key = sha256($1) AND account = $1 ORDER BY seq DESC LIMIT 1`
	// auditAccountsSQL is in the order of their hashes: accounts may be longer than what fits into an index. It goes from the first line of an
	// account to that of the next, and looks at no other.
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

func paperDest(p *store.Paper) []any {
	return []any{
		name{&p.Account}, kindName{&p.Kind}, name{&p.ID}, name{&p.Run}, count{&p.Revision}, &p.Body, &p.Facts, moment{&p.Next}, moment{&p.Created}, moment{&p.Updated},
	}
}

func scanPaper(rows pgx.CollectableRow) (p store.Paper, err error) {
	err = rows.Scan(paperDest(&p)...)
	return p, err
}

// kindName takes a kind of paper.
type kindName struct{ to *store.PaperKind }

// ScanBytes implements pgtype.BytesScanner.
func (k kindName) ScanBytes(data []byte) error {
	*k.to = store.PaperKind(data)
	return nil
}

// count takes a number; NULL is none.
type count struct{ to *int64 }

// ScanInt64 implements pgtype.Int64Scanner.
func (c count) ScanInt64(n pgtype.Int8) error {
	*c.to = n.Int64
	return nil
}

// beside adds what goes with a change that says so when it is made.
func (t *turn) beside(account string, beside store.Beside) error {
	return t.besideIf(besideSQL, account, beside)
}

// besideRun adds what goes with a change of the run in hand.
func (t *turn) besideRun(account string, beside store.Beside) error {
	return t.besideIf(besideRunSQL, account, beside)
}

func (t *turn) besideIf(text, account string, beside store.Beside, more ...any) error {
	if err := beside.Check(); err != nil {
		return err
	}
	if beside.IsEmpty() {
		return nil
	}
	papers := slices.SortedFunc(slices.Values(beside.Papers), func(a, b store.PaperChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	kinds, ids, runs, bodies := [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}
	bases, facts, nexts, deadlines := []int64{}, []*string{}, []pgtype.Timestamptz{}, []pgtype.Timestamptz{}
	for _, p := range papers {
		kinds, ids, runs = append(kinds, []byte(p.Kind)), append(ids, []byte(p.ID)), append(runs, []byte(p.Run))
		bases, bodies = append(bases, p.Base), append(bodies, p.Body)
		var known *string
		if p.Facts != nil {
			text := string(p.Facts)
			known = &text
		}
		facts, nexts, deadlines = append(facts, known), append(nexts, ceilMicro(p.Next)), append(deadlines, ceilMicro(p.Deadline))
	}
	lines := beside.Audit
	if lines == nil {
		lines = [][]byte{}
	}
	t.queue(text, append([]any{account, kinds, ids, runs, bases, bodies, facts, nexts, deadlines, lines}, more...)...)
	return nil
}

// ceilMicro rounds up: nothing is due before its time. No time is NULL.
func ceilMicro(at time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: at.Add(time.Microsecond - 1).Truncate(time.Microsecond), Valid: !at.IsZero()}
}

// Paper returns a paper; see [store.Desk].
func (s *Store) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (p store.Paper, err error) {
	var t turn
	found := false
	t.find(&found, paperDest(&p), paperSQL, account, string(kind), id)
	if err := s.look(ctx, "look up a paper of", &t); err != nil {
		return store.Paper{}, err
	}
	if !found {
		return store.Paper{}, store.ErrNotFound
	}
	return p, nil
}

// Papers returns papers of one kind; see [store.Desk].
func (s *Store) Papers(ctx context.Context, account string, kind store.PaperKind, f store.PaperFilter) (papers []store.Paper, err error) {
	var t turn
	text, values := papersSQL, []any{account, string(kind), f.After, page(f.Limit, 100)}
	if f.Run != "" {
		text, values = papersOfKindSQL, append(values, f.Run)
	}
	list(&t, &papers, scanPaper, text, values...)
	return papers, s.look(ctx, "list papers of", &t)
}

// Due returns papers whose time has come; see [store.Desk].
func (s *Store) Due(ctx context.Context, kind store.PaperKind, limit int) (papers []store.Paper, err error) {
	var t turn
	list(&t, &papers, scanPaper, duePapersSQL, string(kind), max(limit, 0))
	return papers, s.look(ctx, "list papers that are due in", &t)
}

// Amend writes papers and audit lines; see [store.Desk].
func (s *Store) Amend(ctx context.Context, account string, beside store.Beside) error {
	var t turn
	written := true
	if runs := bytesOf(beside.NewRuns()); len(runs) == 0 {
		if err := t.besideIf(amendSQL, account, beside); err != nil {
			return err
		}
	} else {
		t.queue(keepRunsSQL, account, runs)
		if err := t.besideIf(amendOfSQL, account, beside, runs); err != nil {
			return err
		}
		last := t.batch.QueuedQueries[len(t.batch.QueuedQueries)-1]
		last.Exec(func(tag pgconn.CommandTag) error {
			written = tag.RowsAffected() > 0
			return nil
		})
	}
	err := s.do(ctx, "amend papers of", &t)
	if err == nil && !written {
		return store.ErrNotFound
	}
	return err
}

// AuditHead returns the end of an account's chain; see [store.AuditLog].
func (s *Store) AuditHead(ctx context.Context, account string) (head chain.Head, err error) {
	var t turn
	var hash []byte
	found := false
	t.find(&found, []any{&head.Seq, &hash}, auditHeadSQL, account)
	if err := s.look(ctx, "look up the audit log of", &t); err != nil {
		return chain.Head{}, err
	}
	copy(head.Hash[:], hash)
	return head, nil
}

// AuditAccounts returns the accounts that have a line; see [store.AuditLog].
func (s *Store) AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error) {
	behind, err := hex.DecodeString(after)
	if err != nil {
		return nil, "", store.ErrKey
	}
	var t turn
	list(&t, &accounts, func(rows pgx.CollectableRow) (account string, err error) {
		err = rows.Scan(name{&account})
		return account, err
	}, auditAccountsSQL, behind, page(limit, 1000))
	if err := s.look(ctx, "list the audit logs of", &t); err != nil {
		return nil, "", err
	}
	if len(accounts) == page(limit, 1000) {
		key := sha256.Sum256([]byte(accounts[len(accounts)-1]))
		next = hex.EncodeToString(key[:])
	}
	return accounts, next, nil
}

// AuditLines returns lines of an account's chain; see [store.AuditLog].
func (s *Store) AuditLines(ctx context.Context, account string, after int64, limit int) (lines []store.AuditLine, err error) {
	var t turn
	list(&t, &lines, func(rows pgx.CollectableRow) (line store.AuditLine, err error) {
		err = rows.Scan(&line.Seq, &line.Raw)
		return line, err
	}, auditLinesSQL, account, after, page(limit, 1000))
	return lines, s.look(ctx, "read the audit log of", &t)
}
