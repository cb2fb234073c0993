package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// Model is a language model. Its methods must be safe for concurrent use.
//
// Generate returns a [*ModelError] for errors of the service, and the context's error if the
// context is done first.
type Model interface {
	Generate(ctx context.Context, request *Request) (*Response, error)
}

// Streamer is a model that can stream its answer. The last chunk, and only that one, has the
// Response: the answer that Generate would have returned. After an error nothing follows; a stream
// that ends without a Response is an error.
type Streamer interface {
	Model
	Stream(ctx context.Context, request *Request) iter.Seq2[*Chunk, error]
}

// Request is a model request. Models must not modify it.
type Request struct {
	// Messages is the conversation, system messages first.
	Messages []Message
	// Tools are the tools that the model may call.
	Tools []ToolSpec
	// MustCall is the name of a tool that the model must call; "" lets the model choose.
	MustCall string
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments: an object.
	Schema json.RawMessage
}

// Response is the answer of a model.
type Response struct {
	Message Message
	Usage   Usage
	// Model is the name of the model that answered, as reported by the service.
	Model string
	// FinishReason is the reason why the model stopped.
	FinishReason FinishReason
}

// Chunk is one chunk of a streamed answer.
type Chunk struct {
	Text     string
	Response *Response
}

// FinishReason is the reason why a model stopped.
type FinishReason string

// The reasons why models stop. Other reasons of a service are passed unchanged.
const (
	FinishStop FinishReason = "stop" // the answer is complete
	// it requests tool calls; also with any other reason, if the message has calls
	FinishToolCalls FinishReason = "tool_calls"
	// it was cut off, possibly inside its last call
	FinishLength FinishReason = "length"
	// the service refused, possibly inside the last call
	FinishContentFilter FinishReason = "content_filter"
)

// markCutOff marks the call that may be incomplete. Its arguments do not show that: some services
// complete them to valid JSON.
func (r *Response) markCutOff() {
	if calls := r.Message.ToolCalls; len(calls) > 0 && (r.FinishReason == FinishLength || r.FinishReason == FinishContentFilter) {
		calls[len(calls)-1].CutOff = true //mutate:cut-off-call
	}
}

// Usage is the token usage of a model call.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// CachedTokens are the input tokens that were read from the service's cache; they are part of
	// InputTokens.
	CachedTokens int64 `json:"cachedTokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.CachedTokens + v.CachedTokens}
}

// sanitized limits the reported usage of one call to plausible values, so that a wrong report
// cannot lower the usage.
func (u Usage) sanitized() Usage {
	const most = 1 << 40
	return Usage{min(max(u.InputTokens, 0), most), min(max(u.OutputTokens, 0), most), min(max(u.CachedTokens, 0), most)}
}

// ModelError is an error of a model service. The run can be resumed; the model call is then
// repeated.
type ModelError struct {
	// Model is the requested model; Status is the HTTP status (0 if there is none).
	Model  string
	Status int
	// Temporary reports that the same request may succeed later: the service is overloaded or
	// limits the rate.
	Temporary bool
	// Err is the client's error. It never contains the API key.
	Err error
}

func (e *ModelError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("agent: model %s: %v", e.Model, e.Err)
	}
	return fmt.Sprintf("agent: model %s: status %d: %v", e.Model, e.Status, e.Err)
}

func (e *ModelError) Unwrap() error { return e.Err }
