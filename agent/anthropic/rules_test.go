package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

// The rules of the Messages API, as far as this package can break them. The error texts are
// Anthropic's.

type wireRequest struct {
	Model       string          `json:"model"`
	MaxTokens   *int64          `json:"max_tokens"`
	System      []wireBlock     `json:"system"`
	Messages    []wireMessage   `json:"messages"`
	Tools       []wireTool      `json:"tools"`
	ToolChoice  *wireChoice     `json:"tool_choice"`
	Stream      bool            `json:"stream"`
	Temperature *float64        `json:"temperature"`
	Thinking    *wireThinking   `json:"thinking"`
	Cache       json.RawMessage `json:"cache_control"`

	betas string // of the header
}

type wireMessage struct {
	Role    string      `json:"role"`
	Content []wireBlock `json:"content"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   []wireBlock     `json:"content"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type wireChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type wireThinking struct {
	Type         string `json:"type"`
	BudgetTokens int64  `json:"budget_tokens"`
}

// refusal is an error of the service.
type refusal struct {
	status        int
	kind, message string
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_7")
	w.Header().Set("Retry-After", "0") // tests do not wait
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_7"}`, r.kind, modeltest.Quote(r.message))
}

func invalid(format string, args ...any) *refusal {
	return &refusal{400, "invalid_request_error", fmt.Sprintf(format, args...)}
}

// sign simulates the service's signature of thinking.
func sign(thinking string) string {
	sum := sha256.Sum256([]byte("the service's secret" + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// examine returns the request, or why the service rejects it.
func examine(r *http.Request, body []byte) (asked wireRequest, no *refusal) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		return asked, &refusal{404, "not_found_error", "Not found"}
	}
	if given := r.Header.Get("X-Api-Key"); given != key || r.Header.Get("Authorization") != "" {
		return asked, &refusal{401, "authentication_error", "invalid x-api-key: " + given}
	}
	if r.Header.Get("Anthropic-Version") != "2023-06-01" {
		return asked, invalid("anthropic-version: header is required")
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return asked, invalid("content-type: application/json is required")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return asked, invalid("Extra inputs are not permitted: %v", err)
	}
	asked.betas = r.Header.Get("Anthropic-Beta")
	switch {
	case asked.Model == "":
		return asked, invalid("model: Field required")
	case asked.MaxTokens == nil:
		return asked, invalid("max_tokens: Field required")
	case *asked.MaxTokens < 1:
		return asked, invalid("max_tokens: Input should be greater than or equal to 1")
	case len(asked.Messages) == 0:
		return asked, invalid("messages: at least one message is required")
	case asked.Temperature != nil && (*asked.Temperature < 0 || *asked.Temperature > 1):
		return asked, invalid("temperature: range: 0..1")
	}
	for i, block := range asked.System {
		if block.Type != "text" || strings.TrimSpace(block.Text) == "" {
			return asked, invalid("system.%d: text content blocks must be non-empty", i)
		}
	}
	for _, check := range []func(wireRequest) *refusal{examineTurns, examineResults, examineTools, examineThinking} {
		if no := check(asked); no != nil {
			return asked, no
		}
	}
	return asked, nil
}

// examineTurns checks the order of roles, and each block separately.
func examineTurns(asked wireRequest) *refusal {
	for i, message := range asked.Messages {
		switch {
		case message.Role != "user" && message.Role != "assistant":
			return invalid("messages: Unexpected role %q. The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.", message.Role)
		case i == 0 && message.Role != "user":
			return invalid(`messages: first message must use the "user" role`)
		case i > 0 && message.Role == asked.Messages[i-1].Role:
			return invalid(`messages: roles must alternate between "user" and "assistant", but found multiple %q roles in a row`, message.Role)
		case len(message.Content) == 0:
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if last := message.Content[len(message.Content)-1].Type; last == "thinking" || last == "redacted_thinking" {
			return invalid("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
		}
		for j, block := range message.Content {
			if no := examineBlock(fmt.Sprintf("messages.%d.content.%d", i, j), message.Role, block); no != nil {
				return no
			}
		}
	}
	if asked.Messages[len(asked.Messages)-1].Role != "user" {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

func examineBlock(at, role string, block wireBlock) *refusal {
	switch role + " " + block.Type {
	case "user text", "assistant text":
		if strings.TrimSpace(block.Text) == "" {
			return invalid("messages: text content blocks must contain non-whitespace text")
		}
	case "assistant tool_use":
		var object map[string]json.RawMessage
		if json.Unmarshal(block.Input, &object) != nil || object == nil {
			return invalid("%s.tool_use.input: Input should be a valid dictionary", at)
		}
		if block.ID == "" || strings.ContainsFunc(block.ID, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
		}) {
			return invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
		}
		if block.Name == "" {
			return invalid("%s.tool_use.name: String should have at least 1 character", at)
		}
		if len(block.Name) > 200 {
			return invalid("%s.tool_use.name: String should have at most 200 characters", at)
		}
	case "assistant thinking":
		if block.Thinking == nil || block.Signature != sign(*block.Thinking) {
			return invalid("%s: Invalid `signature` in `thinking` block", at)
		}
	case "assistant redacted_thinking":
		if !strings.HasPrefix(block.Data, "redacted:") {
			return invalid("%s: Invalid `data` in `redacted_thinking` block", at)
		}
	case "user tool_result":
		for _, part := range block.Content {
			if part.Type != "text" || strings.TrimSpace(part.Text) == "" {
				return invalid("messages: text content blocks must be non-empty")
			}
		}
		if block.IsError && len(block.Content) == 0 {
			return invalid("%s.tool_result: content cannot be empty if `is_error` is true", at)
		}
	default:
		return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, block.Type)
	}
	return nil
}

// examineResults requires the results of all calls of a turn at the beginning of the next one, and
// no others.
func examineResults(asked wireRequest) *refusal {
	var open []string
	for i, message := range asked.Messages {
		if message.Role == "assistant" {
			for _, block := range message.Content {
				if block.Type != "tool_use" {
					continue
				}
				if slices.Contains(open, block.ID) {
					return invalid("messages.%d: `tool_use` ids must be unique", i)
				}
				open = append(open, block.ID)
			}
			continue
		}
		first := true
		for j, block := range message.Content {
			if block.Type != "tool_result" {
				first = false
				continue
			}
			known := slices.Index(open, block.ToolUseID)
			if known < 0 || !first {
				return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
					"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, block.ToolUseID)
			}
			open = slices.Delete(open, known, known+1)
		}
		if len(open) > 0 {
			return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
				"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(open, ", "))
		}
	}
	return nil
}

func examineTools(asked wireRequest) *refusal {
	var names []string
	for i, tool := range asked.Tools {
		var schema struct{ Type string }
		if json.Unmarshal(tool.InputSchema, &schema) != nil || schema.Type != "object" {
			return invalid("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		if tool.Name == "" || slices.Contains(names, tool.Name) {
			return invalid("tools: Tool names must be unique.")
		}
		names = append(names, tool.Name)
	}
	if choice := asked.ToolChoice; choice != nil {
		if choice.Type != "tool" {
			return invalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags", choice.Type)
		}
		if !slices.Contains(names, choice.Name) {
			return invalid("Tool '%s' not found in provided tools", choice.Name)
		}
	}
	return nil
}

func examineThinking(asked wireRequest) *refusal {
	// By default it depends on the model whether it thinks.
	if asked.Thinking != nil && asked.Thinking.Type == "disabled" {
		for i, message := range asked.Messages {
			for j, block := range message.Content {
				if strings.HasSuffix(block.Type, "thinking") {
					return invalid("messages.%d.content.%d: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.", i, j)
				}
			}
		}
	}
	if asked.Thinking == nil || asked.Thinking.Type != "enabled" {
		return nil
	}
	if asked.Thinking.BudgetTokens < 1024 {
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	}
	if *asked.MaxTokens <= asked.Thinking.BudgetTokens {
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if asked.ToolChoice != nil {
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	// A turn that continued with tools must begin with its thinking.
	if n := len(asked.Messages); n > 1 && asked.Messages[n-1].Content[0].Type == "tool_result" {
		if first := asked.Messages[n-2].Content[0].Type; first != "thinking" && first != "redacted_thinking" {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`.", n-2, first)
		}
	}
	return nil
}
