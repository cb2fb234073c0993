package view

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// RunView is a run as its account may see it.
type RunView struct {
	store.Run // without what is sealed
	// Outcome is its outcome, or what it waits for; nil while it is active.
	Outcome fermata.Outcome
	// Interrupts is everything that it asked.
	Interrupts []docs.RequestView
	// EndUser is whom its agent talks to, in a conversation; "" if there is none.
	EndUser string
	// Problem is why it failed, is parked or is tried again; nil if there is none.
	Problem *docs.Problem
}

// ListRuns returns runs of an account, the newest first.
func (r *Reader) ListRuns(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return r.store.List(ctx, account, filter)
}

// HasExpired reports whether a run failed because its request expired. An outcome that cannot be
// decrypted counts as another failure.
func (r *Reader) HasExpired(ctx context.Context, run store.Run) (bool, error) {
	if run.Status != store.StatusFailed {
		return false, nil
	}
	asked, err := r.store.Interrupts(ctx, run.Account, run.ID)
	if docs.IsNotFound(err) {
		return false, nil
	}
	if err != nil || !slices.ContainsFunc(asked, func(i store.Interrupt) bool { return i.Verdict == store.VerdictExpire }) {
		return false, err
	}
	outcome, err := r.waiter.RunOutcome(ctx, run.Account, run.ID)
	if errors.Is(err, errs.ErrUnreadable) {
		return false, nil
	}
	failed, ok := outcome.(fermata.Failed)
	return ok && failed.Code == codeExpired, err
}

// codeExpired is the code of a run that failed because its request expired.
const codeExpired = "expired"

// EndUser returns whom the agent of a run talks to; "" if there is none.
func (r *Reader) EndUser(ctx context.Context, account, run string) (string, error) {
	paper, err := r.store.Document(ctx, account, docs.RunMetaKind, run)
	if docs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	meta, err := r.docs.DecodeMeta(paper)
	return meta.EndUser, err
}

// problemOf returns why a run failed, is parked or is tried again.
func (r *Reader) problemOf(ctx context.Context, run store.Run) (*docs.Problem, error) {
	switch {
	case run.Status == store.StatusFailed, run.Status == store.StatusParked:
	case run.Status == store.StatusReady && run.Attempts > 0:
	default:
		return nil, nil
	}
	problem, revision, err := r.docs.Problem(ctx, run.Account, run.ID)
	if err != nil || revision == 0 || problem.Code == "" {
		return nil, err
	}
	return &problem, nil
}

// GetRun returns the newest run of a state key, with its outcome and its requests.
func (r *Reader) GetRun(ctx context.Context, account, stateKey string) (RunView, error) {
	run, err := r.docs.FindRun(ctx, account, stateKey)
	if err != nil {
		return RunView{}, err
	}
	view := RunView{Run: run}
	view.ProviderRef, view.Input, view.Run.Outcome = nil, nil, nil
	if view.Outcome, err = r.waiter.CurrentOutcome(run, true); err != nil {
		return RunView{}, err
	}
	if view.EndUser, err = r.EndUser(ctx, account, run.ID); err != nil {
		return RunView{}, err
	}
	if view.Problem, err = r.problemOf(ctx, run); err != nil {
		return RunView{}, err
	}
	asked, err := r.store.Interrupts(ctx, account, run.ID)
	if err != nil {
		return RunView{}, err
	}
	known, err := r.requestDocuments(ctx, run)
	if err != nil {
		return RunView{}, err
	}
	for _, i := range asked {
		q, err := r.docs.ToRequestView(store.InboxItem{Interrupt: i, StateKey: run.StateKey, Provider: run.Provider, Graph: run.Graph})
		if err != nil {
			return RunView{}, err
		}
		if paper, ok := known[i.ID]; ok {
			doc, err := r.docs.DecodeRequest(paper)
			if q.Unreadable = err != nil; err == nil {
				q.Request = &doc.Request
				err = q.Attest(q.Request)
			}
			if err != nil && !q.Unreadable {
				return RunView{}, err
			}
		}
		view.Interrupts = append(view.Interrupts, q)
	}
	return view, nil
}

// requestDocuments returns the documents of a run's requests, by id.
func (r *Reader) requestDocuments(ctx context.Context, run store.Run) (map[string]store.Document, error) {
	known := make(map[string]store.Document)
	for paper, err := range r.docs.Documents(ctx, run.Account, store.RequestDocument, store.DocumentFilter{Run: run.ID, Limit: docs.DocumentsPerPage}) {
		if err != nil {
			return nil, err
		}
		known[paper.ID] = paper
	}
	return known, nil
}

// ListRequests returns what the runs of an account ask, the oldest first.
func (r *Reader) ListRequests(ctx context.Context, account string, filter store.InboxFilter) ([]docs.RequestView, error) {
	asked, err := r.store.InboxItems(ctx, account, filter)
	if err != nil {
		return nil, err
	}
	list := make([]docs.RequestView, len(asked))
	for n, a := range asked {
		list[n], err = r.docs.ToRequestView(a)
		list[n].Unreadable = err != nil
	}
	return list, nil
}

// GetRequest returns one question, or store.ErrNotFound.
func (r *Reader) GetRequest(ctx context.Context, account, id string) (docs.RequestView, error) {
	asked, err := r.store.InboxItem(ctx, account, id)
	if err != nil {
		return docs.RequestView{}, err
	}
	return r.docs.ToRequestView(asked)
}

// CountOpenRequests counts the open questions of an account, but no further than to limit. Those of
// kinds for end users do not count: their conversations limit them.
func (r *Reader) CountOpenRequests(ctx context.Context, account string, limit int) (int, error) {
	var forEndUsers []string
	for _, kind := range fermata.Kinds() {
		if kind.IsForEndUser() {
			forEndUsers = append(forEndUsers, kind.Name())
		}
	}
	return r.store.CountPending(ctx, account, forEndUsers, limit)
}
