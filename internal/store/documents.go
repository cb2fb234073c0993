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

// Documents stores revisioned records such as requests, votes, notices, grants and policies. The
// store does not interpret their content.
//
// The revision of a document is an optimistic lock. A change that was prepared on an older revision
// is rejected together with everything else in its transaction. A caller reads a document, prepares
// the change and commits it, and starts again after ErrStale.
type Documents interface {
	// Document returns a document, or ErrNotFound.
	Document(ctx context.Context, account string, kind DocumentKind, id string) (Document, error)

	// Documents returns documents of one kind, ordered by id.
	Documents(ctx context.Context, account string, kind DocumentKind, filter DocumentFilter) ([]Document, error)

	// DueDocuments returns documents of one kind, of all accounts, whose DueAt has passed, oldest
	// first. It leaves out requests whose interrupt is no longer pending.
	DueDocuments(ctx context.Context, kind DocumentKind, limit int) ([]Document, error)

	// CommitWrites writes documents and audit lines without any other change. It returns
	// ErrNotFound if a new document belongs to a run that does not exist, because the document
	// would never be deleted. Otherwise it returns ErrStale if a document does not have the
	// revision that its change was prepared on.
	CommitWrites(ctx context.Context, account string, writes Writes) error
}

// Writes are documents and audit lines that are written in the same transaction as a change. If a
// document is stale, the change is not made and the call returns ErrStale. If the writes are
// invalid, see [Writes.Validate], the call returns ErrInvalid before it checks anything else.
type Writes struct {
	Documents []DocumentChange
	// Audit holds lines for the audit log of the account, each a JSON object. Package
	// internal/chain adds the chain fields.
	Audit [][]byte
}

// IsEmpty reports whether there is nothing to write.
func (w Writes) IsEmpty() bool { return len(w.Documents) == 0 && len(w.Audit) == 0 }

// The maximum length of document names in bytes. They must fit into an index entry.
const (
	MaxDocumentKindLen = 100
	MaxDocumentIDLen   = 2000
)

// Validate returns ErrInvalid for writes that not every store can hold: a document without an id or
// kind, an id or kind that is too long, the same document twice, or an index or audit line that is
// not a JSON object.
func (w Writes) Validate() error {
	type name struct {
		kind DocumentKind
		id   string
	}
	seen := make(map[name]bool, len(w.Documents))
	for _, doc := range w.Documents {
		key := name{doc.Kind, doc.ID}
		if !doc.Kind.valid() || doc.ID == "" || len(doc.ID) > MaxDocumentIDLen || seen[key] || doc.Index != nil && !isJSONObject(doc.Index) {
			return ErrInvalid
		}
		seen[key] = true
	}
	for _, line := range w.Audit {
		if _, _, err := chain.Next(chain.Head{}, time.Time{}, line); err != nil || !utf8.Valid(line) {
			return ErrInvalid
		}
	}
	return nil
}

func (k DocumentKind) valid() bool {
	return k != "" && len(k) <= MaxDocumentKindLen && utf8.ValidString(string(k)) && !strings.ContainsRune(string(k), 0)
}

// isJSONObject reports whether data is a JSON object in valid UTF-8.
func isJSONObject(data []byte) bool {
	return json.Valid(data) && utf8.Valid(data) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// RequestIDs returns the ids of the requests that are changed.
func (w Writes) RequestIDs() []string {
	ids := []string{}
	for _, doc := range w.Documents {
		if doc.Kind == RequestDocument {
			ids = append(ids, doc.ID)
		}
	}
	return ids
}

// RunsOfNewDocuments returns the runs that new documents belong to.
func (w Writes) RunsOfNewDocuments() []string {
	var runs []string
	for _, doc := range w.Documents {
		if doc.BaseRevision == 0 && doc.Run != "" && !slices.Contains(runs, doc.Run) {
			runs = append(runs, doc.Run)
		}
	}
	return runs
}

// Postpones reports whether the writes, applied with the expiry of an interrupt, postpone that
// expiry because they give the request another deadline.
func (w Writes) Postpones(interrupt string) bool {
	for _, doc := range w.Documents {
		if doc.Kind == RequestDocument && doc.ID == interrupt {
			return !doc.InterruptDeadline.IsZero()
		}
	}
	return false
}

// DocumentKind is the type of a document. Stores know only [RequestDocument]: its interrupt cannot
// be decided without changing the request in the same transaction. When the interrupt is withdrawn,
// the request gets a new revision, either by the change that comes with the withdrawal or else by
// the store, which then only clears DueAt. All other kinds are defined by the callers.
type DocumentKind string

// RequestDocument is the kind of the request that people see for an interrupt. Its id is the id of
// the interrupt.
const RequestDocument DocumentKind = "request"

// Document is a revisioned record.
type Document struct {
	Account string
	Kind    DocumentKind
	ID      string
	// Run is the run that the document belongs to and is deleted with; "" for none.
	Run string
	// Revision is 1 after creation and grows by one with each change.
	Revision int64
	// Body is the content, sealed by the caller. Index is a JSON object with the fields that need
	// not be secret; it is not sealed.
	Body, Index []byte
	// DueAt is the time at which the document is due, see [Documents.DueDocuments]; zero: never.
	DueAt            time.Time
	Created, Updated time.Time
}

// DocumentChange is the new content of a document.
type DocumentChange struct {
	Kind DocumentKind
	ID   string
	Run  string // of a new document; it cannot change
	// BaseRevision is the revision that the change was prepared on; 0 creates the document.
	BaseRevision int64
	Body, Index  []byte
	// Stored means that Body was read from the store and is written back. Package store/encrypted
	// encrypts it again only if the key has changed. Stores ignore the field.
	Stored bool
	DueAt  time.Time
	// InterruptDeadline, of a request, sets the deadline of its interrupt, if that is pending after
	// the change. Zero keeps the deadline.
	InterruptDeadline time.Time
}

// DocumentFilter selects documents.
type DocumentFilter struct {
	// Run restricts the result to the documents of one run if it is not empty.
	Run string
	// After is the id of the last document of the previous page, or "". Limit is the page size, at
	// most 1000; 0 means 100.
	After string
	Limit int
}
