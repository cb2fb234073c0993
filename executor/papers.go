package executor

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/fermata-go/fermata/store"
)

// A paper has a body, which is sealed, and facts, which are not: those that other processes and analytics look at.

// sealPaper makes the body of a paper.
func (e *Executor) sealPaper(account string, kind store.PaperKind, id string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return e.shut(label(account, store.SealedPaper, id, string(kind)), data), nil
}

func (e *Executor) openPaper(p store.Paper) ([]byte, error) {
	return e.openPart(p.Account, store.SealedPaper, p.ID, string(p.Kind), p.Body)
}

// readBody opens the body of a paper into v.
func (e *Executor) readBody(p store.Paper, v any) error {
	data, err := e.openPaper(p)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return err
}

// readFacts reads a paper, and its facts into facts. One that is not there has the revision 0.
func (e *Executor) readFacts(ctx context.Context, account string, kind store.PaperKind, id string, facts any) (store.Paper, error) {
	paper, err := e.store.Paper(ctx, account, kind, id)
	if isNotFound(err) {
		return store.Paper{Account: account, Kind: kind, ID: id}, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Facts, facts)
	}
	return paper, err
}

// fileFacts files the change of a paper, with its facts.
func (c *filing) fileFacts(paper store.PaperChange, facts any) (err error) {
	if paper.Facts, err = json.Marshal(facts); err == nil {
		c.Papers = append(c.Papers, paper)
	}
	return err
}

// note writes the facts of a paper and when it is due next; never, if that is zero. It returns ErrStale if another process has changed the paper.
func (e *Executor) note(ctx context.Context, paper *store.Paper, facts any, next time.Time) error {
	change, err := e.noted(*paper, facts, next)
	if err == nil {
		err = e.amend(ctx, paper.Account, change)
	}
	if err == nil {
		paper.Revision++
	}
	return err
}

func (e *Executor) noted(paper store.Paper, facts any, next time.Time) (change store.PaperChange, err error) {
	change = e.again(paper)
	change.Next = next
	change.Facts, err = json.Marshal(facts)
	return change, err
}

// again is the change of a paper that says the same as before. If the key was changed since the paper was read its body is sealed with the new one: written
// back as it was, nobody could open it once the old key is gone.
func (e *Executor) again(p store.Paper) store.PaperChange {
	change := store.PaperChange{Kind: p.Kind, ID: p.ID, Base: p.Revision, Body: p.Body, Facts: p.Facts, Next: p.Next}
	if p.Body == nil || e.config.Box.Current(p.Body) {
		return change
	}
	place := label(p.Account, store.SealedPaper, p.ID, string(p.Kind))
	if data, err := e.config.Box.Open(place, p.Body); err == nil {
		change.Body = e.shut(place, data)
	}
	return change
}

// amend changes one paper, and nothing beside it.
func (e *Executor) amend(ctx context.Context, account string, change store.PaperChange) error {
	return e.store.Amend(ctx, account, store.Beside{Papers: []store.PaperChange{change}})
}

// papers goes through the papers of a kind, in the order of their ids. filter.Limit is how many are read at a time.
func (e *Executor) papers(ctx context.Context, account string, kind store.PaperKind, filter store.PaperFilter) iter.Seq2[store.Paper, error] {
	return paged(filter.Limit, func(last *store.Paper) ([]store.Paper, error) {
		if last != nil {
			filter.After = last.ID
		}
		return e.store.Papers(ctx, account, kind, filter)
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
