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

// Desk keeps papers: what people need to decide, beyond the interrupts themselves. A request, a vote, a notice that has to go out, a grant, a
// policy: each is a paper with a revision, and what it says is the business of the caller.
//
// The revision is the lock: a change that was prepared on an older one is refused as a whole. So whoever changes a paper looks at it,
// works out what it has to be, and commits that; and begins again if somebody was faster.
type Desk interface {
	// Paper returns a paper, or ErrNotFound.
	Paper(ctx context.Context, account string, kind PaperKind, id string) (Paper, error)

	// Papers returns papers of one kind, in the order of their ids.
	Papers(ctx context.Context, account string, kind PaperKind, filter PaperFilter) ([]Paper, error)

	// Due returns papers of one kind, of all accounts, whose time has come, those that waited longest first. A request whose interrupt is no
	// longer pending is not among them.
	Due(ctx context.Context, kind PaperKind, limit int) ([]Paper, error)

	// Amend writes papers and audit lines that go with no other change. It returns ErrStale if a paper has another revision than the
	// change was prepared on, and before that ErrNotFound if a new one belongs to a run that is not there: nobody would ever forget it.
	Amend(ctx context.Context, account string, beside Beside) error
}

// AuditLog keeps one chain of lines for each account. Lines are added by the transactions of what they tell of, see [Beside], and never change.
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

// Beside is what is written in the transaction of a change, if that is made, and only then. A change whose papers are stale is not made
// at all: the call returns ErrStale. One whose papers or lines nobody can write is ErrKey, whatever else would become of it.
type Beside struct {
	Papers []PaperChange
	// Audit are lines for the log of the account, each a JSON object; package internal/chain says how they become lines.
	Audit [][]byte
}

// The longest names of papers, in bytes: they are listed by them.
const (
	MaxPaperKind = 100
	MaxPaperID   = 2000
)

// Check returns ErrKey for what not every store can write: a paper without a name, with one that is too long, or twice; facts or a line that
// are no JSON objects.
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

// PaperKind says what a paper is. Kinds are up to the callers, except that the interrupt of a request cannot be decided without changing the
// request, and that a request moves on to a new revision when its interrupt is withdrawn: by the change that comes with the withdrawal, or
// else as it is, but without a time.
type PaperKind string

// RequestPaper is the life of an interrupt among people. Its id is that of the interrupt.
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
	// Body is what it says, sealed by the caller. Facts, a JSON object that is not sealed, is what may be counted.
	Body, Facts []byte
	// Next is when the clock has something to do with it; zero: never.
	Next             time.Time
	Created, Updated time.Time
}

// PaperChange is a paper as it has to be.
type PaperChange struct {
	Kind PaperKind
	ID   string
	Run  string // of a new one; it cannot change
	// Base is the revision that the change was prepared on; 0 makes the paper.
	Base        int64
	Body, Facts []byte
	Next        time.Time
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
