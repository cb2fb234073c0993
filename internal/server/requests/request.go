package requests

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

type requestInput struct {
	ID       string `path:"id" maxLength:"512"`
	Language string `header:"Accept-Language" maxLength:"200" doc:"The languages of the reader, for the words of the presentation."`
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
	decide.MaxBodyBytes = limits.MaxAnswerBytes + 4096
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
	return h.requestPageOf(ctx, q, presented(q, h.shownRequest(ctx, q), language.Preferred(in.Language)))
}

// requestPageOf completes a request for its own page.
func (h *Handlers) requestPageOf(ctx context.Context, q executor.RequestView, r api.Request) (*requestOutput, error) {
	// not in lists, because it can read all requests of the run
	me := endpoint.Principal(ctx)
	if r.Activity == nil || !slices.Contains(me.Roles, authn.RoleApprover) && !slices.Contains(me.Roles, authn.RoleAdmin) {
		return &requestOutput{Body: r}, nil
	}
	consequences, err := h.Executor.Preview(ctx, q, desk.PersonActor(me.ID, me.Auth.Strength))
	if err != nil {
		return nil, problems.Of(err)
	}
	for _, c := range consequences {
		r.Activity.Consequences = append(r.Activity.Consequences, consequence(c))
		if errors.Is(c.Err, desk.ErrExcluded) && c.Verb != requirement.VerbReject && slices.Contains(r.Activity.Verbs, string(c.Verb)) {
			r.Activity.IneligibleReason = desk.Code(c.Err)
		}
	}
	h.addChoices(ctx, *q.Request, r.Activity)
	return &requestOutput{Body: r}, nil
}

// addChoices adds what the actions of the caller can choose from.
func (h *Handlers) addChoices(ctx context.Context, doc desk.Request, activity *api.Activity) {
	if doc.State != desk.StateOpen || activity.IneligibleReason != "" {
		return
	}
	allows := func(verb requirement.Verb) bool { return slices.Contains(activity.Verbs, string(verb)) }
	if last := doc.LatestDeadline(); allows(requirement.VerbExtend) {
		activity.ExtendUntil = &last
	}
	if step, ok := doc.NextEscalation(); ok && allows(requirement.VerbEscalate) && !activity.Returns {
		for _, does := range []struct {
			what    string
			targets []string
		}{{"page", step.Page}, {"notify", step.Notify}, {"widen", step.Widen}} {
			for _, target := range does.targets {
				activity.Escalation = append(activity.Escalation, does.what+" "+target)
			}
		}
	}
	if !allows(requirement.VerbDelegate) {
		return
	}
	people, all, err := h.Executor.Delegates(ctx, doc, endpoint.Principal(ctx).ID)
	activity.Delegates, activity.OtherDelegates = people, !all || err != nil // a form can still name a person
}

// consequence returns what a decision would cause, for clients.
func consequence(c desk.Consequence) api.Consequence {
	out := api.Consequence{Verb: string(c.Verb), Votes: c.Progress.Have, Needed: c.Progress.Need}
	switch {
	case c.Err != nil:
		return api.Consequence{Verb: string(c.Verb), Result: "refused", Code: desk.Code(c.Err)}
	case !c.EffectiveAt.IsZero():
		out.Result, out.EffectiveAt = "pending", &c.EffectiveAt
	case c.Outcome != "":
		out.Result = "decides"
	default:
		out.Result = "vote"
		if c.Verb == requirement.VerbReject {
			out.Votes, out.Needed = c.Progress.Rejections, c.Progress.RejectionsNeeded
			break
		}
		for _, m := range c.Progress.Missing {
			out.Missing = append(out.Missing, api.MissingVotes{Group: m.Group, Count: m.Count})
		}
	}
	return out
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
		Targets: map[string]executor.Answer{in.ID: {Value: in.Body.Answer, Shown: in.Body.Shown, Confirm: in.Body.Confirm, Rendering: in.Body.Rendering}},
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
