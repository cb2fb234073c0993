package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/server/internal/visibility"
)

// Outcome is a fermata.Outcome, or a pending one.
type Outcome struct {
	fermata.Outcome
	Pending *api.Pending
}

// outcomeOutput writes an outcome or a stream.
type outcomeOutput struct{ Body func(huma.Context) }

// startOrResume starts or resumes a run and returns its outcome. It answers 202 if the outcome is
// not known yet, or if the caller does not wait for it.
func (s *Server) startOrResume(ctx context.Context, request executor.RunRequest) (*outcomeOutput, error) {
	outcome, err := s.config.Executor.Run(ctx, request)
	if err != nil && !errors.Is(err, executor.ErrPending) {
		return nil, startProblem(request, err)
	}
	if err == nil && request.Wait < 0 { // the outcome is known, but the caller did not ask for it
		return acceptedOutput(visibility.RunID(outcome), request.StateKey), nil
	}
	return s.toOutput(ctx, outcome, err)
}

// toOutput converts the result of a start or a decision. It answers 202 for a PendingError, and if
// the run waits only for requests that the caller may not see.
func (s *Server) toOutput(ctx context.Context, outcome fermata.Outcome, err error) (*outcomeOutput, error) {
	if pending, ok := errors.AsType[*executor.PendingError](err); ok {
		return pendingOutput(*pending), nil
	}
	if err == nil {
		shown, failure := s.visibility.Outcome(ctx, endpoint.Principal(ctx), outcome)
		if waiting, ok := outcome.(fermata.NeedsInput); ok && shown == nil && failure == nil {
			return acceptedOutput(waiting.Run, waiting.StateKey), nil
		}
		outcome, err = shown, failure
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return newOutcomeOutput(http.StatusOK, "", Outcome{Outcome: outcome}), nil
}

func acceptedOutput(run, stateKey string) *outcomeOutput {
	return pendingOutput(executor.PendingError{Run: run, StateKey: stateKey})
}

func pendingOutput(pending executor.PendingError) *outcomeOutput {
	location := api.Prefix + "/runs/" + url.PathEscape(pending.StateKey)
	return newOutcomeOutput(http.StatusAccepted, location, Outcome{Pending: pendingOf(pending)})
}

func pendingOf(pending executor.PendingError) *api.Pending {
	p := &api.Pending{RunID: pending.Run, StateKey: pending.StateKey}
	if !pending.EffectiveAt.IsZero() {
		p.EffectiveAt = &pending.EffectiveAt
	}
	return p
}

func newOutcomeOutput(status int, location string, outcome Outcome) *outcomeOutput {
	return &outcomeOutput{Body: func(hctx huma.Context) {
		if location != "" {
			hctx.SetHeader("Location", location)
		}
		hctx.SetHeader("Content-Type", "application/json")
		hctx.SetStatus(status)
		// a disconnected client does not read it
		_ = json.NewEncoder(hctx.BodyWriter()).Encode(outcome)
	}}
}

// MarshalJSON encodes the outcome, or the pending result.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if done, ok := o.Outcome.(fermata.Completed); ok && done.Usage != nil {
		return marshalCompleted(done)
	}
	if o.Pending == nil {
		return json.Marshal(o.Outcome)
	}
	return json.Marshal(struct {
		Status string `json:"status"`
		*api.Pending
	}{api.StatusPending, o.Pending})
}

// usage is a fermata.Usage, also under the names that many model APIs use.
type usage struct {
	fermata.Usage
	PromptTokens     int64 `json:"promptTokens"`
	CompletionTokens int64 `json:"completionTokens"`
}

func marshalCompleted(done fermata.Completed) ([]byte, error) {
	type plain fermata.Completed // without its MarshalJSON
	return json.Marshal(struct {
		Status string `json:"status"`
		plain
		Usage usage `json:"usage"`
	}{"completed", plain(done), usage{*done.Usage, done.Usage.InputTokens, done.Usage.OutputTokens}})
}

// Schema returns the OpenAPI schema.
func (Outcome) Schema(r huma.Registry) *huma.Schema {
	const name = "Outcome"
	if r.Map()[name] == nil {
		r.Map()[name] = outcomeSchema(r)
	}
	return &huma.Schema{Ref: componentPrefix + name}
}

// componentPrefix is the path of named schemas in the document.
const componentPrefix = "#/components/schemas/"

func outcomeSchema(r huma.Registry) *huma.Schema {
	str, anything := &huma.Schema{Type: "string"}, &huma.Schema{}
	object := func(status string, required []string, properties map[string]*huma.Schema) *huma.Schema {
		properties["status"], properties["runId"] = &huma.Schema{Type: "string", Enum: []any{status}}, str
		return &huma.Schema{Type: "object", Required: append(required, "status"), Properties: properties, AdditionalProperties: false}
	}
	envelope := &huma.Schema{Type: "object", Required: []string{"kind"}, Properties: map[string]*huma.Schema{"kind": str, "data": anything}, AdditionalProperties: false}
	usage := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{
		"inputTokens": {Type: "integer"}, "outputTokens": {Type: "integer"},
		"promptTokens": {Type: "integer", Description: "The same as inputTokens."}, "completionTokens": {Type: "integer", Description: "The same as outputTokens."},
	}}
	return &huma.Schema{OneOf: []*huma.Schema{
		object("completed", []string{"runId"}, map[string]*huma.Schema{"content": str, "output": anything, "usage": usage, "finishReason": str}),
		object("needs_input", []string{"runId", "stateKey", "interrupt", "interrupts"}, map[string]*huma.Schema{
			"stateKey": str, "interrupt": envelope, "interrupts": {Type: "array", Items: openInterruptSchema(r)},
			"deduplicated": {Type: "boolean", Description: "An identical request of the same agent was open, and this is its outcome. No second one was created."},
			"failure": {
				Type: "object", AdditionalProperties: false, Required: []string{"error"}, Properties: map[string]*huma.Schema{"error": str, "message": str},
				Description: "A part of the run has failed next to the open interrupts. It is tried again with the next answer.",
			},
			"unused": {Type: "array", Description: "Answers that were accepted and not used, because what they were about has changed.", Items: &huma.Schema{
				Type: "object", AdditionalProperties: false, Required: []string{"id", "reason"}, Properties: map[string]*huma.Schema{"id": str, "reason": str},
			}},
		}),
		object("error", []string{"runId", "error"}, map[string]*huma.Schema{"error": str, "message": str}),
		object(api.StatusPending, []string{"stateKey"}, map[string]*huma.Schema{
			"stateKey":    str,
			"effectiveAt": {Type: "string", Format: "date-time", Description: "The end of the undo window of a decision: it takes effect then, and can be withdrawn until then."},
		}),
	}}
}

// openInterruptSchema describes an open interrupt.
func openInterruptSchema(r huma.Registry) *huma.Schema {
	const name = "OpenInterrupt"
	str := &huma.Schema{Type: "string"}
	r.Map()[name] = &huma.Schema{
		Type: "object", AdditionalProperties: false, Required: []string{"id", "address", "kind", "requestId"},
		Properties: map[string]*huma.Schema{
			"id": str, "address": str, "kind": str, "data": {}, "answerSchema": {},
			"requestId": {Type: "string", Description: "The id of the request that people see."},
			"deadline":  {Type: "string", Format: "date-time", Description: "The deadline for an answer; omitted if there is none."},
			"masked":    {Type: "array", Items: str, Description: "JSON pointers of sensitive values that are masked in data; omitted if there are none."},

			// of an interrupt that is asked again
			"supersedes": {Type: "string", Description: "The id of the interrupt that this one replaces, because what it showed has changed."},
			"changed":    {Type: "array", Items: str, Description: "With supersedes: JSON pointers of the differences in data."},
			"refused":    {Type: "string", Description: "Why the last answer to this interrupt was not used."},
		},
	}
	return &huma.Schema{Ref: componentPrefix + name}
}

// outcomeResponses describes the responses of calls that return an outcome.
func (s *Server) outcomeResponses() map[string]*huma.Response {
	content := map[string]*huma.MediaType{"application/json": {Schema: Outcome{}.Schema(s.api.OpenAPI().Components.Schemas)}}
	location := map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: "string"}, Description: "URL of the run, to read the outcome later."}}
	return map[string]*huma.Response{
		"200": {Description: "The current outcome of the run.", Content: content},
		"202": {Description: "The request is recorded and in progress.", Content: content, Headers: location},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problems.Problem](), true, "")},
		}},
	}
}
