package agent

import (
	"encoding/json"
	"strings"

	"github.com/fermata-go/fermata/tool"
)

// Role is the role of a message's author.
type Role string

// The roles of messages.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the result of one tool call
)

// Message is one entry of a conversation. It is plain data and is stored as JSON while a run waits.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Agent is the name of the agent that wrote it; "" for people and programs.
	Agent string `json:"agent,omitempty"`
	// ToolCalls, with [RoleAssistant], are the calls that the model requests.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// CallID and Tool, with [RoleTool], identify the call. Failed reports that the text is not a
	// regular result: the call was rejected, its arguments were invalid, or the tool is unknown.
	CallID string `json:"callId,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Opaque is data that the model client needs back unchanged with the message, for example
	// signed reasoning. Only the client that wrote it reads it.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ToolCall is a tool call that a model requests. Its ID is unique within the agent's conversation
// and the same after every resume, regardless of the model's id.
type ToolCall = tool.Call

// User returns a message of the person or program that uses the agent.
func User(text string) Message { return Message{Role: RoleUser, Text: text} }

// System returns an instruction for the model.
func System(text string) Message { return Message{Role: RoleSystem, Text: text} }

// Assistant returns a message of a model.
func Assistant(text string, calls ...ToolCall) Message {
	return Message{Role: RoleAssistant, Text: text, ToolCalls: calls}
}

// ToolResult returns the message that answers a tool call.
func ToolResult(call ToolCall, text string) Message {
	return Message{Role: RoleTool, Text: text, CallID: call.ID, Tool: call.Name}
}

// setAgent sets the author, if it is not set yet.
func (m *Message) setAgent(agent string) {
	if m.Agent == "" && m.Role != RoleUser {
		m.Agent = agent
	}
}

// replaceInvalidUTF8 replaces bytes that are not UTF-8. JSON would also replace them, but later:
// after a resume a call would have a different id.
func (m *Message) replaceInvalidUTF8() {
	m.Text = validUTF8(m.Text)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		call.ID, call.Name, call.Args = validUTF8(call.ID), validUTF8(call.Name), validUTF8(call.Args)
	}
}

func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
