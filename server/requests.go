package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

func (s *Server) requestOf(q executor.QuestionView) api.Request {
	r := api.Request{
		ID: q.ID, StateKey: q.StateKey, GraphID: q.Provider + ":" + q.Graph, Address: q.Address, Kind: q.Kind, Data: q.Data, Shown: q.Shown,
		AnswerSchema: q.Schema, State: string(q.State), CreatedAt: q.Created, Unreadable: q.Unreadable,
	}
	if !q.Deadline.IsZero() {
		r.Deadline = &q.Deadline
	}
	switch q.State {
	case store.Pending:
		r.Next = s.next(q)
	case store.Decided:
		r.Decision = &api.Decision{Verdict: string(q.Verdict), Answer: q.Answer, By: q.By, Via: q.Via, Source: string(q.Source), At: q.At}
	}
	return r
}

// next is where the run can go when the question is answered, as far as this program knows its graph.
func (s *Server) next(q executor.QuestionView) [][]string {
	g, err := s.config.Executor.Graph(q.Provider + ":" + q.Graph)
	if err != nil || g.Drawing == nil {
		return nil
	}
	at, err := fermata.ParseAddress(q.Address)
	if err != nil {
		return nil
	}
	return g.Drawing.Next(at)
}

type requestsInput struct {
	State  string `query:"state" enum:"pending,decided,withdrawn,all" default:"pending"`
	Kind   string `query:"kind" maxLength:"512"`
	Cursor string `query:"cursor" maxLength:"4096" doc:"Where the page before ended."`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"How many at most; 100 if not said. A page has fewer if they are large."`
}

type requestInput struct {
	ID string `path:"id" maxLength:"512"`
}

type requestOutput struct{ Body api.Request }

type decisionInput struct {
	ID     string `path:"id" maxLength:"512"`
	Prefer string `header:"Prefer" doc:"As for chat."`
	Body   api.Decide
}

// askGraph is what executes questions of others: the provider external.
const askGraph = "external:request"

type askInput struct {
	Prefer string `header:"Prefer" doc:"As for chat."`
	Once   string `header:"Idempotency-Key" maxLength:"256" doc:"For a question without a stateKey: the same question with the same key counts once."`
	Body   api.Ask
}

type answersInput struct {
	Cursor string `query:"cursor" maxLength:"4096"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000"`
}

func (s *Server) registerRequests() {
	huma.Register(s.api, operation("list-requests", http.MethodGet, api.Prefix+"/requests", "What people are asked, the oldest first", Approver, Auditor), s.listRequests)
	huma.Register(s.api, operation("get-request", http.MethodGet, api.Prefix+"/requests/{id}", "One request", Agent, Approver, Auditor), s.getRequest)
	decide := operation("decide", http.MethodPost, api.Prefix+"/requests/{id}/decision", "Decide on a request", Approver)
	decide.MaxBodyBytes = fermata.MaxAnswer + 4096
	decide.Responses = s.outcomes()
	decide.Metadata[actsAs] = decides
	huma.Register(s.api, decide, s.decide)
	ask := operation("ask", http.MethodPost, api.Prefix+"/requests", "Ask for a decision, as an agent in any language", Agent)
	ask.MaxBodyBytes = s.config.Limits.Body
	ask.Responses = s.outcomes()
	huma.Register(s.api, ask, s.ask)
	huma.Register(s.api, operation("list-answers", http.MethodGet, api.Prefix+"/answers", "What was answered, for agents that rather ask than be called", Agent, Auditor), s.answers)
}

func (s *Server) listRequests(ctx context.Context, in *requestsInput) (*pageOutput[api.Request], error) {
	filter := store.AskedFilter{Kind: in.Kind}
	if in.State != "all" {
		filter.State = store.InterruptState(in.State)
	}
	if err := readCursor(in.Cursor, &filter.After); err != nil {
		return nil, err
	}
	list, size, err := s.questions(ctx, who(ctx).Account, filter, pageSize(in.Limit))
	if err != nil {
		return nil, explain(err)
	}
	brief := func(q executor.QuestionView) api.Request {
		r := s.withLife(ctx, q)
		if r.Life != nil {
			r.Life.History, r.Life.Comments, r.Life.Questions = nil, nil, nil
		}
		return r
	}
	return paged(list, size, brief, func(q executor.QuestionView) any { return askedPlace(q) })
}

func (s *Server) getRequest(ctx context.Context, in *requestInput) (*requestOutput, error) {
	q, err := s.config.Executor.Question(ctx, who(ctx).Account, in.ID)
	if err != nil {
		return nil, explain(err)
	}
	r := s.withLife(ctx, q)
	prior, err := s.config.Executor.ApprovedElsewhere(ctx, q, who(ctx).ID) // not in lists: it reads all that the run asks
	if err != nil {
		return nil, explain(err)
	}
	if prior {
		r.Life.MayNot = desk.Code(desk.ErrExcluded)
	}
	return &requestOutput{Body: r}, nil
}

func (s *Server) decide(ctx context.Context, in *decisionInput) (*outcomeOutput, error) {
	me := who(ctx)
	q, err := s.config.Executor.Question(ctx, me.Account, in.ID)
	if err != nil {
		return nil, explain(err)
	}
	wait, err := prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, executor.Request{
		Account: me.Account, StateKey: q.StateKey, ResumeID: in.Body.ResumeID, Actor: me.ID, Via: me.Auth.via(), Auth: me.Auth.Strength, Wait: wait,
		Targets: map[string]executor.Answer{in.ID: {Value: in.Body.Answer, Shown: in.Body.Shown}},
	})
}

func (s *Server) ask(ctx context.Context, in *askInput) (*outcomeOutput, error) {
	me := who(ctx)
	wait, err := prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	request := executor.Request{Account: me.Account, StateKey: in.Body.StateKey, Graph: askGraph, Actor: me.ID, Kind: me.kind(), Via: me.Auth.via(), Auth: me.Auth.Strength, Wait: wait}
	once(&request, in.Once)
	in.Body.StateKey = ""
	if request.Input, err = json.Marshal(in.Body); err != nil {
		return nil, err
	}
	if err := s.roomFor(ctx, request); err != nil {
		return nil, err
	}
	return s.run(ctx, request)
}

func (s *Server) answers(ctx context.Context, in *answersInput) (*struct{ Body api.AnswersPage }, error) {
	list, next, err := s.answered(ctx, who(ctx).Account, in.Cursor, in.Limit)
	if errors.Is(err, store.ErrKey) {
		return nil, problem("bad_request", "the cursor is none of ours")
	}
	if err != nil {
		return nil, explain(err)
	}
	page := api.AnswersPage{Items: make([]api.Answered, 0, len(list)), Next: next}
	for _, answered := range list {
		page.Items = append(page.Items, api.Answered(answered))
	}
	return &struct{ Body api.AnswersPage }{page}, nil
}
