package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// params builds the request.
func (m *Model) params(request *agent.Request) (sdk.MessageNewParams, error) {
	params := sdk.MessageNewParams{Model: sdk.Model(m.name), MaxTokens: m.maxTokens}
	if m.temperature != nil {
		params.Temperature = sdk.Float(*m.temperature)
	}
	extra, thinking := m.extra, m.thinking
	if request.MustCall != "" {
		params.ToolChoice = sdk.ToolChoiceParamOfTool(request.MustCall)
		if thinking == thinkingManual { // the API rejects the combination
			extra, thinking = maps.Clone(extra), thinkingOff
			delete(extra, "thinking")
		}
	}
	if len(extra) > 0 {
		params.SetExtraFields(extra)
	}
	var talk conversation
	if thinking != thinkingOff { // otherwise the API also rejects the thinking
		talk.reader = m.name
	}
	for i, message := range request.Messages {
		if err := talk.add(message); err != nil {
			return params, fmt.Errorf("anthropic: message %d: %w", i, err)
		}
	}
	params.System, params.Messages = talk.system, talk.endWithUser()
	for _, spec := range request.Tools {
		tool, err := toolToWire(spec)
		if err != nil {
			return params, fmt.Errorf("anthropic: tool %q: %w", spec.Name, err)
		}
		params.Tools = append(params.Tools, tool)
	}
	return params, nil
}

// conversation converts messages to the order that the API requires; see the package documentation.
// The conversion of a message never depends on a later one.
type conversation struct {
	reader string // the model that gets its own thinking back, or "" for none
	system []sdk.TextBlockParam
	turns  []sdk.MessageParam
}

// filler is the user's text where the API requires a user turn and there is none.
const filler = "(continue)"

func (c *conversation) add(message agent.Message) error {
	switch message.Role {
	case agent.RoleSystem:
		if !blank(message.Text) {
			c.system = append(c.system, sdk.TextBlockParam{Text: message.Text})
		}
	case agent.RoleUser:
		if !blank(message.Text) {
			c.user(sdk.NewTextBlock(message.Text))
		}
	case agent.RoleTool:
		c.user(resultToWire(message))
	case agent.RoleAssistant:
		if blocks := assistantToWire(message, c.reader); len(blocks) > 0 {
			if !c.lastIsUser() {
				c.user(sdk.NewTextBlock(filler))
			}
			c.turns = append(c.turns, sdk.NewAssistantMessage(blocks...))
		}
	default:
		return fmt.Errorf("unknown role %q", message.Role)
	}
	return nil
}

// lastIsUser reports whether the last turn is the user's.
func (c *conversation) lastIsUser() bool {
	return len(c.turns) > 0 && c.turns[len(c.turns)-1].Role == sdk.MessageParamRoleUser
}

func (c *conversation) user(block sdk.ContentBlockParamUnion) {
	if !c.lastIsUser() {
		c.turns = append(c.turns, sdk.NewUserMessage())
	}
	turn := &c.turns[len(c.turns)-1]
	turn.Content = append(turn.Content, block)
}

// endWithUser returns the turns with a user turn at the end: the model would continue its own last
// turn.
func (c *conversation) endWithUser() []sdk.MessageParam {
	if !c.lastIsUser() {
		c.user(sdk.NewTextBlock(filler))
	}
	return c.turns
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func resultToWire(message agent.Message) sdk.ContentBlockParamUnion {
	text := message.Text
	// the API requires a text for a failure, and rejects blank ones
	if message.Failed && blank(text) {
		text = "failed"
	}
	block := sdk.ToolResultBlockParam{ToolUseID: wireID(message.CallID)}
	if message.Failed {
		block.IsError = sdk.Bool(true)
	}
	if !blank(text) {
		block.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &block}
}

func callToWire(call agent.ToolCall) sdk.ContentBlockParamUnion {
	return sdk.NewToolUseBlock(wireID(call.ID), input(call.Args), modelhttp.ToolName(call.Name))
}

// input converts any model output to an object.
func input(args string) any {
	text := bytes.TrimSpace([]byte(args))
	switch {
	case len(text) == 0:
		return json.RawMessage(`{}`)
	case text[0] == '{' && json.Valid(text):
		return json.RawMessage(text)
	}
	return map[string]string{"_raw": args}
}

func toolToWire(spec agent.ToolSpec) (sdk.ToolUnionParam, error) {
	schema := bytes.TrimSpace(spec.Schema)
	switch {
	case len(schema) == 0:
		schema = []byte(`{"type":"object"}`)
	case schema[0] != '{' || !json.Valid(schema):
		return sdk.ToolUnionParam{}, errors.New("schema is not a JSON object")
	}
	// The schema is sent unchanged: the order of properties is the order in which models write
	// them.
	tool := sdk.ToolParam{Name: spec.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](json.RawMessage(schema))}
	if spec.Description != "" {
		tool.Description = sdk.String(spec.Description)
	}
	return sdk.ToolUnionParam{OfTool: &tool}, nil
}

// takenID matches the call ids that the API accepts. Conversations may contain ids of other models.
var takenID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// wireID returns the same id for a call and for its result.
func wireID(id string) string {
	if takenID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "toolu_" + hex.EncodeToString(sum[:16])
}
