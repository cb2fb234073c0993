package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
)

// Outcome is a fermata.Outcome, or that it is not known yet.
type Outcome struct {
	fermata.Outcome
	Pending *api.Pending
}

// outcomeOutput writes itself: it is an outcome, or a stream.
type outcomeOutput struct{ Body func(huma.Context) }

// run does what is wanted, and says how far it has come: with 202 if nobody knows yet, or wants to know.
func (s *Server) startOrResume(ctx context.Context, request executor.RunRequest) (*outcomeOutput, error) {
	outcome, err := s.config.Executor.Run(ctx, request)
	pending, under := errors.AsType[*executor.PendingError](err)
	switch {
	case under:
		return acceptedOutput(pending.Run, pending.StateKey), nil
	case err != nil:
		return nil, startProblem(request, err)
	case request.Wait < 0: // it happens to be known, but nobody asked for it
		return acceptedOutput(runIDOf(outcome), request.StateKey), nil
	}
	if outcome, err = s.addDeadlines(ctx, request.Account, outcome); err != nil {
		return nil, problemOf(err)
	}
	return newOutcomeOutput(http.StatusOK, "", Outcome{Outcome: outcome}), nil
}

func acceptedOutput(run, stateKey string) *outcomeOutput {
	location := api.Prefix + "/runs/" + url.PathEscape(stateKey)
	return newOutcomeOutput(http.StatusAccepted, location, Outcome{Pending: &api.Pending{RunID: run, StateKey: stateKey}})
}

func newOutcomeOutput(status int, location string, outcome Outcome) *outcomeOutput {
	return &outcomeOutput{Body: func(hctx huma.Context) {
		if location != "" {
			hctx.SetHeader("Location", location)
		}
		hctx.SetHeader("Content-Type", "application/json")
		hctx.SetStatus(status)
		_ = json.NewEncoder(hctx.BodyWriter()).Encode(outcome) // whoever is gone does not read it
	}}
}

// runIDOf is the id of the run that an outcome is of.
func runIDOf(outcome fermata.Outcome) string {
	switch o := outcome.(type) {
	case fermata.Completed:
		return o.Run
	case fermata.NeedsInput:
		return o.Run
	case fermata.Failed:
		return o.Run
	}
	return ""
}

// dress says of every open question by which name people know it, and until when they can answer.
func (s *Server) addDeadlines(ctx context.Context, account string, outcome fermata.Outcome) (fermata.Outcome, error) {
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok {
		return outcome, nil
	}
	deadlines, err := s.config.Executor.Deadlines(ctx, account, waiting.Run)
	return withDeadlines(waiting, deadlines), err
}

func withDeadlines(waiting fermata.NeedsInput, deadlines map[string]time.Time) fermata.NeedsInput {
	open := make([]fermata.OpenInterrupt, len(waiting.Interrupts))
	for n, i := range waiting.Interrupts {
		i.RequestID = i.ID
		if deadline, ok := deadlines[i.ID]; ok {
			i.Deadline = &deadline
		}
		open[n] = i
	}
	waiting.Interrupts = open
	return waiting
}

// outcomeOf is what a run that was looked at has come to; nil while it is under way.
func outcomeOf(view executor.RunView) fermata.Outcome {
	waiting, ok := view.Outcome.(fermata.NeedsInput)
	if !ok {
		return view.Outcome
	}
	deadlines := make(map[string]time.Time)
	for _, q := range view.Interrupts {
		if !q.Deadline.IsZero() {
			deadlines[q.ID] = q.Deadline
		}
	}
	return withDeadlines(waiting, deadlines)
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
	const name = "Outcome"
	if r.Map()[name] == nil {
		r.Map()[name] = outcomeSchema(r)
	}
	return &huma.Schema{Ref: componentPrefix + name}
}

// componentPrefix is where the document keeps the schemas that have a name.
const componentPrefix = "#/components/schemas/"

func outcomeSchema(r huma.Registry) *huma.Schema {
	str, anything := &huma.Schema{Type: "string"}, &huma.Schema{}
	object := func(status string, required []string, properties map[string]*huma.Schema) *huma.Schema {
		properties["status"], properties["runId"] = &huma.Schema{Type: "string", Enum: []any{status}}, str
		return &huma.Schema{Type: "object", Required: append(required, "status"), Properties: properties, AdditionalProperties: false}
	}
	envelope := &huma.Schema{Type: "object", Required: []string{"kind"}, Properties: map[string]*huma.Schema{"kind": str, "data": anything}, AdditionalProperties: false}
	usage := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"inputTokens": {Type: "integer"}, "outputTokens": {Type: "integer"}}}
	return &huma.Schema{OneOf: []*huma.Schema{
		object("completed", []string{"runId"}, map[string]*huma.Schema{"content": str, "output": anything, "usage": usage, "finishReason": str}),
		object("needs_input", []string{"runId", "stateKey", "interrupt", "interrupts"}, map[string]*huma.Schema{
			"stateKey": str, "interrupt": envelope, "interrupts": {Type: "array", Items: openInterruptSchema(r)},
		}),
		object("error", []string{"runId", "error"}, map[string]*huma.Schema{"error": str, "message": str}),
		object(api.StatusPending, []string{"stateKey"}, map[string]*huma.Schema{"stateKey": str}),
	}}
}

// openInterruptSchema describes a question that a run waits for.
func openInterruptSchema(r huma.Registry) *huma.Schema {
	const name = "OpenInterrupt"
	str := &huma.Schema{Type: "string"}
	r.Map()[name] = &huma.Schema{
		Type: "object", AdditionalProperties: false, Required: []string{"id", "address", "kind", "requestId"},
		Properties: map[string]*huma.Schema{
			"id": str, "address": str, "kind": str, "data": {}, "answerSchema": {},
			"requestId": {Type: "string", Description: "The request that people see."},
			"deadline":  {Type: "string", Format: "date-time", Description: "Until when it can be answered; not there if for ever."},
		},
	}
	return &huma.Schema{Ref: componentPrefix + name}
}

// outcomes are the answers of a call that has an outcome.
func (s *Server) outcomeResponses() map[string]*huma.Response {
	content := map[string]*huma.MediaType{"application/json": {Schema: Outcome{}.Schema(s.api.OpenAPI().Components.Schemas)}}
	location := map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: "string"}, Description: "Where to look for the outcome."}}
	return map[string]*huma.Response{
		"200": {Description: "How far the run has come.", Content: content},
		"202": {Description: "It is recorded, and under way.", Content: content, Headers: location},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")},
		}},
	}
}
