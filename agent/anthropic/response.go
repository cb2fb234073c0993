package anthropic

import (
	"cmp"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// responseBuilder assembles an answer, from the events of a stream or at once.
type responseBuilder struct {
	model  string
	usage  sdk.Usage
	reason sdk.StopReason
	blocks []*block
	at     map[int64]*block
	done   bool
}

// block is a part of an answer. Unknown types are ignored.
type block struct {
	kind         string
	content      strings.Builder // the text, the thinking, the redacted data, or the arguments
	signature    strings.Builder // of thinking
	id, name     string          // of a call
	initialInput string          // initial arguments of a call, if no others follow
}

// fromMessage reads a complete answer.
func fromMessage(message *sdk.Message) (*responseBuilder, error) {
	if message == nil || !message.JSON.Content.Valid() {
		return nil, errNoMessage
	}
	a := &responseBuilder{model: message.Model, usage: message.Usage, reason: message.StopReason, done: true}
	for _, part := range message.Content {
		a.begin(&block{kind: part.Type, id: part.ID, name: part.Name, initialInput: string(part.Input)},
			part.Text+part.Thinking+part.Data, part.Signature)
	}
	return a, nil
}

// add processes an event and returns the text in it.
func (a *responseBuilder) add(event sdk.MessageStreamEventUnion) (text string, err error) {
	switch event.Type {
	case "message_start":
		a.model, a.usage = event.Message.Model, event.Message.Usage
	case "content_block_start":
		part := event.ContentBlock
		b := &block{kind: part.Type, id: part.ID, name: part.Name, initialInput: part.JSON.Input.Raw()}
		a.begin(b, part.Text+part.Thinking+part.Data, part.Signature)
		if a.at == nil {
			a.at = make(map[int64]*block)
		}
		a.at[event.Index] = b
		if b.kind == typeText {
			text = part.Text
		}
	case "content_block_delta":
		b, ok := a.at[event.Index]
		if !ok {
			return "", errUnexpectedEvent
		}
		delta := event.Delta // only one of its texts is set
		b.content.WriteString(delta.Text + delta.Thinking + delta.PartialJSON)
		b.signature.WriteString(delta.Signature)
		text = delta.Text
	case "message_delta":
		a.reason = cmp.Or(event.Delta.StopReason, a.reason) // another may follow, with usage only
		a.count(event.Usage)
	case "message_stop":
		if a.reason == "" { // gateways send the end also after their own connection broke
			return "", modelhttp.ErrTruncated
		}
		a.done = true
	}
	return text, nil
}

func (a *responseBuilder) begin(b *block, content, signature string) {
	b.content.WriteString(content)
	b.signature.WriteString(signature)
	a.blocks = append(a.blocks, b)
}

// count processes totals of the whole message; missing ones keep the values of message_start.
func (a *responseBuilder) count(u sdk.MessageDeltaUsage) {
	a.usage.OutputTokens = u.OutputTokens
	if u.JSON.InputTokens.Valid() {
		a.usage.InputTokens = u.InputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		a.usage.CacheCreationInputTokens = u.CacheCreationInputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		a.usage.CacheReadInputTokens = u.CacheReadInputTokens
	}
}

// response returns the answer, if it is complete. asked is the name of the requested model.
func (a *responseBuilder) response(asked string) (*agent.Response, error) {
	if !a.done {
		return nil, modelhttp.ErrTruncated
	}
	var text strings.Builder
	var calls []agent.ToolCall
	for _, b := range a.blocks {
		switch b.kind {
		case typeText:
			text.WriteString(b.content.String())
		case typeCall:
			// Unchanged, even if it was cut off: it must not look like a call without arguments.
			args := cmp.Or(b.content.String(), b.initialInput, "{}")
			calls = append(calls, agent.ToolCall{ID: b.id, Name: b.name, Args: args})
		}
	}
	message := agent.Assistant(text.String(), calls...)
	message.Opaque = encodeOpaque(asked, a.blocks)
	return &agent.Response{
		Message: message,
		Usage: agent.Usage{
			// The API counts tokens read from and written to its cache separately.
			InputTokens:  a.usage.InputTokens + a.usage.CacheCreationInputTokens + a.usage.CacheReadInputTokens,
			OutputTokens: a.usage.OutputTokens,
			CachedTokens: a.usage.CacheReadInputTokens,
		},
		Model:        a.model,
		FinishReason: finish(a.reason),
	}, nil
}

func finish(reason sdk.StopReason) agent.FinishReason {
	switch reason {
	case sdk.StopReasonEndTurn:
		return agent.FinishStop
	case sdk.StopReasonToolUse:
		return agent.FinishToolCalls
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return agent.FinishLength
	case sdk.StopReasonRefusal:
		return agent.FinishContentFilter
	}
	return agent.FinishReason(reason)
}
