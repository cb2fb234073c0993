package agent

import (
	"context"

	"github.com/fermata-go/fermata/tool"
)

// ToolOption changes how an agent works as a tool.
type ToolOption func(*asTool)

type asTool struct{ conversation bool }

// WithConversation shows the agent the conversation of whoever calls it, before the request.
func WithConversation() ToolOption { return func(a *asTool) { a.conversation = true } }

type request struct {
	Request string `json:"request" jsonschema:"what the agent is asked to do, with everything it needs to know"`
}

// AsTool makes an agent a tool of others: it gets a request, works on it on its own, and its last word is the result. It may
// stop for people like any agent; they see it below the tool call. It panics if the agent's name is none for a tool.
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
	}, tool.Repeatable()) // what it has done it remembers by itself
}
