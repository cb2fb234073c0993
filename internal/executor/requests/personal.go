package requests

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Personal keeps what belongs to one person and to no request: saved views and passkeys.
type Personal struct {
	store *encrypted.Store
	docs  *docs.Docs
}

// NewPersonal returns the data of people.
func NewPersonal(store *encrypted.Store, docs *docs.Docs) *Personal {
	return &Personal{store: store, docs: docs}
}

// SavedView is a search that a person has saved.
type SavedView struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Query string `json:"query"`
}

// SavedViews returns the saved views of a person.
func (p *Personal) SavedViews(ctx context.Context, account, person string) ([]SavedView, error) {
	views, _, err := p.readViews(ctx, account, person)
	return views, err
}

func (p *Personal) readViews(ctx context.Context, account, person string) (views []SavedView, revision int64, err error) {
	doc, err := p.store.Document(ctx, account, docs.SavedViewsKind, person)
	if docs.IsNotFound(err) {
		return nil, 0, nil
	}
	if err == nil {
		err = p.docs.DecodeBody(doc, &views)
	}
	return views, doc.Revision, err
}

// ChangeViews replaces the saved views of a person by those that change returns. It may call change
// several times. An error of change is returned, and nothing is written.
func (p *Personal) ChangeViews(ctx context.Context, account, person string, change func([]SavedView) ([]SavedView, error)) error {
	return retry.WhileStale(ctx, func() error {
		views, revision, err := p.readViews(ctx, account, person)
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
		return p.docs.WriteDocument(ctx, account, store.DocumentChange{Kind: docs.SavedViewsKind, ID: person, BaseRevision: revision, Body: body})
	})
}
