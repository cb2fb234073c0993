package requests

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/store"
)

// SavedView is a search that a person has saved.
type SavedView struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Query string `json:"query"`
}

// SavedViews returns the saved views of a person.
func (s *Service) SavedViews(ctx context.Context, account, person string) ([]SavedView, error) {
	views, _, err := s.readViews(ctx, account, person)
	return views, err
}

func (s *Service) readViews(ctx context.Context, account, person string) (views []SavedView, revision int64, err error) {
	doc, err := s.store.Document(ctx, account, docs.SavedViewsKind, person)
	if docs.IsNotFound(err) {
		return nil, 0, nil
	}
	if err == nil {
		err = s.docs.DecodeBody(doc, &views)
	}
	return views, doc.Revision, err
}

// ChangeViews replaces the saved views of a person by those that change returns. It may call change
// several times. An error of change is returned, and nothing is written.
func (s *Service) ChangeViews(ctx context.Context, account, person string, change func([]SavedView) ([]SavedView, error)) error {
	return retry.WhileStale(ctx, func() error {
		views, revision, err := s.readViews(ctx, account, person)
		if err != nil {
			return err
		}
		if views, err = change(views); err != nil {
			return err
		}
		body, err := json.Marshal(views)
		if err != nil {
			return err
		}
		return s.docs.WriteDocument(ctx, account, store.DocumentChange{Kind: docs.SavedViewsKind, ID: person, BaseRevision: revision, Body: body})
	})
}
