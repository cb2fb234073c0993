package requests

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

// activityOf returns the activity of a request for callers who may see the request.
func (h *Handlers) activityOf(doc desk.Request, me authn.Principal) *api.Activity {
	activity := &api.Activity{
		Revision: doc.Rev, State: string(doc.State), Summary: doc.Summary(time.Now()), Action: doc.Subject.Action, Risk: doc.Subject.Risk, Requester: doc.Subject.Requester, StatedRequester: doc.Subject.StatedRequester, StatedEnvironment: doc.Subject.StatedEnvironment,
		Policy: doc.Subject.Policy, Rules: doc.Subject.Rules, Reason: doc.Subject.Reason, Route: doc.Route.Name, MinAuth: string(doc.Requirement.MinAuth), Editable: doc.Requirement.Editable, EditReasons: doc.Requirement.EditReasons, RejectReasons: doc.Requirement.RejectReasons, Returns: doc.Requirement.OnEscalate == requirement.EscalateReturns, Verbs: []string{}, Requirements: []api.Requirement{},
	}
	verbs := doc.Requirement.Verbs
	if doc.State == desk.StateOpen {
		activity.Progress = doc.VoteProgress.String()
		activity.MemberOf, activity.Voted = h.memberOf(doc, me.ID), doc.HasVoted(me.ID)
		if may, err := h.Executor.AllowedVerbs(doc, me.ID); err != nil {
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
			Stamp: api.Stamp{By: r.By, At: r.At}, Rendering: api.Rendering{Hash: r.Hash, Channel: r.Channel, Template: r.Template, Visible: r.Visible}, Shown: r.Shown,
		})
	}
	for _, e := range doc.Log {
		activity.History = append(activity.History, api.HistoryEntry{Stamp: api.Stamp{By: e.By, At: e.At}, Revision: e.Rev, Event: string(e.Type), Text: e.Text})
	}
}

// shownRequest returns a request with its activity, as the caller may see it.
func (h *Handlers) shownRequest(ctx context.Context, q executor.RequestView) api.Request {
	return visibility.Masked(endpoint.Principal(ctx), q, h.withActivity(ctx, q))
}

// presented returns a request with its words in a language.
func presented(q executor.RequestView, r api.Request, language string) api.Request {
	if q.Request == nil || r.Activity == nil {
		return r
	}
	s := presentation.Source{Request: *q.Request, Data: r.Data, Masked: r.Masked, Address: r.Address, AnswerSchema: r.AnswerSchema, Agent: q.Graph, Language: language}
	if r.Activity.Edit != nil {
		s.Edited = r.Activity.Edit.Args
	}
	for _, verb := range r.Activity.Verbs {
		if r.Activity.IneligibleReason == "" {
			s.Verbs = append(s.Verbs, requirement.Verb(verb))
		}
	}
	r.Presentation = new(presentation.Of(s))
	return r
}

// withActivity adds the activity of a request, if the desk knows the request. Nothing is masked.
func (h *Handlers) withActivity(ctx context.Context, q executor.RequestView) api.Request {
	r := h.Visibility.Request(q)
	if q.Request == nil {
		return r
	}
	r.Activity, r.Shown = h.activityOf(*q.Request, endpoint.Principal(ctx)), q.Request.Digest()
	if q.Request.State == desk.StateOpen && q.Request.Requirement.IsTyped() {
		var asked fermata.ApprovalRequest
		_ = json.Unmarshal(r.Data, &asked) // unreadable data has no arguments
		if r.Activity.Confirm = q.Request.ConfirmText(asked.Args); r.Activity.Confirm != "" {
			r.Activity.ConfirmFields = q.Request.Requirement.Confirm
		}
	}
	r.Activity.Viewers = h.viewersOf(endpoint.Principal(ctx).Account, q.ID)
	if q.State == store.InterruptWithdrawn {
		r.Activity.State = string(desk.StateWithdrawn)
	}
	return r
}
