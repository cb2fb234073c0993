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

// Documents keeps papers: documents beside runs and interrupts, as requests, votes, notices, grants and policies are. What a paper says is the business of the
// caller.
//
// The revision of a paper is its lock: a change that was prepared on an older revision is refused, together with everything else in its transaction. So a
// caller reads a paper, prepares the change and commits it; and starts again if the paper was changed meanwhile.
type Documents interface {
	// Document returns a paper, or ErrNotFound.
	Document(ctx context.Context, account string, kind DocumentKind, id string) (Document, error)

	// Papers returns papers of one kind, in the order of their ids.
	Documents(ctx context.Context, account string, kind DocumentKind, filter DocumentFilter) ([]Document, error)

	// Due returns papers of one kind, of all accounts, whose Next has passed, the oldest first. A request whose interrupt is no longer
	// pending is not among them.
	DueDocuments(ctx context.Context, kind DocumentKind, limit int) ([]Document, error)

	// Amend writes papers and audit lines without any other change. It returns ErrNotFound if a new paper belongs to a run that does not
	// exist, because it would never be deleted; or else ErrStale if a paper has another revision than the change was prepared on.
	CommitWrites(ctx context.Context, account string, beside Writes) error
}

// AuditLog keeps one chain of lines for each account. A line is added in the transaction of the change that it records, see [Writes], and never changes.
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

// Writes is what is written in the same transaction as a change. If a paper in it is stale the change is not made, and the call returns ErrStale. If it
// cannot be stored at all, see [Writes.Validate], the call returns ErrInvalid before anything else is looked at.
type Writes struct {
	Documents []DocumentChange
	// Audit are lines for the log of the account, each a JSON object; package internal/chain says how they become lines.
	Audit [][]byte
}

// IsEmpty reports whether there is nothing to write.
func (b Writes) IsEmpty() bool { return len(b.Documents) == 0 && len(b.Audit) == 0 }

// The longest names of papers, in bytes: an index has to hold them.
const (
	MaxDocumentKindLen = 100
	MaxDocumentIDLen   = 2000
)

// Check returns ErrInvalid for what not every store can write: a paper without an id or kind, with one that is too long, or the same paper twice; facts or an
// audit line that are no JSON objects.
func (b Writes) Validate() error {
	type name struct {
		kind DocumentKind
		id   string
	}
	seen := make(map[name]bool, len(b.Documents))
	for _, p := range b.Documents {
		called := name{p.Kind, p.ID}
		if !p.Kind.valid() || p.ID == "" || len(p.ID) > MaxDocumentIDLen || seen[called] || p.Index != nil && !isJSONObject(p.Index) {
			return ErrInvalid
		}
		seen[called] = true
	}
	for _, line := range b.Audit {
		if _, _, err := chain.Next(chain.Head{}, time.Time{}, line); err != nil || !utf8.Valid(line) {
			return ErrInvalid
		}
	}
	return nil
}

func (k DocumentKind) valid() bool {
	return k != "" && len(k) <= MaxDocumentKindLen && utf8.ValidString(string(k)) && !strings.ContainsRune(string(k), 0)
}

// isJSONObject says whether data is a JSON object, which is text.
func isJSONObject(data []byte) bool {
	return json.Valid(data) && utf8.Valid(data) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// Requests are the ids of the requests that are changed.
func (b Writes) RequestIDs() []string {
	ids := []string{}
	for _, p := range b.Documents {
		if p.Kind == RequestDocument {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// NewRuns are the runs that new papers belong to.
func (b Writes) RunsOfNewDocuments() []string {
	var runs []string
	for _, p := range b.Documents {
		if p.BaseRevision == 0 && p.Run != "" && !slices.Contains(runs, p.Run) {
			runs = append(runs, p.Run)
		}
	}
	return runs
}

// DocumentKind says what a paper is. Stores know one kind, [RequestDocument]: its interrupt cannot be decided without changing the request in the same
// transaction; and when its interrupt is withdrawn the request gets a new revision, by the change that comes with the withdrawal or, without one, by the store,
// which then only clears Next. All other kinds are up to the callers.
type DocumentKind string

// RequestDocument is the request that people see of an interrupt. Its id is that of the interrupt.
const RequestDocument DocumentKind = "request"

// Document is a document that is changed by revisions.
type Document struct {
	Account string
	Kind    DocumentKind
	ID      string
	// Run is the run that it belongs to, and with which it is forgotten; "" if to none.
	Run string
	// Revision is 1 when it is made and grows by one with each change.
	Revision int64
	// Body is the content, sealed by the caller. Facts, a JSON object, is what need not be secret: it is not sealed.
	Body, Index []byte
	// Next is when it is due, see [Documents.DueDocuments]; zero: never.
	DueAt            time.Time
	Created, Updated time.Time
}

// DocumentChange is the new content of a paper.
type DocumentChange struct {
	Kind DocumentKind
	ID   string
	Run  string // of a new one; it cannot change
	// Base is the revision that the change was prepared on; 0 makes the paper.
	BaseRevision int64
	Body, Index  []byte
	// Stored means that Body was read from the store and is written back. Package store/encrypted
	// encrypts it again only if the key has changed. Stores ignore the field.
	Stored bool
	DueAt  time.Time
	// Deadline, of a request, moves that of its interrupt, if that is pending after the change; zero leaves it where it is.
	InterruptDeadline time.Time
}

// DocumentFilter says which papers are wanted.
type DocumentFilter struct {
	// Run, if given, is the only one whose papers are wanted.
	Run string
	// After, if given, is the id of the last paper of the page before. Limit is the size of the page, 1000 at most; 0 is 100.
	After string
	Limit int
}
