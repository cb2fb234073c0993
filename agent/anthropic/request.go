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

// params is the request on the wire.
func (m *Model) params(request *agent.Request) (sdk.MessageNewParams, error) {
	params := sdk.MessageNewParams{Model: sdk.Model(m.name), MaxTokens: m.maxTokens}
	if m.temperature != nil {
		params.Temperature = sdk.Float(*m.temperature)
	}
	extra, thinking := m.extra, m.thinking
	if request.MustCall != "" {
		params.ToolChoice = sdk.ToolChoiceParamOfTool(request.MustCall)
		if thinking == thinkingManual { // the API refuses both together
			extra, thinking = maps.Clone(extra), thinkingOff
			delete(extra, "thinking")
		}
	}
	if len(extra) > 0 {
		params.SetExtraFields(extra)
	}
	var talk conversation
	if thinking != thinkingOff { // or the API refuses thoughts, too
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

// conversation puts messages into the order that the API wants; the package's documentation shows it. What it makes of a
// message never depends on a later one.
type conversation struct {
	reader string // the model that gets its own thoughts back, or "" for none
	system []sdk.TextBlockParam
	turns  []sdk.MessageParam
}

// filler is what the user says where the API wants him to and he said nothing.
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

// atUser says whether the last turn is the user's.
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

// ended returns the turns with the user's as the last: the model would take one of its own for the beginning of its answer.
func (c *conversation) endWithUser() []sdk.MessageParam {
	if !c.lastIsUser() {
		c.user(sdk.NewTextBlock(filler))
	}
	return c.turns
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func resultToWire(message agent.Message) sdk.ContentBlockParamUnion {
	text := message.Text
	if message.Failed && blank(text) { // the API wants words with a failure, and none that are blank
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

// input makes an object of whatever a model wrote.
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
	// The schema is sent as it is: the order of the properties is the order in which models write them.
	tool := sdk.ToolParam{Name: spec.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](json.RawMessage(schema))}
	if spec.Description != "" {
		tool.Description = sdk.String(spec.Description)
	}
	return sdk.ToolUnionParam{OfTool: &tool}, nil
}

// takenID is what the API takes back as the id of a call. Conversations may hold others, from other models.
var takenID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// wireID gives the same id for a call and for its result.
func wireID(id string) string {
	if takenID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "toolu_" + hex.EncodeToString(sum[:16])
}
