package requests

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

type actionInput struct {
	ID             string `path:"id" maxLength:"512"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"256" doc:"Idempotency key: the same action with the same key is applied once."`
	Body           api.RequestAction
}

// from returns the actor and the idempotency key of an action.
func (in *actionInput) from(ctx context.Context, act string) desk.From {
	from := endpoint.Principal(ctx).From()
	if act == "reply" { // a reply is made for the run
		from.Actor.Kind = desk.ActorAgent
	}
	if in.IdempotencyKey != "" {
		from.IdempotencyKey = endpoint.IdempotencyKey(in.IdempotencyKey, act, in.Body)
	}
	return from
}

// requestActions are the actions on a request other than deciding, by the last path segment.
var requestActions = []struct {
	name, summary string
	roles         []authn.Role
	act           func(from desk.From, body api.RequestAction) desk.Command
}{
	{"view", "Mark the request as viewed", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command {
		f.Seen.Digest = b.Shown
		view := desk.View{From: f}
		if r := b.Rendering; r != nil {
			view.Rendering = &desk.Rendering{Hash: r.Hash, Channel: r.Channel, Template: r.Template, Visible: r.Visible, Text: r.Text}
		}
		return view
	}},
	{"claim", "Claim the request", []authn.Role{authn.RoleApprover}, func(f desk.From, _ api.RequestAction) desk.Command { return desk.Claim{From: f} }},
	{"release", "Release the claim", []authn.Role{authn.RoleApprover}, func(f desk.From, _ api.RequestAction) desk.Command { return desk.Release{From: f} }},
	{"undo", "Withdraw your vote within its undo window", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Undo{From: f, Reason: b.Text} }},
	{"comment", "Add a comment", []authn.Role{authn.RoleAgent, authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Comment{From: f, Text: b.Text} }},
	{"clarify", "Ask the agent a question; the request stays open", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command {
		return desk.AskClarification{From: f, Question: b.Text}
	}},
	{"reply", "Reply to a clarification request", []authn.Role{authn.RoleAgent}, func(f desk.From, b api.RequestAction) desk.Command {
		return desk.AnswerClarification{From: f, Number: b.Clarification, Answer: b.Text}
	}},
	{"delegate", "Delegate the decision to another person", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command {
		return desk.Delegate{From: f, To: b.To, Reason: b.Text}
	}},
	{"snooze", "Snooze notifications; the deadline does not change", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Snooze{From: f, Until: untilOf(b)} }},
	{"extend", "Extend the deadline", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Extend{From: f, Until: untilOf(b)} }},
	{"escalate", "Escalate: run the next step of the route now", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Escalate{From: f, Reason: b.Text} }},
}

func untilOf(b api.RequestAction) time.Time {
	if b.Until == nil {
		return time.Time{}
	}
	return *b.Until
}

func (h *Handlers) registerRequestActions(to huma.API) {
	for _, a := range requestActions {
		op := endpoint.New(a.name+"-request", http.MethodPost, api.Prefix+"/requests/{id}/"+a.name, a.summary, a.roles...)
		// read-only roles may also report a view; it does not count as an eligible view
		if name, _ := desk.CommandOrigin(a.act(desk.From{}, api.RequestAction{})); name != desk.CommandView {
			endpoint.SetAction(op, name)
		}
		huma.Register(to, op, func(ctx context.Context, in *actionInput) (*requestOutput, error) {
			return h.act(ctx, in.ID, a.act(in.from(ctx, a.name), in.Body))
		})
	}
	abandon := endpoint.New("abandon-request", http.MethodPost, api.Prefix+"/requests/{id}/abandon", "Cancel the run that this request belongs to", authn.RoleAgent, authn.RoleApprover)
	endpoint.SetAction(abandon, desk.CommandAbandon)
	huma.Register(to, abandon, h.abandon)
}

func (h *Handlers) act(ctx context.Context, id string, act desk.Command) (*requestOutput, error) {
	me := endpoint.Principal(ctx)
	if _, err := h.Executor.Act(ctx, me.Account, id, act); err != nil {
		return nil, problems.Of(err)
	}
	return h.getRequest(ctx, &requestInput{ID: id})
}

func (h *Handlers) abandon(ctx context.Context, in *actionInput) (*requestOutput, error) {
	act := desk.Abandon{From: in.from(ctx, "abandon"), Reason: in.Body.Text}
	if err := h.Executor.Abandon(ctx, endpoint.Principal(ctx).Account, in.ID, act); err != nil {
		return nil, problems.Of(err)
	}
	return h.getRequest(ctx, &requestInput{ID: in.ID})
}
