package executor

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/fermata-go/fermata/store"
)

// A paper has a body, which is sealed, and facts, which are not: those that other processes and analytics look at.

// readBody opens the body of a paper into v.
func (e *Executor) decodeBody(p store.Document, v any) error {
	data, err := e.store.Body(p)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return err
}

// readFacts reads a paper, and its facts into facts. One that is not there has the revision 0.
func (e *Executor) readIndex(ctx context.Context, account string, kind store.DocumentKind, id string, facts any) (store.Document, error) {
	paper, err := e.store.Document(ctx, account, kind, id)
	if isNotFound(err) {
		return store.Document{Account: account, Kind: kind, ID: id}, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Index, facts)
	}
	return paper, err
}

// fileFacts files the change of a paper, with its facts.
func (c *unitOfWork) addIndexed(paper store.DocumentChange, facts any) (err error) {
	if paper.Index, err = json.Marshal(facts); err == nil {
		c.Documents = append(c.Documents, paper)
	}
	return err
}

// note writes the facts of a paper and when it is due next; never, if that is zero. It returns ErrStale if another process has changed the paper.
func (e *Executor) updateIndex(ctx context.Context, paper *store.Document, facts any, next time.Time) error {
	change, err := e.indexChange(*paper, facts, next)
	if err == nil {
		err = e.writeDocument(ctx, paper.Account, change)
	}
	if err == nil {
		paper.Revision++
	}
	return err
}

func (e *Executor) indexChange(paper store.Document, facts any, next time.Time) (change store.DocumentChange, err error) {
	change = e.unchanged(paper)
	change.DueAt = next
	change.Index, err = json.Marshal(facts)
	return change, err
}

// unchanged returns the change of a document that writes it back as it is. Its body is encrypted again if the key has changed since: written back as it was, it
// could not be read once the old key is gone.
func (e *Executor) unchanged(p store.Document) store.DocumentChange {
	return store.DocumentChange{Kind: p.Kind, ID: p.ID, BaseRevision: p.Revision, Body: p.Body, Stored: true, Index: p.Index, DueAt: p.DueAt}
}

// amend changes one paper, and nothing beside it.
func (e *Executor) writeDocument(ctx context.Context, account string, change store.DocumentChange) error {
	return e.store.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{change}})
}

// papers goes through the papers of a kind, in the order of their ids. filter.Limit is how many are read at a time.
func (e *Executor) documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) iter.Seq2[store.Document, error] {
	return paged(filter.Limit, func(last *store.Document) ([]store.Document, error) {
		if last != nil {
			filter.After = last.ID
		}
		return e.store.Documents(ctx, account, kind, filter)
	})
}

// paged goes through a list of which next reads the page behind an entry; nil is the beginning.
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
