package outcomes

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// Schema returns the OpenAPI schema.
func (Outcome) Schema(r huma.Registry) *huma.Schema {
	const name = "Outcome"
	if r.Map()[name] == nil {
		r.Map()[name] = outcomeSchema(r)
	}
	return &huma.Schema{Ref: endpoint.ComponentPrefix + name}
}

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
	return &huma.Schema{Ref: endpoint.ComponentPrefix + name}
}

// Responses describes the responses of calls that return an outcome.
func Responses(to huma.API) map[string]*huma.Response {
	content := map[string]*huma.MediaType{"application/json": {Schema: Outcome{}.Schema(to.OpenAPI().Components.Schemas)}}
	location := map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: "string"}, Description: "URL of the run, to read the outcome later."}}
	return map[string]*huma.Response{
		"200": {Description: "The current outcome of the run.", Content: content},
		"202": {Description: "The request is recorded and in progress.", Content: content, Headers: location},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problems.Problem](), true, "")},
		}},
	}
}
