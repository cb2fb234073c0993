package docs

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// How many runs and papers are read at a time. Rulings are fewer: each may be as large as the
// arguments of an action.
const (
	runsPerPage      = 1000
	DocumentsPerPage = 1000
	RulingsPerPage   = 100
)

// RequestView is a request as its account may see it.
type RequestView struct {
	store.InboxItem // without what is sealed
	Data            json.RawMessage
	Answer          json.RawMessage
	// Request is the state of the request; nil if there is none.
	Request *desk.Request
	// Unreadable says that data, answer or request cannot be opened. Only lists have such
	// questions, and runs if it is the request.
	Unreadable bool
}

// EachRun iterates over the runs of an account that match a filter, the newest first, without their
// encrypted values.
func (ds *Docs) EachRun(ctx context.Context, account string, filter store.RunFilter) iter.Seq2[store.Run, error] {
	filter.Limit = runsPerPage
	return paged(filter.Limit, func(last *store.Run) ([]store.Run, error) {
		if last != nil {
			filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
		}
		return ds.Store.List(ctx, account, filter)
	})
}

// ToRequestView decrypts an interrupt and its request.
func (ds *Docs) ToRequestView(a store.InboxItem) (q RequestView, err error) {
	q.InboxItem = a
	q.InboxItem.Data, q.Interrupt.Answer, q.InboxItem.Request = nil, nil, nil
	if q.Data, err = ds.Store.Data(a.Interrupt); err != nil {
		return q, err
	}
	if q.Answer, err = ds.Store.Answer(a.Interrupt); err != nil {
		return q, err
	}
	if a.Request != nil {
		known, err := ds.DecodeRequest(*a.Request)
		if err != nil {
			return q, err
		}
		q.Request = &known.Request
	}
	return q, q.Attest(q.Request)
}

// Attest names the people who decided, in the view and in the answer. request is the request, or
// nil if it is not known.
func (q *RequestView) Attest(request *desk.Request) (err error) {
	if q.State == store.InterruptDecided {
		q.DecidedBy = Attestation(q.Interrupt, request).By
		q.Answer, err = Attest(q.Interrupt, request, q.Answer)
	}
	return err
}
