package executor

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// How many runs and papers are read at a time. Rulings are fewer: each may be as large as the arguments of an action.
const (
	runsAtOnce    = 1000
	papersAtOnce  = 1000
	rulingsAtOnce = 100
)

// View is a run as its account may see it.
type View struct {
	store.Run // without what is sealed
	// Outcome is what it came to, or waits for; nil while it is under way.
	Outcome fermata.Outcome
	// Interrupts is everything that it asked.
	Interrupts []QuestionView
}

// QuestionView is a question as its account may see it.
type QuestionView struct {
	store.Asked // without what is sealed
	Data        json.RawMessage
	Answer      json.RawMessage
	// Request is what people have before them; nil if nobody was asked.
	Request *desk.Request
	// Unreadable says that data, answer or request cannot be opened. Only lists have such questions.
	Unreadable bool
}

// List returns runs of an account, the newest first.
func (e *Executor) List(ctx context.Context, account string, filter store.Filter) ([]store.Run, error) {
	return e.store.List(ctx, account, filter)
}

// Look returns the newest run of a state key, with what it came to and what it asked.
func (e *Executor) Look(ctx context.Context, account, stateKey string) (View, error) {
	run, err := e.find(ctx, account, stateKey)
	if err != nil {
		return View{}, err
	}
	view := View{Run: run}
	view.Ref, view.Input, view.Run.Outcome = nil, nil, nil
	if view.Outcome, err = e.stands(run, true); err != nil {
		return View{}, err
	}
	asked, err := e.store.Interrupts(ctx, account, run.ID)
	if err != nil {
		return View{}, err
	}
	for _, i := range asked {
		q, err := e.openQuestion(store.Asked{Interrupt: i, StateKey: run.StateKey, Provider: run.Provider, Graph: run.Graph})
		if err != nil {
			return View{}, err
		}
		view.Interrupts = append(view.Interrupts, q)
	}
	return view, nil
}

// Questions returns what the runs of an account ask, the oldest first.
func (e *Executor) Questions(ctx context.Context, account string, filter store.AskedFilter) ([]QuestionView, error) {
	asked, err := e.store.Asked(ctx, account, filter)
	if err != nil {
		return nil, err
	}
	list := make([]QuestionView, len(asked))
	for n, a := range asked {
		list[n], err = e.openQuestion(a)
		list[n].Unreadable = err != nil
	}
	return list, nil
}

// Question returns one question, or store.ErrNotFound.
func (e *Executor) Question(ctx context.Context, account, id string) (QuestionView, error) {
	asked, err := e.store.Question(ctx, account, id)
	if err != nil {
		return QuestionView{}, err
	}
	return e.openQuestion(asked)
}

// Pending counts the open questions of an account, but no further than to limit.
func (e *Executor) Pending(ctx context.Context, account string, limit int) (int, error) {
	return e.store.Pending(ctx, account, limit)
}

// runs goes through the runs of an account that match a filter, the newest first, without what is sealed in them.
func (e *Executor) runs(ctx context.Context, account string, filter store.Filter) iter.Seq2[store.Run, error] {
	filter.Limit = runsAtOnce
	return paged(filter.Limit, func(last *store.Run) ([]store.Run, error) {
		if last != nil {
			filter.Before = store.RunPlace{Created: last.Created, ID: last.ID}
		}
		return e.store.List(ctx, account, filter)
	})
}

func (e *Executor) openQuestion(a store.Asked) (q QuestionView, err error) {
	q.Asked = a
	q.Asked.Data, q.Interrupt.Answer, q.Asked.Request = nil, nil, nil
	if q.Data, err = e.open(a.Account, store.SealedData, a.ID, a.Data); err != nil {
		return q, err
	}
	if q.Answer, err = e.open(a.Account, store.SealedAnswer, a.ID, a.Interrupt.Answer); err != nil || a.Request == nil {
		return q, err
	}
	known, err := e.readRequest(*a.Request)
	if err != nil {
		return q, err
	}
	q.Request = &known.Request
	return q, nil
}
