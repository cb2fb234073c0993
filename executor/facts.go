package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func requestFacts(run store.Run, doc desk.Request) analytics.RequestFacts {
	f := analytics.RequestFacts{
		Kind: doc.Asked.Kind, Graph: run.Provider + ":" + run.Graph, Action: doc.Asked.Action, Route: doc.Route.Name, Requester: doc.Asked.Requester,
		Risk: doc.Asked.Risk, Words: doc.Asked.Words, State: string(doc.State), Created: millis(doc.Created), Deadline: millis(doc.Deadline), Revision: doc.Rev,
		Votes: len(doc.Votes), Asked: len(doc.Questions), Steps: len(doc.Place.Done), Paged: len(doc.Place.Paged),
	}
	if len(doc.Asked.Rules) > 0 {
		f.Rule = doc.Asked.Rules[0]
	}
	if doc.Edit != nil {
		f.Edited = 1
	}
	if len(doc.Deliveries) > 0 {
		f.Delivered = millis(doc.Deliveries[0].At)
	}
	if len(doc.Views) > 0 {
		f.Viewed = millis(doc.Views[0].At)
	}
	if doc.Final != nil {
		f.Outcome, f.Decided = string(doc.Final.Outcome), millis(doc.Final.At)
		if n := len(doc.Final.By); n > 0 {
			f.By = doc.Final.By[n-1]
		}
	}
	return f
}

func voteFacts(run store.Run, doc desk.Request, vote desk.Vote) analytics.VoteFacts {
	r := requestFacts(run, doc)
	f := analytics.VoteFacts{
		Request: doc.ID, Actor: vote.By, Words: r.Words, Verb: string(judged(doc, vote)), Kind: r.Kind, Action: r.Action, Rule: r.Rule, Via: vote.Via, Auth: string(vote.Auth), At: millis(vote.At), Created: r.Created,
	}
	for _, view := range doc.Views {
		if view.By == vote.By {
			f.Viewed = millis(view.At)
		}
	}
	if doc.Final != nil {
		f.Settles = 1
	}
	if doc.Edit != nil && doc.Edit.By == vote.By {
		f.Edits = 1
	}
	return f
}

// judged is the verb of a vote. At a gate people say yes or no, though what the run gets is an answer.
func judged(doc desk.Request, vote desk.Vote) desk.Verb {
	var signal struct {
		Approved *bool `json:"approved"`
	}
	switch {
	case doc.Asked.Kind != gateKind || json.Unmarshal(vote.Value, &signal) != nil || signal.Approved == nil:
		return vote.Verb
	case *signal.Approved:
		return desk.VerbApprove
	}
	return desk.VerbReject
}

// Analytics answers what came of the requests of an account. It reads all of them, page by page, and keeps what is counted of them.
func (e *Executor) Analytics(ctx context.Context, account string, query analytics.Query) (analytics.Report, error) {
	now, err := e.store.Now(ctx)
	if err != nil {
		return analytics.Report{}, err
	}
	c := analytics.NewCollector(query, now)
	if err := each(e.papers(ctx, account, store.RequestPaper, factsPage), c.Request); err != nil {
		return analytics.Report{}, err
	}
	if err := each(e.papers(ctx, account, votePaper, factsPage), c.Vote); err != nil {
		return analytics.Report{}, err
	}
	return c.Report(), nil
}

// factsPage reads few papers at a time: they come with their bodies, which may be long and are of no use here.
var factsPage = store.PaperFilter{Limit: 250}

// each hands the facts of papers to a function.
func each[T any](papers iter.Seq2[store.Paper, error], take func(T)) error {
	for p, err := range papers {
		if err != nil {
			return err
		}
		var facts T
		if err := json.Unmarshal(p.Facts, &facts); err != nil {
			return fmt.Errorf("executor: the facts of %s %s: %w", p.Kind, p.ID, err)
		}
		take(facts)
	}
	return nil
}
