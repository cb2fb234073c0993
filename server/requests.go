package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/server/internal/visibility"
	"github.com/fermata-go/fermata/store"
)

type requestInput struct {
	ID string `path:"id" maxLength:"512"`
}

type requestOutput struct{ Body api.Request }

type decisionInput struct {
	ID     string `path:"id" maxLength:"512"`
	Prefer string `header:"Prefer" doc:"As for chat."`
	Body   api.Decide
}

type createRequestInput struct {
	Prefer         string `header:"Prefer" doc:"As for chat."`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"256" doc:"Idempotency key for a request without a stateKey. The same request with the same key is created once."`
	Body           api.CreateRequest
}

type answersInput struct {
	Cursor string `query:"cursor" maxLength:"4096"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000"`
}

func (s *Server) registerRequests() {
	huma.Register(s.api, endpoint.New("list-requests", http.MethodGet, api.Prefix+"/requests", "List and search requests", authn.RoleApprover, authn.RoleAuditor), s.listRequests)
	huma.Register(s.api, endpoint.New("count-requests", http.MethodGet, api.Prefix+"/requests/counts", "Count the requests in the lists of the inbox", authn.RoleApprover, authn.RoleAuditor), s.countRequests)
	huma.Register(s.api, endpoint.New("get-request", http.MethodGet, api.Prefix+"/requests/{id}", "Get a request", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor), s.getRequest)
	decide := endpoint.New("decide", http.MethodPost, api.Prefix+"/requests/{id}/decision", "Decide a request", authn.RoleApprover)
	decide.MaxBodyBytes = fermata.MaxAnswerBytes + 4096
	decide.Responses = s.outcomeResponses()
	endpoint.SetAction(decide, endpoint.ActionDecide)
	huma.Register(s.api, decide, s.decide)
	create := endpoint.New("create-request", http.MethodPost, api.Prefix+"/requests", "Create a request, from an agent in any language", authn.RoleAgent)
	create.MaxBodyBytes = s.config.Limits.Body
	create.Responses = s.outcomeResponses()
	huma.Register(s.api, create, s.createRequest)
	huma.Register(s.api, endpoint.New("list-answers", http.MethodGet, api.Prefix+"/answers", "List answered requests, for agents that poll", authn.RoleAgent, authn.RoleAuditor), s.listAnswers)
}

func (s *Server) getRequest(ctx context.Context, in *requestInput) (*requestOutput, error) {
	q, err := s.config.Executor.GetRequest(ctx, endpoint.Principal(ctx).Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return s.requestPageOf(ctx, q, s.shownRequest(ctx, q))
}

// requestPageOf completes a request for its own page.
func (s *Server) requestPageOf(ctx context.Context, q executor.RequestView, r api.Request) (*requestOutput, error) {
	// not in lists, because it reads all requests of the run
	prior, err := s.config.Executor.IsPriorApprover(ctx, q, endpoint.Principal(ctx).ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	if prior {
		r.Activity.IneligibleReason = desk.Code(desk.ErrExcluded)
	}
	return &requestOutput{Body: r}, nil
}

func (s *Server) decide(ctx context.Context, in *decisionInput) (*outcomeOutput, error) {
	me := endpoint.Principal(ctx)
	wait, err := endpoint.Prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	// A request that cannot be decrypted cannot have been shown, so it cannot be decided.
	if _, err := s.config.Executor.GetRequest(ctx, me.Account, in.ID); errors.Is(err, executor.ErrUnreadable) {
		return nil, problems.Of(err)
	}
	outcome, err := s.config.Executor.Decide(ctx, executor.DecideRequest{
		Account: me.Account, ResumeID: in.Body.ResumeID, Actor: me.ID, Via: me.Auth.Via(), Auth: me.Auth.Strength, Wait: wait,
		Targets: map[string]executor.Answer{in.ID: {Value: in.Body.Answer, Shown: in.Body.Shown, Rendering: in.Body.Rendering}},
	})
	// a vote that decides nothing yet has an outcome at once; the client wants 202
	if err == nil && wait < 0 {
		var q executor.RequestView
		if q, err = s.config.Executor.GetRequest(ctx, me.Account, in.ID); err == nil {
			return acceptedOutput(visibility.RunID(outcome), q.StateKey), nil
		}
	}
	return s.toOutput(ctx, outcome, err)
}

func (s *Server) createRequest(ctx context.Context, in *createRequestInput) (*outcomeOutput, error) {
	me := endpoint.Principal(ctx)
	wait, err := endpoint.Prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	request := executor.RunRequest{Account: me.Account, StateKey: in.Body.StateKey, Graph: visibility.ExternalGraph, Actor: me.ID, Kind: me.ActorKind(), Via: me.Auth.Via(), Auth: me.Auth.Strength, Wait: wait}
	if err := checkStateKey(request.StateKey); err != nil {
		return nil, err
	}
	once := request.StateKey == "" && in.IdempotencyKey == "" && !in.Body.AllowDuplicate
	applyIdempotencyKey(&request, in.IdempotencyKey)
	in.Body.StateKey, in.Body.AllowDuplicate = "", false
	if request.Input, err = json.Marshal(in.Body); err != nil {
		return nil, err
	}
	if once {
		return s.createOnce(ctx, request, in.Body)
	}
	return s.create(ctx, request)
}

func (s *Server) create(ctx context.Context, request executor.RunRequest) (*outcomeOutput, error) {
	if err := s.admitStart(ctx, request); err != nil {
		return nil, err
	}
	return s.startOrResume(ctx, request)
}

// createOnce creates a request without a state key, unless the agent has an open one with the same
// kind and data: then it returns that one. Both have the same state key, so of several that are
// created at the same time one is.
func (s *Server) createOnce(ctx context.Context, request executor.RunRequest, body api.CreateRequest) (*outcomeOutput, error) {
	unique := request
	key, err := duplicateKey(request.Actor, body)
	if err != nil {
		return nil, problems.New("bad_request", "the data is not valid JSON")
	}
	request.StateKey = key
	before, err := s.config.Executor.GetRun(ctx, request.Account, key)
	switch {
	case errors.Is(err, executor.ErrRunNotFound):
		return s.create(ctx, request)
	case err != nil:
		return nil, problems.Of(err)
	case !before.Status.Active():
		request.StartID = "after " + before.ID // otherwise it would be a repetition
		return s.create(ctx, request)
	case len(before.Interrupts) > 0 && before.Status != store.StatusWaiting: // it is answered, and the answer is on its way
		return s.create(ctx, unique)
	}
	if err := s.config.Executor.CheckInput(ctx, request); err != nil {
		return nil, problems.Of(err)
	}
	outcome, err := s.config.Executor.Await(ctx, request, before.ID)
	if waiting, ok := outcome.(fermata.NeedsInput); ok {
		waiting.Deduplicated = true
		outcome = waiting
	}
	if err == nil && request.Wait < 0 {
		return acceptedOutput(before.ID, key), nil
	}
	return s.toOutput(ctx, outcome, err)
}

// duplicatePrefix begins the state keys of [duplicateKey]. Clients cannot choose such a key:
// otherwise an agent could put its own request in the place of another agent's.
const duplicatePrefix = "same"

func checkStateKey(key string) error {
	if strings.HasPrefix(key, duplicatePrefix+"_") {
		return problems.New("bad_request", "a state key that begins with %q is reserved", duplicatePrefix+"_")
	}
	return nil
}

// duplicateKey returns the state key of all requests of an agent with the same kind and data.
func duplicateKey(agent string, body api.CreateRequest) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(body.Data))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return "", err
	}
	sorted, err := json.Marshal(data)
	return ident.Derive(duplicatePrefix, agent, body.Kind, string(sorted)), err
}

func (s *Server) listAnswers(ctx context.Context, in *answersInput) (*struct{ Body api.AnswersPage }, error) {
	list, next, err := s.answerPage(ctx, endpoint.Principal(ctx), in.Cursor, in.Limit)
	if errors.Is(err, store.ErrInvalid) {
		return nil, problems.New("bad_request", "invalid cursor")
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	page := api.AnswersPage{Items: make([]api.AnsweredRequest, 0, len(list)), Next: next}
	for _, answered := range list {
		page.Items = append(page.Items, answeredOf(answered))
	}
	return &struct{ Body api.AnswersPage }{page}, nil
}

func answeredOf(settled executor.SettledRequest) api.AnsweredRequest {
	item := api.AnsweredRequest{
		RunID: settled.RunID, StateKey: settled.StateKey, GraphID: settled.GraphID, Interrupt: settled.Interrupt, Kind: settled.Kind,
		Expired: settled.Expired, Withdrawn: settled.Withdrawn, Unreadable: settled.Unreadable, Answer: settled.Answer,
		ApprovedDigest: settled.ApprovedDigest, By: settled.By, At: settled.At,
	}
	if r := settled.Refusal; r != nil {
		item.Refusal = &api.Refusal{Verb: string(r.Verb), Reason: r.Reason, By: r.By, At: r.At}
	}
	return item
}
