package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/modelhttp"
)

// params builds the request. Equal requests have equal bytes, so that the service's prompt cache
// works.
func (m *Model) params(request *agent.Request) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: m.name}
	if m.temperature != nil {
		params.Temperature = sdk.Float(*m.temperature)
	}
	switch {
	case m.maxTokens == 0:
	case m.modernLimit:
		params.MaxCompletionTokens = sdk.Int(m.maxTokens)
	default:
		params.MaxTokens = sdk.Int(m.maxTokens)
	}
	for i, message := range request.Messages {
		wire, err := toWire(message)
		if err != nil {
			return params, fmt.Errorf("openai: message %d: %w", i, err)
		}
		params.Messages = append(params.Messages, wire)
	}
	for _, spec := range request.Tools {
		tool, err := toolToWire(spec)
		if err != nil {
			return params, fmt.Errorf("openai: tool %q: %w", spec.Name, err)
		}
		params.Tools = append(params.Tools, tool)
	}
	if request.MustCall != "" {
		params.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: request.MustCall})
	}
	if m.extra != nil {
		params.SetExtraFields(m.extra)
	}
	return params, nil
}

func toWire(message agent.Message) (sdk.ChatCompletionMessageParamUnion, error) {
	switch message.Role {
	case agent.RoleSystem:
		return sdk.SystemMessage(message.Text), nil
	case agent.RoleUser:
		return sdk.UserMessage(message.Text), nil
	case agent.RoleTool:
		return sdk.ToolMessage(message.Text, wireID(message.CallID)), nil
	case agent.RoleAssistant:
		return assistantToWire(message), nil
	}
	return sdk.ChatCompletionMessageParamUnion{}, fmt.Errorf("unknown role %q", message.Role)
}

func assistantToWire(message agent.Message) sdk.ChatCompletionMessageParamUnion {
	var wire sdk.ChatCompletionAssistantMessageParam
	if message.Text != "" || len(message.ToolCalls) == 0 { // one of the two is required
		wire.Content.OfString = sdk.String(message.Text)
	}
	for _, call := range message.ToolCalls {
		wire.ToolCalls = append(wire.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: wireID(call.ID),
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name:      modelhttp.ToolName(call.Name),
					Arguments: cmp.Or(call.Args, "{}"), // some servers parse it
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &wire}
}

func toolToWire(spec agent.ToolSpec) (sdk.ChatCompletionToolUnionParam, error) {
	function := shared.FunctionDefinitionParam{Name: spec.Name}
	if spec.Description != "" {
		function.Description = sdk.String(spec.Description)
	}
	if len(bytes.TrimSpace(spec.Schema)) > 0 {
		// Only the outermost level is decoded: below it, the order of properties is the order in
		// which models write them.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(spec.Schema, &fields); err != nil {
			return sdk.ChatCompletionToolUnionParam{}, fmt.Errorf("schema is not a JSON object: %w", err)
		}
		function.Parameters = make(shared.FunctionParameters, len(fields))
		for name, value := range fields {
			function.Parameters[name] = value
		}
	}
	return sdk.ChatCompletionFunctionTool(function), nil
}

// maxID is the maximum length of a call id that OpenAI accepts. Conversations may contain longer
// ids of other models.
const maxID = 40

// wireID returns the same id for a call and for its result.
func wireID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
