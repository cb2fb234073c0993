package requests

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
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

func (h *Handlers) registerRequests(to huma.API) {
	huma.Register(to, endpoint.New("list-requests", http.MethodGet, api.Prefix+"/requests", "List and search requests", authn.RoleApprover, authn.RoleAuditor), h.listRequests)
	huma.Register(to, endpoint.New("count-requests", http.MethodGet, api.Prefix+"/requests/counts", "Count the requests in the lists of the inbox", authn.RoleApprover, authn.RoleAuditor), h.countRequests)
	huma.Register(to, endpoint.New("get-request", http.MethodGet, api.Prefix+"/requests/{id}", "Get a request", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor), h.getRequest)
	decide := endpoint.New("decide", http.MethodPost, api.Prefix+"/requests/{id}/decision", "Decide a request", authn.RoleApprover)
	decide.MaxBodyBytes = fermata.MaxAnswerBytes + 4096
	decide.Responses = outcomes.Responses(to)
	endpoint.SetAction(decide, endpoint.ActionDecide)
	huma.Register(to, decide, h.decide)
	huma.Register(to, endpoint.New("list-answers", http.MethodGet, api.Prefix+"/answers", "List answered requests, for agents that poll", authn.RoleAgent, authn.RoleAuditor), h.listAnswers)
}

func (h *Handlers) getRequest(ctx context.Context, in *requestInput) (*requestOutput, error) {
	q, err := h.Executor.GetRequest(ctx, endpoint.Principal(ctx).Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return h.requestPageOf(ctx, q, h.shownRequest(ctx, q))
}

// requestPageOf completes a request for its own page.
func (h *Handlers) requestPageOf(ctx context.Context, q executor.RequestView, r api.Request) (*requestOutput, error) {
	// not in lists, because it reads all requests of the run
	prior, err := h.Executor.IsPriorApprover(ctx, q, endpoint.Principal(ctx).ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	if prior {
		r.Activity.IneligibleReason = desk.Code(desk.ErrExcluded)
	}
	return &requestOutput{Body: r}, nil
}

func (h *Handlers) decide(ctx context.Context, in *decisionInput) (*outcomes.Output, error) {
	me := endpoint.Principal(ctx)
	wait, err := endpoint.Prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	// A request that cannot be decrypted cannot have been shown, so it cannot be decided.
	if _, err := h.Executor.GetRequest(ctx, me.Account, in.ID); errors.Is(err, executor.ErrUnreadable) {
		return nil, problems.Of(err)
	}
	outcome, err := h.Executor.Decide(ctx, executor.DecideRequest{
		Account: me.Account, ResumeID: in.Body.ResumeID, Actor: me.ID, Via: me.Auth.Via(), Auth: me.Auth.Strength, Wait: wait,
		Targets: map[string]executor.Answer{in.ID: {Value: in.Body.Answer, Shown: in.Body.Shown, Rendering: in.Body.Rendering}},
	})
	// a vote that decides nothing yet has an outcome at once; the client wants 202
	if err == nil && wait < 0 {
		var q executor.RequestView
		if q, err = h.Executor.GetRequest(ctx, me.Account, in.ID); err == nil {
			return outcomes.Accepted(visibility.RunID(outcome), q.StateKey), nil
		}
	}
	return outcomes.Respond(ctx, h.Visibility, outcome, err)
}
