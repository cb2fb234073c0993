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
	runsPerPage      = 1000
	documentsPerPage = 1000
	rulingsPerPage   = 100
)

// RunView is a run as its account may see it.
type RunView struct {
	store.Run // without what is sealed
	// Outcome is what it came to, or waits for; nil while it is under way.
	Outcome fermata.Outcome
	// Interrupts is everything that it asked.
	Interrupts []RequestView
}

// RequestView is a question as its account may see it.
type RequestView struct {
	store.InboxItem // without what is sealed
	Data            json.RawMessage
	Answer          json.RawMessage
	// RunRequest is what people have before them; nil if nobody was asked.
	Request *desk.Request
	// Unreadable says that data, answer or request cannot be opened. Only lists have such questions.
	Unreadable bool
}

// List returns runs of an account, the newest first.
func (e *Executor) ListRuns(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return e.store.List(ctx, account, filter)
}

// Look returns the newest run of a state key, with what it came to and what it asked.
func (e *Executor) GetRun(ctx context.Context, account, stateKey string) (RunView, error) {
	run, err := e.findRun(ctx, account, stateKey)
	if err != nil {
		return RunView{}, err
	}
	view := RunView{Run: run}
	view.ProviderRef, view.Input, view.Run.Outcome = nil, nil, nil
	if view.Outcome, err = e.currentOutcome(run, true); err != nil {
		return RunView{}, err
	}
	asked, err := e.store.Interrupts(ctx, account, run.ID)
	if err != nil {
		return RunView{}, err
	}
	for _, i := range asked {
		q, err := e.toRequestView(store.InboxItem{Interrupt: i, StateKey: run.StateKey, Provider: run.Provider, Graph: run.Graph})
		if err != nil {
			return RunView{}, err
		}
		view.Interrupts = append(view.Interrupts, q)
	}
	return view, nil
}

// Questions returns what the runs of an account ask, the oldest first.
func (e *Executor) ListRequests(ctx context.Context, account string, filter store.InboxFilter) ([]RequestView, error) {
	asked, err := e.store.InboxItems(ctx, account, filter)
	if err != nil {
		return nil, err
	}
	list := make([]RequestView, len(asked))
	for n, a := range asked {
		list[n], err = e.toRequestView(a)
		list[n].Unreadable = err != nil
	}
	return list, nil
}

// Question returns one question, or store.ErrNotFound.
func (e *Executor) GetRequest(ctx context.Context, account, id string) (RequestView, error) {
	asked, err := e.store.InboxItem(ctx, account, id)
	if err != nil {
		return RequestView{}, err
	}
	return e.toRequestView(asked)
}

// Pending counts the open questions of an account, but no further than to limit.
func (e *Executor) CountOpenRequests(ctx context.Context, account string, limit int) (int, error) {
	return e.store.CountPending(ctx, account, limit)
}

// runs goes through the runs of an account that match a filter, the newest first, without what is sealed in them.
func (e *Executor) eachRun(ctx context.Context, account string, filter store.RunFilter) iter.Seq2[store.Run, error] {
	filter.Limit = runsPerPage
	return paged(filter.Limit, func(last *store.Run) ([]store.Run, error) {
		if last != nil {
			filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
		}
		return e.store.List(ctx, account, filter)
	})
}

func (e *Executor) toRequestView(a store.InboxItem) (q RequestView, err error) {
	q.InboxItem = a
	q.InboxItem.Data, q.Interrupt.Answer, q.InboxItem.Request = nil, nil, nil
	if q.Data, err = e.store.Data(a.Interrupt); err != nil {
		return q, err
	}
	if q.Answer, err = e.store.Answer(a.Interrupt); err != nil || a.Request == nil {
		return q, err
	}
	known, err := e.decodeRequest(*a.Request)
	if err != nil {
		return q, err
	}
	q.Request = &known.Request
	return q, nil
}
