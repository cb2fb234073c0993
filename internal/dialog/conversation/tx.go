package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

// tx collects the documents that are written in the transaction of a step.
type tx struct {
	h         *Handler
	account   string
	documents []*txDocument
	final     *Report // what a conversation that is deleted has to be counted with
}

type txDocument struct {
	kind     store.DocumentKind
	id       string
	revision int64
	value    any
}

// open returns the document of this transaction as a *T; it is read once.
func open[T any](ctx context.Context, tx *tx, kind store.DocumentKind, id string) (*T, error) {
	for _, d := range tx.documents {
		if d.kind == kind && d.id == id {
			return d.value.(*T), nil
		}
	}
	value, revision, err := read[T](ctx, tx.h, tx.account, kind, id)
	if err != nil {
		return nil, err
	}
	tx.documents = append(tx.documents, &txDocument{kind, id, revision, value})
	return value, nil
}

// read returns a document, or a zero one with revision 0.
func read[T any](ctx context.Context, h *Handler, account string, kind store.DocumentKind, id string) (*T, int64, error) {
	value := new(T)
	doc, err := h.config.Store.Document(ctx, account, kind, id)
	if errors.Is(err, store.ErrNotFound) {
		return value, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return value, doc.Revision, h.decode(doc, value)
}

func (tx *tx) writes() (store.Writes, error) {
	var w store.Writes
	for _, d := range tx.documents {
		var body []byte // empty for one to delete
		if d.value != nil {
			var err error
			if body, err = json.Marshal(d.value); err != nil {
				return w, err
			}
		}
		w.Documents = append(w.Documents, store.DocumentChange{Kind: d.kind, ID: d.id, BaseRevision: d.revision, Body: body, Index: []byte("{}")})
	}
	return w, nil
}

// known reads the entities and the remembered answers of a user, if the step needs them.
func (tx *tx) known(ctx context.Context, s *stored, states map[string]RunState) (k Known, err error) {
	if slices.ContainsFunc(s.Questions, func(a *Asking) bool { return a.Status == Collecting }) {
		if k.Entities, err = tx.h.Entities(ctx, tx.account, s.User); err != nil {
			return k, err
		}
	}
	for _, state := range states {
		if slices.ContainsFunc(state.Open, func(q OpenQuestion) bool { return q.Question.Remember != nil }) {
			memory, _, err := read[[]Remembered](ctx, tx.h, tx.account, MemoryDocument, userID(s.User))
			if err != nil {
				return k, err
			}
			k.Memory = *memory
			break
		}
	}
	return k, nil
}

// userID returns the part of a document id for a user. It does not reveal the user, because ids are
// not encrypted.
func userID(user string) string { return ident.Derive("user", user) }

func (tx *tx) saveEntity(ctx context.Context, s *stored, e Entity) error {
	doc, err := open[Entity](ctx, tx, EntityDocument, userID(s.User)+"/"+e.ID)
	if err == nil {
		*doc = e
	}
	return err
}

// saveFacts stores facts with an entity, and removes them from the entity that they were stored
// with before.
func (tx *tx) saveFacts(ctx context.Context, s *stored, e SaveFacts, now time.Time) error {
	own := func(f StoredFact) bool { return f.Conversation == s.ID && f.Question == e.Question }
	if e.Instead != "" {
		before, err := open[[]StoredFact](ctx, tx, FactsDocument, userID(s.User)+"/"+e.Instead)
		if err != nil {
			return err
		}
		*before = slices.DeleteFunc(*before, own)
	}
	facts, err := open[[]StoredFact](ctx, tx, FactsDocument, userID(s.User)+"/"+e.Entity)
	if err != nil {
		return err
	}
	*facts = slices.DeleteFunc(*facts, own)
	for _, f := range e.Facts {
		*facts = append(*facts, StoredFact{Name: f.Name, Value: f.Value, Conversation: s.ID, Question: e.Question, At: now})
	}
	return nil
}

func (tx *tx) saveMemory(ctx context.Context, s *stored, r Remembered, now time.Time) error {
	memory, err := open[[]Remembered](ctx, tx, MemoryDocument, userID(s.User))
	if err != nil {
		return err
	}
	*memory = slices.DeleteFunc(*memory, func(old Remembered) bool { return old.Key == r.Key || !now.Before(old.ExpiresAt) })
	*memory = append(*memory, r)
	return nil
}

// Entities returns the entities that were created for a user.
func (h *Handler) Entities(ctx context.Context, account, user string) ([]Entity, error) {
	var all []Entity
	prefix := userID(user) + "/"
	for after := prefix; ; {
		page, err := h.config.Store.Documents(ctx, account, EntityDocument, store.DocumentFilter{After: after, Limit: 100})
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, doc := range page {
			if !strings.HasPrefix(doc.ID, prefix) {
				return all, nil
			}
			var e Entity
			if err := h.decode(doc, &e); err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		after = page[len(page)-1].ID
	}
}

// Facts returns the facts that were stored with an entity.
func (h *Handler) Facts(ctx context.Context, account, user, entity string) ([]StoredFact, error) {
	facts, _, err := read[[]StoredFact](ctx, h, account, FactsDocument, userID(user)+"/"+entity)
	if err != nil {
		return nil, err
	}
	return *facts, nil
}
