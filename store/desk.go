package store

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/chain"
)

// Desk keeps papers: documents beside runs and interrupts, as requests, votes, notices, grants and policies are. What a paper says is the business of the
// caller.
//
// The revision of a paper is its lock: a change that was prepared on an older revision is refused, together with everything else in its transaction. So a
// caller reads a paper, prepares the change and commits it; and starts again if the paper was changed meanwhile.
type Desk interface {
	// Paper returns a paper, or ErrNotFound.
	Paper(ctx context.Context, account string, kind PaperKind, id string) (Paper, error)

	// Papers returns papers of one kind, in the order of their ids.
	Papers(ctx context.Context, account string, kind PaperKind, filter PaperFilter) ([]Paper, error)

	// Due returns papers of one kind, of all accounts, whose Next has passed, the oldest first. A request whose interrupt is no longer
	// pending is not among them.
	Due(ctx context.Context, kind PaperKind, limit int) ([]Paper, error)

	// Amend writes papers and audit lines without any other change. It returns ErrNotFound if a new paper belongs to a run that does not
	// exist, because it would never be deleted; or else ErrStale if a paper has another revision than the change was prepared on.
	Amend(ctx context.Context, account string, beside Beside) error
}

// AuditLog keeps one chain of lines for each account. A line is added in the transaction of the change that it records, see [Beside], and never changes.
type AuditLog interface {
	// AuditHead returns the end of an account's chain; the zero Head if it has no lines.
	AuditHead(ctx context.Context, account string) (chain.Head, error)

	// AuditAccounts returns the accounts that have a line, in an order of the store's own, and where to go on, or "" at the end. after is "" at
	// the beginning; limit is 1000 at most, and 0 is 1000.
	AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error)

	// AuditLines returns the lines behind a number, in order; limit is 1000 at most, and 0 is 1000.
	AuditLines(ctx context.Context, account string, after int64, limit int) ([]AuditLine, error)
}

// AuditLine is a line of an audit log, as it is stored.
type AuditLine struct {
	Seq int64
	Raw []byte
}

// Beside is what is written in the same transaction as a change. If a paper in it is stale the change is not made, and the call returns ErrStale. If it
// cannot be stored at all, see [Beside.Check], the call returns ErrKey before anything else is looked at.
type Beside struct {
	Papers []PaperChange
	// Audit are lines for the log of the account, each a JSON object; package internal/chain says how they become lines.
	Audit [][]byte
}

// IsEmpty reports whether there is nothing to write.
func (b Beside) IsEmpty() bool { return len(b.Papers) == 0 && len(b.Audit) == 0 }

// The longest names of papers, in bytes: an index has to hold them.
const (
	MaxPaperKind = 100
	MaxPaperID   = 2000
)

// Check returns ErrKey for what not every store can write: a paper without an id or kind, with one that is too long, or the same paper twice; facts or an
// audit line that are no JSON objects.
func (b Beside) Check() error {
	type name struct {
		kind PaperKind
		id   string
	}
	seen := make(map[name]bool, len(b.Papers))
	for _, p := range b.Papers {
		called := name{p.Kind, p.ID}
		if !p.Kind.isWord() || p.ID == "" || len(p.ID) > MaxPaperID || seen[called] || p.Facts != nil && !isObject(p.Facts) {
			return ErrKey
		}
		seen[called] = true
	}
	for _, line := range b.Audit {
		if _, _, err := chain.Next(chain.Head{}, time.Time{}, line); err != nil || !utf8.Valid(line) {
			return ErrKey
		}
	}
	return nil
}

func (k PaperKind) isWord() bool {
	return k != "" && len(k) <= MaxPaperKind && utf8.ValidString(string(k)) && !strings.ContainsRune(string(k), 0)
}

// isObject says whether data is a JSON object, which is text.
func isObject(data []byte) bool {
	return json.Valid(data) && utf8.Valid(data) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// Requests are the ids of the requests that are changed.
func (b Beside) Requests() []string {
	ids := []string{}
	for _, p := range b.Papers {
		if p.Kind == RequestPaper {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// NewRuns are the runs that new papers belong to.
func (b Beside) NewRuns() []string {
	var runs []string
	for _, p := range b.Papers {
		if p.Base == 0 && p.Run != "" && !slices.Contains(runs, p.Run) {
			runs = append(runs, p.Run)
		}
	}
	return runs
}

// PaperKind says what a paper is. Stores know one kind, [RequestPaper]: its interrupt cannot be decided without changing the request in the same
// transaction; and when its interrupt is withdrawn the request gets a new revision, by the change that comes with the withdrawal or, without one, by the store,
// which then only clears Next. All other kinds are up to the callers.
type PaperKind string

// RequestPaper is the request that people see of an interrupt. Its id is that of the interrupt.
const RequestPaper PaperKind = "request"

// Paper is a document that is changed by revisions.
type Paper struct {
	Account string
	Kind    PaperKind
	ID      string
	// Run is the run that it belongs to, and with which it is forgotten; "" if to none.
	Run string
	// Revision is 1 when it is made and grows by one with each change.
	Revision int64
	// Body is the content, sealed by the caller. Facts, a JSON object, is what need not be secret: it is not sealed.
	Body, Facts []byte
	// Next is when it is due, see [Desk.Due]; zero: never.
	Next             time.Time
	Created, Updated time.Time
}

// PaperChange is the new content of a paper.
type PaperChange struct {
	Kind PaperKind
	ID   string
	Run  string // of a new one; it cannot change
	// Base is the revision that the change was prepared on; 0 makes the paper.
	Base        int64
	Body, Facts []byte
	// Stored means that Body was read from the store and is written back. Package store/encrypted
	// encrypts it again only if the key has changed. Stores ignore the field.
	Stored bool
	Next   time.Time
	// Deadline, of a request, moves that of its interrupt, if that is pending after the change; zero leaves it where it is.
	Deadline time.Time
}

// PaperFilter says which papers are wanted.
type PaperFilter struct {
	// Run, if given, is the only one whose papers are wanted.
	Run string
	// After, if given, is the id of the last paper of the page before. Limit is the size of the page, 1000 at most; 0 is 100.
	After string
	Limit int
}
