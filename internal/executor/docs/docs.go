// Package docs reads and writes documents: stored, revisioned and encrypted records with an index
// of unencrypted fields.
package docs

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/fermata-go/fermata/internal/store/encrypted"

	"github.com/fermata-go/fermata/internal/store"
)

// Docs reads and writes documents.
type Docs struct {
	Store     *encrypted.Store
	MetaCache MetaCache
}

// New returns the documents in a store.
func New(store *encrypted.Store) *Docs { return &Docs{Store: store} }

// A paper has a body, which is sealed, and facts, which are not: those that other processes and
// analytics look at.

// DecodeBody decrypts the body of a document and decodes it into v.
func (ds *Docs) DecodeBody(p store.Document, v any) error {
	data, err := ds.Store.Body(p)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return err
}

// ReadIndex reads a document, and decodes its index. A document that does not exist has the
// revision 0.
func (ds *Docs) ReadIndex(ctx context.Context, account string, kind store.DocumentKind, id string, facts any) (store.Document, error) {
	paper, err := ds.Store.Document(ctx, account, kind, id)
	if IsNotFound(err) {
		return store.Document{Account: account, Kind: kind, ID: id}, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Index, facts)
	}
	return paper, err
}

// UpdateIndex writes the index of a document and when it is due next; never, if that is zero. It
// returns ErrStale if another process has changed the document.
func (ds *Docs) UpdateIndex(ctx context.Context, paper *store.Document, facts any, next time.Time) error {
	change, err := ds.IndexChange(*paper, facts, next)
	if err == nil {
		err = ds.WriteDocument(ctx, paper.Account, change)
	}
	if err == nil {
		paper.Revision++
	}
	return err
}

// IndexChange returns the change that UpdateIndex writes.
func (ds *Docs) IndexChange(paper store.Document, facts any, next time.Time) (change store.DocumentChange, err error) {
	change = ds.Unchanged(paper)
	change.DueAt = next
	change.Index, err = json.Marshal(facts)
	return change, err
}

// Unchanged returns the change of a document that writes it back as it is. Its body is encrypted
// again if the key has changed since: written back as it was, it could not be read once the old key
// is gone.
func (ds *Docs) Unchanged(p store.Document) store.DocumentChange {
	return store.DocumentChange{Kind: p.Kind, ID: p.ID, BaseRevision: p.Revision, Body: p.Body, Stored: true, Index: p.Index, DueAt: p.DueAt}
}

// WriteDocument changes one document.
func (ds *Docs) WriteDocument(ctx context.Context, account string, change store.DocumentChange) error {
	return ds.Store.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{change}})
}

// Documents iterates over the documents of a kind, in the order of their ids. filter.Limit is the
// page size.
func (ds *Docs) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) iter.Seq2[store.Document, error] {
	return paged(filter.Limit, func(last *store.Document) ([]store.Document, error) {
		if last != nil {
			filter.After = last.ID
		}
		return ds.Store.Documents(ctx, account, kind, filter)
	})
}

// paged iterates over a list. next reads the page after an entry; nil is the beginning.
func paged[T any](limit int, next func(last *T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := next(nil); ; page, err = next(&page[len(page)-1]) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
		}
	}
}
