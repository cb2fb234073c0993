package agent

import (
	"encoding/json"
	"strings"
)

// Role says whose words a message holds.
type Role string

// The roles of messages.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the result of one tool call
)

// Message is one entry of a conversation. It is plain data: it is stored as JSON for as long as a run waits.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Agent is the name of the agent that said it; "" for people and programs.
	Agent string `json:"agent,omitempty"`
	// ToolCalls, with [RoleAssistant], are the calls that the model wants made.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// CallID and Tool, with [RoleTool], name the call that the text is the result of. Failed says that it is not what the
	// tool was called for: the call was refused, its arguments were wrong, the tool is unknown.
	CallID string `json:"callId,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Opaque is what the client of the model wants to get back unchanged with the message, as signed reasoning. Only the
	// client that wrote it reads it.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ToolCall is a model's wish to have a tool called.
type ToolCall struct {
	// ID is unique within the agent's conversation and the same after every resume, whatever the model gave.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the text that the model wrote; it should be a JSON object and need not be.
	Args string `json:"args"`
	// CutOff says that the answer may have ended before the call did. It is not made: what looks like all of its arguments may be some.
	CutOff bool `json:"cutOff,omitempty"`
}

// User is a message of the person or program that uses the agent.
func User(text string) Message { return Message{Role: RoleUser, Text: text} }

// System is an instruction for the model.
func System(text string) Message { return Message{Role: RoleSystem, Text: text} }

// Assistant is a message of a model.
func Assistant(text string, calls ...ToolCall) Message {
	return Message{Role: RoleAssistant, Text: text, ToolCalls: calls}
}

// ToolResult is the message that answers a tool call.
func ToolResult(call ToolCall, text string) Message {
	return Message{Role: RoleTool, Text: text, CallID: call.ID, Tool: call.Name}
}

// by says who said it, if nobody has yet.
func (m *Message) setAgent(agent string) {
	if m.Agent == "" && m.Role != RoleUser {
		m.Agent = agent
	}
}

// repair replaces what is not UTF-8. JSON would do so, too, but later: after a resume a call would have another id.
func (m *Message) replaceInvalidUTF8() {
	m.Text = validUTF8(m.Text)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		call.ID, call.Name, call.Args = validUTF8(call.ID), validUTF8(call.Name), validUTF8(call.Args)
	}
}

func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
