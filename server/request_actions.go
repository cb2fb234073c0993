package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/server/internal/visibility"
	"github.com/fermata-go/fermata/store"
)

// activityOf returns the activity of a request for callers who may see the request.
func (s *Server) activityOf(doc desk.Request, me authn.Principal) *api.Activity {
	activity := &api.Activity{
		Revision: doc.Rev, State: string(doc.State), Summary: doc.Summary(time.Now()), Action: doc.Subject.Action, Risk: doc.Subject.Risk, Requester: doc.Subject.Requester,
		Policy: doc.Subject.Policy, Rules: doc.Subject.Rules, Reason: doc.Subject.Reason, Route: doc.Route.Name, MinAuth: string(doc.Requirement.MinAuth), Verbs: []string{}, Requirements: []api.Requirement{},
	}
	verbs := doc.Requirement.Verbs
	if doc.State == desk.StateOpen {
		activity.Progress = doc.VoteProgress.String()
		activity.MemberOf = s.memberOf(doc, me.ID)
		if may, err := s.config.Executor.AllowedVerbs(doc, me.ID); err != nil {
			activity.IneligibleReason = desk.Code(err)
		} else {
			verbs = may
		}
	}
	for _, verb := range verbs {
		activity.Verbs = append(activity.Verbs, string(verb))
	}
	for _, g := range doc.Requirement.Groups {
		activity.Requirements = append(activity.Requirements, api.Requirement{Groups: g.From, Count: max(1, g.Count)})
	}
	if doc.Claim != nil {
		activity.Claim = &api.Stamp{By: doc.Claim.By, At: doc.Claim.At}
	}
	if !doc.Snoozed.IsZero() {
		activity.SnoozedUntil = &doc.Snoozed
	}
	if p := doc.Pending; p != nil {
		activity.Pending = &api.PendingDecision{Stamp: api.Stamp{By: p.By, At: p.At}, Outcome: string(p.Outcome), EffectiveAt: p.EffectiveAt}
	}
	if e := doc.Edit; e != nil {
		activity.Edit = &api.Edit{Stamp: api.Stamp{By: e.By, At: e.At}, Args: e.Args, Fields: e.Fields}
	}
	addActivity(activity, doc)
	return activity
}

// addActivity adds votes, comments, clarifications and history.
func addActivity(activity *api.Activity, doc desk.Request) {
	note := func(n desk.Note) api.Note { return api.Note{Stamp: api.Stamp{By: n.By, At: n.At}, Text: n.Text} }
	for _, v := range doc.Votes {
		activity.Votes = append(activity.Votes, api.Vote{Stamp: api.Stamp{By: v.By, At: v.At}, Verb: string(v.Verb), Reason: v.Reason, Conditions: visibility.Conditions(v.Conditions)})
	}
	for _, c := range doc.Comments {
		activity.Comments = append(activity.Comments, note(c))
	}
	for _, q := range doc.Clarifications {
		clarification := api.Clarification{Note: note(q.Note)}
		if q.Answer != nil {
			answer := note(*q.Answer)
			clarification.Reply = &answer
		}
		activity.Clarifications = append(activity.Clarifications, clarification)
	}
	for _, r := range doc.Renderings {
		activity.Renderings = append(activity.Renderings, api.RecordedRendering{
			Stamp: api.Stamp{By: r.By, At: r.At}, Rendering: api.Rendering{Hash: r.Hash, Channel: r.Channel, Template: r.Template, Clipped: r.Clipped}, Shown: r.Shown,
		})
	}
	for _, e := range doc.Log {
		activity.History = append(activity.History, api.HistoryEntry{Stamp: api.Stamp{By: e.By, At: e.At}, Revision: e.Rev, Event: string(e.Type), Text: e.Text})
	}
}

// shownRequest returns a request with its activity, as the caller may see it.
func (s *Server) shownRequest(ctx context.Context, q executor.RequestView) api.Request {
	return visibility.Masked(endpoint.Principal(ctx), q, s.withActivity(ctx, q))
}

// withActivity adds the activity of a request, if the desk knows the request. Nothing is masked.
func (s *Server) withActivity(ctx context.Context, q executor.RequestView) api.Request {
	r := s.visibility.Request(q)
	if q.Request == nil {
		return r
	}
	r.Activity, r.Shown = s.activityOf(*q.Request, endpoint.Principal(ctx)), q.Request.Digest()
	r.Activity.Viewers = s.viewersOf(endpoint.Principal(ctx).Account, q.ID)
	if q.State == store.InterruptWithdrawn {
		r.Activity.State = string(desk.StateWithdrawn)
	}
	return r
}

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
			view.Rendering = &desk.Rendering{Hash: r.Hash, Channel: r.Channel, Template: r.Template, Clipped: r.Clipped}
		}
		return view
	}},
	{"claim", "Claim the request", []authn.Role{authn.RoleApprover}, func(f desk.From, _ api.RequestAction) desk.Command { return desk.Claim{From: f} }},
	{"release", "Release the claim", []authn.Role{authn.RoleApprover}, func(f desk.From, _ api.RequestAction) desk.Command { return desk.Release{From: f} }},
	{"undo", "Withdraw your vote within its undo window", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Undo{From: f, Reason: b.Text} }},
	{"comment", "Add a comment", []authn.Role{authn.RoleAgent, authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command { return desk.Comment{From: f, Text: b.Text} }},
	{"clarify", "Ask the requester for clarification; the request stays open", []authn.Role{authn.RoleApprover}, func(f desk.From, b api.RequestAction) desk.Command {
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

func (s *Server) registerRequestActions() {
	for _, a := range requestActions {
		op := endpoint.New(a.name+"-request", http.MethodPost, api.Prefix+"/requests/{id}/"+a.name, a.summary, a.roles...)
		// read-only roles may also report a view; it does not count as an eligible view
		if name, _ := desk.CommandOrigin(a.act(desk.From{}, api.RequestAction{})); name != desk.CommandView {
			endpoint.SetAction(op, name)
		}
		huma.Register(s.api, op, func(ctx context.Context, in *actionInput) (*requestOutput, error) {
			return s.act(ctx, in.ID, a.act(in.from(ctx, a.name), in.Body))
		})
	}
	abandon := endpoint.New("abandon-request", http.MethodPost, api.Prefix+"/requests/{id}/abandon", "Cancel the run that this request belongs to", authn.RoleAgent, authn.RoleApprover)
	endpoint.SetAction(abandon, desk.CommandAbandon)
	huma.Register(s.api, abandon, s.abandon)
	s.registerReveal()
}

func (s *Server) act(ctx context.Context, id string, act desk.Command) (*requestOutput, error) {
	me := endpoint.Principal(ctx)
	if _, err := s.config.Executor.Act(ctx, me.Account, id, act); err != nil {
		return nil, problems.Of(err)
	}
	return s.getRequest(ctx, &requestInput{ID: id})
}

func (s *Server) abandon(ctx context.Context, in *actionInput) (*requestOutput, error) {
	act := desk.Abandon{From: in.from(ctx, "abandon"), Reason: in.Body.Text}
	if err := s.config.Executor.Abandon(ctx, endpoint.Principal(ctx).Account, in.ID, act); err != nil {
		return nil, problems.Of(err)
	}
	return s.getRequest(ctx, &requestInput{ID: in.ID})
}
