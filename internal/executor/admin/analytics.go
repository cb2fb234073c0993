package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// Analytics answers what came of the requests of an account. It reads all of them, page by page,
// and keeps what is counted of them.
func (ad *Admin) Analytics(ctx context.Context, account string, query analytics.Query) (analytics.Report, error) {
	now, err := ad.store.Now(ctx)
	if err != nil {
		return analytics.Report{}, err
	}
	query.Retention = ad.config.Retention
	c := analytics.NewCollector(query, now)
	if err := forEachIndex(ad.docs.Documents(ctx, account, store.RequestDocument, indexPage), c.AddRequest); err != nil {
		return analytics.Report{}, err
	}
	if err := forEachIndex(ad.docs.Documents(ctx, account, docs.VoteKind, indexPage), c.AddVote); err != nil {
		return analytics.Report{}, err
	}
	return c.Report(), nil
}

// indexPage reads few papers at a time: they come with their bodies, which may be long and are of
// no use here.
var indexPage = store.DocumentFilter{Limit: 250}

// forEachIndex hands the facts of papers to a function.
func forEachIndex[T any](papers iter.Seq2[store.Document, error], take func(T)) error {
	for p, err := range papers {
		if err != nil {
			return err
		}
		var facts T
		if err := json.Unmarshal(p.Index, &facts); err != nil {
			return fmt.Errorf("executor: the facts of %s %s: %w", p.Kind, p.ID, err)
		}
		take(facts)
	}
	return nil
}
