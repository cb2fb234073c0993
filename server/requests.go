package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// Request is a question to people, and what became of it.
type Request struct {
	ID           string          `json:"id"`
	StateKey     string          `json:"stateKey"`
	GraphID      string          `json:"graphId"`
	Address      string          `json:"address" doc:"The place in the run that asks."`
	Kind         string          `json:"kind"`
	Data         json.RawMessage `json:"data,omitempty" doc:"What is shown."`
	Shown        string          `json:"shown" doc:"The digest of what is shown; send it back with the decision."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty"`
	State        string          `json:"state" enum:"pending,decided,withdrawn"`
	CreatedAt    time.Time       `json:"createdAt"`
	Deadline     *time.Time      `json:"deadline,omitempty"`
	Decision     *Decision       `json:"decision,omitempty"`
}

// Decision is what was decided on a request.
type Decision struct {
	Verdict string          `json:"verdict" enum:"approve,reject,answer,expire"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	By      string          `json:"by"`
	Via     string          `json:"via,omitempty"`
	Source  string          `json:"source" enum:"person,clock,policy"`
	At      time.Time       `json:"at"`
}

func requestOf(q executor.QuestionView) Request {
	r := Request{
		ID: q.ID, StateKey: q.StateKey, GraphID: q.Provider + ":" + q.Graph, Address: q.Address, Kind: q.Kind, Data: q.Data, Shown: q.Shown,
		AnswerSchema: q.Schema, State: string(q.State), CreatedAt: q.Created,
	}
	if !q.Deadline.IsZero() {
		r.Deadline = &q.Deadline
	}
	if q.State == store.Decided {
		r.Decision = &Decision{Verdict: string(q.Verdict), Answer: q.Answer, By: q.By, Via: q.Via, Source: string(q.Source), At: q.At}
	}
	return r
}

type requestsInput struct {
	State  string `query:"state" enum:"pending,decided,withdrawn,all" default:"pending"`
	Kind   string `query:"kind" maxLength:"512"`
	Cursor string `query:"cursor" maxLength:"4096" doc:"Where the page before ended."`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"How many; 100 if not said."`
}

type requestInput struct {
	ID string `path:"id" maxLength:"512"`
}

type requestOutput struct{ Body Request }

type decisionInput struct {
	ID     string `path:"id" maxLength:"512"`
	Prefer string `header:"Prefer"`
	Body   struct {
		ResumeID string          `json:"resumeId" minLength:"1" maxLength:"512" doc:"Chosen by the caller. The same decision with the same id counts once."`
		Answer   json.RawMessage `json:"answer" doc:"As the answerSchema of the request says."`
		Shown    string          `json:"shown,omitempty" maxLength:"128" doc:"The digest of what was shown. A decision on something else is refused."`
	}
}

// askGraph is what executes questions of others: the provider external.
const askGraph = "external:request"

// askBody is a question of an agent that we do not execute.
type askBody struct {
	StateKey     string          `json:"stateKey,omitempty" maxLength:"512"`
	Kind         string          `json:"kind" minLength:"1" maxLength:"256"`
	Data         json.RawMessage `json:"data" doc:"What is shown to people."`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty" doc:"The JSON Schema of the answer."`
	Callback     json.RawMessage `json:"callback,omitempty" doc:"Where the answer is sent, as a signed webhook: {\"url\": …}."`
	Timeout      json.RawMessage `json:"timeout,omitempty" doc:"How long it may be open."`
}

type askInput struct{ Body askBody }

type answersInput struct {
	Cursor string `query:"cursor" maxLength:"4096"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000"`
}

// AnswersPage is what was answered behind a cursor.
type AnswersPage struct {
	Items []executor.Answered `json:"items"`
	Next  string              `json:"next" doc:"The cursor for the next call. It stays as it is when there is no more yet."`
}

func (s *Server) registerRequests() {
	huma.Register(s.api, operation("list-requests", http.MethodGet, prefix+"/requests", "What people are asked, the oldest first", Approver, Auditor), s.listRequests)
	huma.Register(s.api, operation("get-request", http.MethodGet, prefix+"/requests/{id}", "One request", Agent, Approver, Auditor), s.getRequest)
	decide := operation("decide", http.MethodPost, prefix+"/requests/{id}/decision", "Decide on a request", Approver)
	decide.MaxBodyBytes = fermata.MaxAnswer + 4096
	huma.Register(s.api, decide, s.decide)
	ask := operation("ask", http.MethodPost, prefix+"/requests", "Ask for a decision, as an agent in any language", Agent)
	ask.MaxBodyBytes = s.config.Limits.Body
	huma.Register(s.api, ask, s.ask)
	huma.Register(s.api, operation("list-answers", http.MethodGet, prefix+"/answers", "What was answered, for agents that rather ask than be called", Agent, Auditor), s.answers)
}

func (s *Server) listRequests(ctx context.Context, in *requestsInput) (*pageOutput[Request], error) {
	filter := store.AskedFilter{Kind: in.Kind, Limit: pageSize(in.Limit) + 1}
	if in.State != "all" {
		filter.State = store.InterruptState(in.State)
	}
	if err := readCursor(in.Cursor, &filter.After); err != nil {
		return nil, err
	}
	list, err := s.config.Executor.Questions(ctx, who(ctx).Account, filter)
	if err != nil {
		return nil, explain(err)
	}
	return paged(list, pageSize(in.Limit), requestOf, func(q executor.QuestionView) any { return store.AskedPlace{Created: q.Created, ID: q.ID} })
}

func (s *Server) getRequest(ctx context.Context, in *requestInput) (*requestOutput, error) {
	q, err := s.config.Executor.Question(ctx, who(ctx).Account, in.ID)
	if err != nil {
		return nil, explain(err)
	}
	return &requestOutput{Body: requestOf(q)}, nil
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
		Account: me.Account, StateKey: q.StateKey, ResumeID: in.Body.ResumeID, Actor: me.ID, Via: "http", Wait: wait,
		Targets: map[string]executor.Answer{in.ID: {Value: in.Body.Answer, Shown: in.Body.Shown}},
	})
}

func (s *Server) ask(ctx context.Context, in *askInput) (*outcomeOutput, error) {
	me := who(ctx)
	if err := s.roomFor(ctx, me); err != nil {
		return nil, err
	}
	stateKey := in.Body.StateKey
	in.Body.StateKey = ""
	input, err := json.Marshal(in.Body)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, executor.Request{Account: me.Account, StateKey: stateKey, Graph: askGraph, Input: input, Actor: me.ID, Via: "http"})
}

func (s *Server) answers(ctx context.Context, in *answersInput) (*struct{ Body AnswersPage }, error) {
	list, next, err := s.config.Executor.Answers(ctx, who(ctx).Account, in.Cursor, in.Limit)
	if err != nil {
		return nil, explain(err)
	}
	if list == nil {
		list = []executor.Answered{}
	}
	return &struct{ Body AnswersPage }{AnswersPage{Items: list, Next: next}}, nil
}
