package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The rules of chat completions, as far as this package can break them. The error texts are
// OpenAI's.

type wireRequest struct {
	Model               string          `json:"model"`
	Messages            []wireMessage   `json:"messages"`
	Tools               []wireTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Stream              bool            `json:"stream"`
	StreamOptions       *wireStream     `json:"stream_options"`
	MaxTokens           *int64          `json:"max_tokens"`
	MaxCompletionTokens *int64          `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	Seed                *int64          `json:"seed"`
}

type wireStream struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// refusal is an error of the service.
type refusal struct {
	status              int
	kind, code, message string
	param               string
}

func (r *refusal) write(w http.ResponseWriter) {
	optional := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"message": r.message, "type": r.kind, "param": optional(r.param), "code": optional(r.code),
	}})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_7")
	w.Header().Set("Retry-After", "0") // tests do not wait
	w.WriteHeader(r.status)
	w.Write(body)
}

func invalid(param, format string, args ...any) *refusal {
	return &refusal{status: 400, kind: "invalid_request_error", param: param, message: fmt.Sprintf(format, args...)}
}

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// examine returns the request, or why the service rejects it.
func examine(r *http.Request, body []byte) (asked wireRequest, no *refusal) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		return asked, &refusal{status: 404, kind: "invalid_request_error", message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || given != key {
		return asked, &refusal{status: 401, kind: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided: " + given + "."}
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return asked, invalid("", "Invalid content type %q", r.Header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return asked, invalid("", "Unrecognized request argument supplied: %v", err)
	}
	switch {
	case asked.Model == "":
		return asked, invalid("model", "you must provide a model parameter")
	case len(asked.Messages) == 0:
		return asked, invalid("messages", "[] is too short - 'messages'")
	case asked.StreamOptions != nil && !asked.Stream:
		return asked, invalid("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case asked.MaxTokens != nil && asked.MaxCompletionTokens != nil:
		return asked, invalid("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if no := examineMessages(asked.Messages); no != nil {
		return asked, no
	}
	return asked, examineTools(asked)
}

func examineMessages(messages []wireMessage) *refusal {
	open := map[string]bool{} // calls without a result yet
	for i, message := range messages {
		at := fmt.Sprintf("messages.[%d].role", i)
		if message.Role != "tool" && len(open) > 0 {
			return invalid(at, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
				"The following tool_call_ids did not have response messages: %s", strings.Join(slices.Sorted(maps.Keys(open)), ", "))
		}
		if message.Content == nil && len(message.ToolCalls) == 0 {
			return invalid(fmt.Sprintf("messages.[%d].content", i), "Invalid value for 'content': expected a string, got null.")
		}
		switch message.Role {
		case "system", "user":
		case "assistant":
			for j, call := range message.ToolCalls {
				if no := examineCall(fmt.Sprintf("messages[%d].tool_calls[%d]", i, j), call); no != nil {
					return no
				}
				open[call.ID] = true
			}
		case "tool":
			if !open[message.ToolCallID] {
				return invalid(at, "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			delete(open, message.ToolCallID)
		default:
			return invalid(at, "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", message.Role)
		}
	}
	if len(open) > 0 {
		return invalid("messages", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

func examineCall(at string, call wireCall) *refusal {
	switch {
	case call.Type != "function":
		return invalid(at+".type", "Invalid value: '%s'.", call.Type)
	case call.ID == "":
		return invalid(at+".id", "Invalid '%s.id': empty string. Expected a string with minimum length 1.", at)
	case len(call.ID) > 40:
		return &refusal{status: 400, kind: "invalid_request_error", code: "string_above_max_length", param: at + ".id", message: fmt.Sprintf(
			"Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", at, len(call.ID))}
	case !wireName.MatchString(call.Function.Name):
		return invalid(at+".function.name", "Invalid '%s.function.name': string does not match pattern.", at)
	case call.Function.Arguments == nil:
		return invalid(at+".function.arguments", "Missing required parameter: '%s.function.arguments'.", at)
	}
	return nil
}

func examineTools(asked wireRequest) *refusal {
	var names []string
	for i, tool := range asked.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if tool.Type != "function" {
			return invalid(at+".type", "Invalid value: '%s'.", tool.Type)
		}
		if !wireName.MatchString(tool.Function.Name) {
			return invalid(at+".function.name", "Invalid '%s.function.name': string does not match pattern.", at)
		}
		var schema struct{ Type string }
		if tool.Function.Parameters != nil && (json.Unmarshal(tool.Function.Parameters, &schema) != nil || schema.Type != "object") {
			return invalid(at+".function.parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", tool.Function.Name)
		}
		names = append(names, tool.Function.Name)
	}
	if asked.ToolChoice == nil {
		return nil
	}
	var choice struct {
		Type     string
		Function struct{ Name string }
	}
	if json.Unmarshal(asked.ToolChoice, &choice) != nil || choice.Type != "function" {
		return invalid("tool_choice", "Invalid value: '%s'.", asked.ToolChoice)
	}
	if !slices.Contains(names, choice.Function.Name) {
		return invalid("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", choice.Function.Name)
	}
	return nil
}
