package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// Model is a language model. Its methods may be called from several goroutines at once.
//
// Generate returns a [*ModelError] for what the service answered, and the context's error when that ended first.
type Model interface {
	Generate(ctx context.Context, request *Request) (*Response, error)
}

// Streamer is a model that can give its answer in pieces. The last piece, and only that one, has the Response: the answer as
// Generate would have returned it. After an error nothing more comes; a stream that ends without a Response is an error too.
type Streamer interface {
	Model
	Stream(ctx context.Context, request *Request) iter.Seq2[*Chunk, error]
}

// Request is what a model is asked. Models must not change it.
type Request struct {
	// Messages is the conversation, system messages first.
	Messages []Message
	// Tools are what the model may call.
	Tools []ToolSpec
	// MustCall is the name of a tool that the model has to call; "" leaves it to the model.
	MustCall string
}

// ToolSpec is a tool as a model sees it.
type ToolSpec struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments: an object.
	Schema json.RawMessage
}

// Response is what a model said.
type Response struct {
	Message Message
	Usage   Usage
	// Model is the name of the model that answered, as the service reports it.
	Model string
	// FinishReason says why the model stopped.
	FinishReason FinishReason
}

// Chunk is one piece of a streamed answer.
type Chunk struct {
	Text     string
	Response *Response
}

// FinishReason says why a model stopped.
type FinishReason string

// Why models stop. A service's reason that is none of these is passed on as it is.
const (
	FinishStop          FinishReason = "stop"           // it was done
	FinishToolCalls     FinishReason = "tool_calls"     // it wants tools called; so it does with any other reason, if the message has calls
	FinishLength        FinishReason = "length"         // it was cut off, perhaps in its last call
	FinishContentFilter FinishReason = "content_filter" // the service refused, perhaps in the middle of the last call
)

// markCutOff marks the call that an answer may have ended in. Its arguments do not tell: some services complete them to JSON that can be read.
func (r *Response) markCutOff() {
	if calls := r.Message.ToolCalls; len(calls) > 0 && (r.FinishReason == FinishLength || r.FinishReason == FinishContentFilter) {
		calls[len(calls)-1].CutOff = true //mutate:cut-off-call
	}
}

// Usage is what a call of a model cost.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// CachedTokens are those of the input that the service had seen before; they are part of InputTokens.
	CachedTokens int64 `json:"cachedTokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.CachedTokens + v.CachedTokens}
}

// plausible is what one call can have cost, whatever a service says: or it could make room where a limit is.
func (u Usage) sanitized() Usage {
	const most = 1 << 40
	return Usage{min(max(u.InputTokens, 0), most), min(max(u.OutputTokens, 0), most), min(max(u.CachedTokens, 0), most)}
}

// ModelError is a service's refusal to answer. The run can be resumed: the model is then asked again.
type ModelError struct {
	// Model is the name of the model that was asked, Status the HTTP status (0 if none said that it failed).
	Model  string
	Status int
	// Temporary says that the same request may succeed later: the service is overloaded, or limits the rate.
	Temporary bool
	// Err is what the client reported. It never holds the API key.
	Err error
}

func (e *ModelError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("agent: model %s: %v", e.Model, e.Err)
	}
	return fmt.Sprintf("agent: model %s: status %d: %v", e.Model, e.Status, e.Err)
}

func (e *ModelError) Unwrap() error { return e.Err }
