package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
)

type chatInput struct {
	Prefer string `header:"Prefer" doc:"respond-async does not wait for the outcome; wait=N waits N seconds."`
	Accept string `header:"Accept"`
	Body   api.Chat
}

// outcomeOutput is how far a run has come. Its status is 202 if nobody knows yet.
type outcomeOutput struct {
	Status int
	Body   Outcome
}

func (s *Server) registerChat() {
	op := operation("chat", http.MethodPost, api.Prefix+"/ai/chat", "Start a run, or answer what it asks", Agent, Approver)
	op.MaxBodyBytes = s.config.Limits.Body
	op.Description = "A request with a resumeId answers, and needs the role approver; one without starts, and needs the role agent. Both can be repeated at will, and count once."
	huma.Register(s.api, op, s.chat)
}

func (s *Server) chat(ctx context.Context, in *chatInput) (*outcomeOutput, error) {
	request, err := s.chatRequest(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, request)
}

// chatRequest reads what is wanted.
func (s *Server) chatRequest(ctx context.Context, in *chatInput) (executor.Request, error) {
	b, me := in.Body, who(ctx)
	request := executor.Request{Account: me.Account, StateKey: b.StateKey, Actor: me.ID, Via: "http"}
	wait, err := prefer(in.Prefer)
	if err != nil {
		return request, err
	}
	request.Wait = wait
	if b.ResumeID == "" {
		if !me.Has(Agent) {
			return request, problem("forbidden", "a start needs the role agent")
		}
		if b.GraphID == "" || b.ResumeValue != nil || b.ResumeTargets != nil || b.Shown != nil {
			return request, problem("bad_request", "a start has a graphId, and no answers; a resume has a resumeId")
		}
		request.Graph, request.Input, request.StartID, request.Supersede = b.GraphID, b.Input, b.StartID, b.Supersede
		return request, s.roomFor(ctx, me)
	}
	if !me.Has(Approver) {
		return request, problem("forbidden", "an answer needs the role approver")
	}
	if b.GraphID != "" || b.Input != nil || b.StartID != "" || b.Supersede {
		return request, problem("bad_request", "a resume has answers, and nothing of a start")
	}
	request.ResumeID, request.Value = b.ResumeID, b.ResumeValue
	for id, value := range b.ResumeTargets {
		if request.Targets == nil {
			request.Targets = make(map[string]executor.Answer)
		}
		request.Targets[id] = executor.Answer{Value: value, Shown: b.Shown[id]}
	}
	return request, nil
}

// run does what is wanted, and says how far it has come.
func (s *Server) run(ctx context.Context, request executor.Request) (*outcomeOutput, error) {
	outcome, err := s.config.Executor.Run(ctx, request)
	if pending, ok := errors.AsType[*executor.PendingError](err); ok {
		return &outcomeOutput{Status: http.StatusAccepted, Body: Outcome{Pending: &api.Pending{Run: pending.Run, StateKey: pending.StateKey}}}, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	return &outcomeOutput{Status: http.StatusOK, Body: Outcome{Outcome: outcome}}, nil
}

// prefer reads the header Prefer, RFC 7240, as far as we know it.
func prefer(header string) (wait time.Duration, err error) {
	for _, part := range strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ';' }) {
		part = strings.TrimSpace(part)
		if strings.EqualFold(part, "respond-async") {
			wait = -1
		}
		seconds, ok := strings.CutPrefix(part, "wait=")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(seconds, `"`))
		if err != nil || n < 0 || n > maxWait {
			return 0, problem("bad_request", "Prefer: wait=N takes 0 to %d seconds", maxWait)
		}
		if wait = time.Duration(n) * time.Second; n == 0 {
			wait = -1
		}
	}
	return wait, nil
}

// maxWait is how many seconds a caller may wait.
const maxWait = 60

// Outcome is a fermata.Outcome, or that it is not known yet.
type Outcome struct {
	fermata.Outcome
	Pending *api.Pending
}

// MarshalJSON writes what there is.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Pending == nil {
		return json.Marshal(o.Outcome)
	}
	return json.Marshal(struct {
		Status string `json:"status"`
		*api.Pending
	}{api.StatusPending, o.Pending})
}

// Schema describes it.
func (Outcome) Schema(r huma.Registry) *huma.Schema {
	text := func(words ...any) *huma.Schema { return &huma.Schema{Type: "string", Enum: words} }
	anything := &huma.Schema{}
	str := &huma.Schema{Type: "string"}
	object := func(status string, required []string, properties map[string]*huma.Schema) *huma.Schema {
		properties["status"], properties["runId"] = text(status), str
		return &huma.Schema{Type: "object", Required: append(required, "status"), Properties: properties, AdditionalProperties: false}
	}
	envelope := &huma.Schema{Type: "object", Required: []string{"kind"}, Properties: map[string]*huma.Schema{"kind": str, "data": anything}}
	interrupt := &huma.Schema{Type: "object", Required: []string{"id", "address", "kind"}, Properties: map[string]*huma.Schema{
		"id": str, "address": str, "kind": str, "data": anything, "answerSchema": anything,
	}}
	usage := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"inputTokens": {Type: "integer"}, "outputTokens": {Type: "integer"}}}
	return &huma.Schema{OneOf: []*huma.Schema{
		object("completed", []string{"runId"}, map[string]*huma.Schema{"content": str, "output": anything, "usage": usage, "finishReason": str}),
		object("needs_input", []string{"runId", "stateKey", "interrupts"}, map[string]*huma.Schema{"stateKey": str, "interrupt": envelope, "interrupts": {Type: "array", Items: interrupt}}),
		object("error", []string{"runId", "error"}, map[string]*huma.Schema{"error": str, "message": str}),
		object(api.StatusPending, []string{"stateKey"}, map[string]*huma.Schema{"stateKey": str}),
	}}
}
