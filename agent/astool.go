package agent

import (
	"context"

	"github.com/fermata-go/fermata/tool"
)

// ToolOption configures an agent that is used as a tool.
type ToolOption func(*asTool)

type asTool struct{ conversation bool }

// WithConversation passes the caller's conversation to the agent, before the request.
func WithConversation() ToolOption { return func(a *asTool) { a.conversation = true } }

type request struct {
	Request string `json:"request" jsonschema:"what the agent is asked to do, with everything it needs to know"`
}

// AsTool converts an agent to a tool: it receives a request, works on it, and its last message is
// the result. It may raise interrupts like any agent; their addresses are below the tool call.
// AsTool panics if the agent's name is not a valid tool name.
func AsTool(a Agent, options ...ToolOption) *tool.Tool {
	var config asTool
	for _, option := range options {
		option(&config)
	}
	return tool.New(a.Name(), a.Description(), func(ctx context.Context, r request) (string, error) {
		var input Input
		if s := scopeOf(ctx); s != nil && config.conversation && s.history != nil {
			input.Messages = narrate(s.history())
		}
		input.Messages = append(input.Messages, User(r.Request))
		output, err := Run(ctx, a, &input)
		if err != nil {
			return "", err
		}
		return output.Text(), nil
	}, tool.Repeatable()) // the agent records its own progress
}
