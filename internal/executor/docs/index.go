package docs

import (
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// RequestIndex returns the index of a request.
func RequestIndex(run store.Run, doc desk.Request) analytics.RequestIndex {
	f := analytics.RequestIndex{
		Kind: doc.Subject.Kind, Graph: run.Provider + ":" + run.Graph, Action: doc.Subject.Action, Route: doc.Route.Name, Requester: doc.Subject.Requester,
		Rules: doc.Subject.Rules,
		Risk:  doc.Subject.Risk, WordCount: doc.Subject.WordCount, State: string(doc.State), Created: unixMillis(doc.Created), Deadline: unixMillis(doc.Deadline), Revision: doc.Rev,
		Votes: len(doc.Votes), Clarifications: len(doc.Clarifications), Steps: len(doc.RouteProgress.DoneSteps), Paged: len(doc.RouteProgress.Paged),
	}
	if len(doc.Requirement.VisibleTo) > 0 {
		f.Restricted = 1
	}
	if doc.Subject.EndUser != "" {
		f.ForEndUser = 1
	}
	if doc.Edit != nil {
		f.Edited = 1
	}
	if len(doc.Deliveries) > 0 {
		f.Delivered = unixMillis(doc.Deliveries[0].At)
	}
	if len(doc.Views) > 0 {
		f.Viewed = unixMillis(doc.Views[0].At)
	}
	if doc.Decision != nil {
		f.Outcome, f.Decided = string(doc.Decision.Outcome), unixMillis(doc.Decision.At)
		if n := len(doc.Decision.By); n > 0 {
			f.By = doc.Decision.By[n-1]
		}
	}
	return f
}

// VoteIndex returns the index of a vote.
func VoteIndex(run store.Run, doc desk.Request, vote desk.Vote) analytics.VoteIndex {
	r := RequestIndex(run, doc)
	f := analytics.VoteIndex{
		Request: doc.ID, Actor: vote.By, WordCount: r.WordCount, Verb: string(vote.Verb), Kind: r.Kind, Action: r.Action, Via: vote.Via, Auth: string(vote.Auth), At: unixMillis(vote.At), Created: r.Created, ForEndUser: r.ForEndUser,
	}
	for _, view := range doc.Views {
		if view.By == vote.By {
			f.Viewed = unixMillis(view.At)
		}
	}
	if doc.Decision != nil {
		f.Settles = 1
	}
	if doc.Edit != nil && doc.Edit.By == vote.By {
		f.Edits = 1
	}
	return f
}
