package anthropic

import (
	"encoding/json"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fermata-go/fermata/agent"
)

// opaque is the part of an answer besides its text and calls: the model's thinking and its
// position. It is stored with waiting runs, so version 1 must remain readable.
type opaque struct {
	Anthropic int          `json:"anthropic"` // the version; data of other clients has none
	Model     string       `json:"model"`     // as requested: other models cannot read its thinking
	Blocks    []savedBlock `json:"blocks"`
}

// savedBlock is one block of an answer. Texts and calls are in the message; this is only their
// order, and the length of a text.
type savedBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
	Length    int    `json:"length,omitempty"` // of a text, in bytes
}

const opaqueVersion = 1

// The block types that this package supports.
const (
	typeText     = "text"
	typeThinking = "thinking"
	typeRedacted = "redacted_thinking"
	typeCall     = "tool_use"
)

// The thinking types that this package handles specially.
const (
	thinkingManual = "enabled"
	thinkingOff    = "disabled"
)

// thinkingType returns the thinking type in the request fields, or "".
func thinkingType(fields map[string]any) string {
	text, _ := fields["thinking"].(json.RawMessage)
	var thinking struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(text, &thinking) != nil {
		return ""
	}
	return thinking.Type
}

// assistantToWire restores the original form of an assistant's message. A model that called a tool
// while thinking must find its thinking at the same position. Only the model that wrote it, the
// reader, gets it.
func assistantToWire(message agent.Message, reader string) []sdk.ContentBlockParamUnion {
	var was opaque
	if json.Unmarshal(message.Opaque, &was) != nil || was.Anthropic != opaqueVersion || was.Model != reader {
		was.Blocks = nil
	}
	blocks, ok := was.arrange(message)
	if !ok { // The message was changed. The thinking still comes before the text and calls.
		blocks = nil
		for _, block := range was.Blocks {
			if thought, ok := block.toWire(); ok {
				blocks = append(blocks, thought)
			}
		}
		blocks = appendText(blocks, message.Text)
		for _, call := range message.ToolCalls {
			blocks = append(blocks, callToWire(call))
		}
	}
	// The API rejects thinking without a following block, as after a cut-off answer.
	for n := len(blocks); n > 0 && (blocks[n-1].OfThinking != nil || blocks[n-1].OfRedactedThinking != nil); n-- {
		blocks = blocks[:n-1]
	}
	return blocks
}

// arrange puts texts and calls between the thinking blocks. It reports false if they do not match
// the message.
func (o *opaque) arrange(message agent.Message) (blocks []sdk.ContentBlockParamUnion, ok bool) {
	text, calls := message.Text, message.ToolCalls
	for _, block := range o.Blocks {
		switch block.Type {
		case typeText:
			if block.Length < 0 || block.Length > len(text) || !utf8.ValidString(text[:block.Length]) {
				return nil, false
			}
			blocks = appendText(blocks, text[:block.Length])
			text = text[block.Length:]
		case typeCall:
			if len(calls) == 0 {
				return nil, false
			}
			blocks = append(blocks, callToWire(calls[0]))
			calls = calls[1:]
		default:
			if thought, ok := block.toWire(); ok {
				blocks = append(blocks, thought)
			}
		}
	}
	return blocks, text == "" && len(calls) == 0
}

func (k savedBlock) toWire() (block sdk.ContentBlockParamUnion, ok bool) {
	switch k.Type {
	case typeThinking:
		return sdk.NewThinkingBlock(k.Signature, k.Thinking), true
	case typeRedacted:
		return sdk.NewRedactedThinkingBlock(k.Data), true
	}
	return block, false
}

func appendText(blocks []sdk.ContentBlockParamUnion, text string) []sdk.ContentBlockParamUnion {
	if blank(text) {
		return blocks
	}
	return append(blocks, sdk.NewTextBlock(text))
}

// encodeOpaque is the inverse of assistantToWire. An answer without thinking needs no opaque data.
func encodeOpaque(model string, blocks []*block) json.RawMessage {
	thought := false
	was := opaque{Anthropic: opaqueVersion, Model: model}
	for _, b := range blocks {
		k := savedBlock{Type: b.kind}
		switch b.kind {
		case typeText:
			k.Length = b.content.Len()
		case typeThinking:
			k.Thinking, k.Signature, thought = b.content.String(), b.signature.String(), true
		case typeRedacted:
			k.Data, thought = b.content.String(), true
		}
		was.Blocks = append(was.Blocks, k)
	}
	if !thought {
		return nil
	}
	text, err := json.Marshal(was)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}
