package runs

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

type chatInput struct {
	Prefer         string `header:"Prefer" doc:"respond-async returns 202 without waiting for the outcome; Location names the run. wait=N waits up to N seconds, then returns 202."`
	Accept         string `header:"Accept" doc:"text/event-stream streams the run's events and ends with the outcome."`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"256" doc:"Idempotency key for a start without a stateKey. The same start with the same key is executed once."`
	LastEventID    string `header:"Last-Event-ID" doc:"When reconnecting to a lost stream: the id of the last event received."`
	Body           api.Chat
}

func (h *Handlers) registerChat(to huma.API) {
	op := endpoint.New("chat", http.MethodPost, api.Prefix+"/ai/chat", "Start a run or answer its open request", authn.RoleAgent, authn.RoleApprover)
	op.MaxBodyBytes = h.Limits.Body
	op.Description = "A body with a resumeId answers and needs the role approver. A body without one starts a run and needs the role agent. Both are idempotent.\n\n" +
		"resumeValue answers the only open interrupt. An approval, a gate or an effect in doubt is answered only if the body names it, with interruptId or shown: " +
		"otherwise a repeated click could answer the next one. The problem interrupt_id_required has its id.\n\n" +
		"As a stream, the events are: run (the request is recorded), the run's own events with their ids, step and token (see run-events), " +
		"interrupt (once for each open interrupt), and finally outcome, or problem. Losing the connection changes nothing: send the same request again, or follow the run's events."
	op.Responses = outcomes.Responses(to)
	op.Responses["200"].Content = maps.Clone(op.Responses["200"].Content)
	op.Responses["200"].Content[stream.MediaType] = streamSchema(to)
	huma.Register(to, op, h.chat)
}

func (h *Handlers) chat(ctx context.Context, in *chatInput) (*outcomes.Output, error) {
	request, err := h.parseChat(ctx, in)
	if err != nil {
		return nil, err
	}
	if request.Wait >= 0 && stream.Accepted(in.Accept) {
		return h.chatStream(ctx, request, in.LastEventID)
	}
	return h.startOrResume(ctx, request)
}

// parseChat converts the body to an executor request.
func (h *Handlers) parseChat(ctx context.Context, in *chatInput) (executor.RunRequest, error) {
	b, me := in.Body, endpoint.Principal(ctx)
	request := executor.RunRequest{Account: me.Account, StateKey: b.StateKey, Actor: me.ID, Kind: me.ActorKind(), Via: me.Auth.Via(), Auth: me.Auth.Strength}
	wait, err := endpoint.Prefer(in.Prefer)
	if err != nil {
		return request, err
	}
	request.Wait = wait
	if b.ResumeID == "" {
		if !me.Has(authn.RoleAgent) {
			return request, problems.New("forbidden", "a start needs the role agent")
		}
		if b.GraphID == "" || b.ResumeValue != nil || b.ResumeTargets != nil || b.Shown != nil || b.Confirm != nil || b.InterruptID != "" {
			return request, problems.New("bad_request", "a start has a graphId and no answers; a resume has a resumeId")
		}
		if err := checkStateKey(b.StateKey); err != nil {
			return request, err
		}
		request.Graph, request.Input, request.StartID, request.Supersede = b.GraphID, b.Input, b.StartID, b.Supersede
		applyIdempotencyKey(&request, in.IdempotencyKey)
		return request, h.admitStart(ctx, request)
	}
	if !me.Has(authn.RoleApprover) {
		if len(b.ResumeTargets) > 0 { // one audit record is enough
			endpoint.RecordForbidden(ctx, h.Executor, h.Log, slices.Min(slices.Collect(maps.Keys(b.ResumeTargets))), endpoint.ActionDecide)
		}
		return request, problems.New("forbidden", "an answer needs the role approver")
	}
	if b.GraphID != "" || b.Input != nil || b.StartID != "" || b.Supersede {
		return request, problems.New("bad_request", "a resume has answers and no fields of a start")
	}
	request.ResumeID, request.Value = b.ResumeID, b.ResumeValue
	if id := b.InterruptID; id != "" || b.ResumeValue != nil && len(b.Shown) > 0 {
		if id == "" && len(b.Shown) == 1 {
			id = slices.Collect(maps.Keys(b.Shown))[0]
		}
		if id == "" || b.ResumeValue == nil || b.ResumeTargets != nil {
			return request, problems.New("bad_request", "interruptId names the interrupt that resumeValue answers; use resumeTargets for several")
		}
		request.Value, request.Targets = nil, map[string]executor.Answer{id: {Value: b.ResumeValue, Shown: b.Shown[id], Confirm: b.Confirm[id]}}
		return request, h.checkTargets(ctx, request)
	}
	for id, value := range b.ResumeTargets {
		if request.Targets == nil {
			request.Targets = make(map[string]executor.Answer)
		}
		request.Targets[id] = executor.Answer{Value: value, Shown: b.Shown[id], Confirm: b.Confirm[id]}
	}
	return request, h.checkTargets(ctx, request)
}

// checkTargets rejects answers to requests that the caller may not see.
func (h *Handlers) checkTargets(ctx context.Context, request executor.RunRequest) error {
	me := endpoint.Principal(ctx)
	if me.Has() {
		return nil
	}
	for id := range request.Targets {
		if _, visible, err := h.Visibility.MaySeeID(ctx, me, id); err != nil {
			return problems.Of(err)
		} else if !visible {
			return problems.ForResult(store.ResultNotFound)
		}
	}
	if request.Value == nil || request.StateKey == "" {
		return nil
	}
	view, err := h.Executor.GetRun(ctx, me.Account, request.StateKey)
	if errors.Is(err, executor.ErrRunNotFound) { // the executor answers repetitions
		return nil
	}
	if err != nil {
		return problems.Of(err)
	}
	shown, err := h.Visibility.Requests(me, view)
	if err != nil {
		return problems.Of(err)
	}
	open := func(list []executor.RequestView) (n int) {
		for _, q := range list {
			if q.State == store.InterruptPending {
				n++
			}
		}
		return n
	}
	switch visible, all := open(shown), open(view.Interrupts); {
	case visible == all:
		return nil
	case visible == 0:
		return problems.Of(&executor.RefusedError{Result: store.ResultWithdrawn})
	}
	return problems.New("bad_request", "name the request that is answered in resumeTargets")
}

// startOrResume starts or resumes a run and returns its outcome. It answers 202 if the outcome is
// not known yet, or if the caller does not wait for it.
func (h *Handlers) startOrResume(ctx context.Context, request executor.RunRequest) (*outcomes.Output, error) {
	outcome, err := h.Executor.Run(ctx, request)
	if err != nil && !errors.Is(err, executor.ErrPending) {
		return nil, startProblem(request, err)
	}
	if err == nil && request.Wait < 0 { // the outcome is known, but the caller did not ask for it
		return outcomes.Accepted(visibility.RunID(outcome), request.StateKey), nil
	}
	return outcomes.Respond(ctx, h.Visibility, outcome, err)
}
