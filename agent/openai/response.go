package openai

import (
	"cmp"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// fromCompletion converts a complete answer to a response.
func fromCompletion(completion *sdk.ChatCompletion) (*agent.Response, error) {
	if completion == nil {
		return nil, errNoChoice
	}
	if len(completion.Choices) == 0 {
		return nil, cmp.Or(errorIn(completion.JSON.ExtraFields), errNoChoice)
	}
	choice := completion.Choices[0]
	if choice.FinishReason == reasonError {
		return nil, cmp.Or(errorIn(choice.JSON.ExtraFields), errFailed)
	}
	var calls []agent.ToolCall
	for _, call := range choice.Message.ToolCalls {
		calls = append(calls, agent.ToolCall{ID: call.ID, Name: call.Function.Name, Args: call.Function.Arguments})
	}
	return &agent.Response{
		Message:      agent.Assistant(choice.Message.Content+choice.Message.Refusal, calls...),
		Usage:        usage(completion.Usage),
		Model:        completion.Model,
		FinishReason: finish(choice.FinishReason, choice.Message.Refusal != "", len(calls)),
	}, nil
}

// reasonError is the finish reason of some gateways when the model's service failed. The text so
// far is not an answer, and a call in it may be incomplete.
const reasonError = "error"

func usage(u sdk.CompletionUsage) agent.Usage {
	return agent.Usage{
		InputTokens:  u.PromptTokens,
		OutputTokens: u.CompletionTokens,
		CachedTokens: u.PromptTokensDetails.CachedTokens,
	}
}

// finish corrects the finish reason "stop", which servers also send for refusals and forced calls.
func finish(reason string, refused bool, calls int) agent.FinishReason {
	switch {
	case reason != "" && reason != "stop":
		return agent.FinishReason(reason)
	case refused:
		return agent.FinishContentFilter
	case calls > 0:
		return agent.FinishToolCalls
	}
	return agent.FinishStop
}

// responseBuilder assembles the chunks of a stream.
type responseBuilder struct {
	model   string
	text    strings.Builder
	refused bool
	calls   []*partialCall
	at      map[int64]int // index in calls by stream index
	reason  string
	failed  error // the error that it stopped with
	usage   agent.Usage
}

type partialCall struct {
	id, name string
	args     strings.Builder
}

// add processes a chunk and returns the text in it.
func (a *responseBuilder) add(chunk sdk.ChatCompletionChunk) string {
	if a.model == "" {
		a.model = chunk.Model
	}
	// cumulative: most servers send it once, in a last chunk without choices
	if chunk.JSON.Usage.Valid() {
		a.usage = usage(chunk.Usage)
	}
	var text string
	for _, choice := range chunk.Choices {
		if choice.Index != 0 { // only one was requested
			continue
		}
		text += choice.Delta.Content + choice.Delta.Refusal
		a.refused = a.refused || choice.Delta.Refusal != ""
		for _, delta := range choice.Delta.ToolCalls {
			a.addCall(delta)
		}
		if choice.FinishReason != "" {
			a.reason = choice.FinishReason
		}
		if choice.FinishReason == reasonError {
			a.failed = cmp.Or(errorIn(choice.JSON.ExtraFields), errFailed)
		}
	}
	a.text.WriteString(text)
	return text
}

func (a *responseBuilder) addCall(delta sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	i, known := a.at[delta.Index]
	// Some servers send every call complete and with index 0; then the id distinguishes them.
	if known && delta.ID != "" && a.calls[i].id != "" && delta.ID != a.calls[i].id {
		known = false
	}
	if !known {
		if a.at == nil {
			a.at = make(map[int64]int)
		}
		i = len(a.calls)
		a.at[delta.Index] = i
		a.calls = append(a.calls, &partialCall{})
	}
	call := a.calls[i]
	// Id and name are sent complete; some servers repeat them in each chunk.
	if call.id == "" {
		call.id = delta.ID
	}
	if call.name == "" {
		call.name = delta.Function.Name
	}
	call.args.WriteString(delta.Function.Arguments)
}

// response returns the answer if the stream was complete, that is, if it contained a finish reason:
// gateways send the end of the stream also after their own connection broke, and some servers never
// send it.
func (a *responseBuilder) response() (*agent.Response, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	if a.reason == "" {
		return nil, modelhttp.ErrTruncated
	}
	var calls []agent.ToolCall
	for _, call := range a.calls {
		calls = append(calls, agent.ToolCall{ID: call.id, Name: call.name, Args: call.args.String()})
	}
	return &agent.Response{
		Message:      agent.Assistant(a.text.String(), calls...),
		Usage:        a.usage,
		Model:        a.model,
		FinishReason: finish(a.reason, a.refused, len(calls)),
	}, nil
}
