// Package script provides a model with scripted answers, for tests and for demos without a network.
//
//	model := script.New(
//		script.Call("book_ticket", `{"to":"Paris"}`),
//		script.Say("Your ticket is booked."),
//	)
//
// It has no state. It derives the next line from the conversation, by counting the messages of the
// asking agent, so that it continues correctly in another process. An agent in a loop sees its
// messages of earlier iterations, so the script needs lines for all iterations.
package script

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/fermata-go/fermata/agent"
)

// Line is one answer of the model. It may depend on the request.
type Line func(request *agent.Request) (agent.Message, error)

// Say answers with a text.
func Say(text string) Line { return Message(agent.Assistant(text)) }

// Call answers with one tool call. args is JSON.
func Call(tool, args string) Line { return Calls(agent.ToolCall{Name: tool, Args: args}) }

// Calls answers with several tool calls. Calls without an id get one.
func Calls(calls ...agent.ToolCall) Line { return Message(agent.Assistant("", calls...)) }

// Message answers with this message.
func Message(m agent.Message) Line {
	return func(*agent.Request) (agent.Message, error) { return m, nil }
}

// Fail returns an error.
func Fail(err error) Line {
	return func(*agent.Request) (agent.Message, error) { return agent.Message{}, err }
}

// Model is a model with scripted answers.
type Model struct {
	lines []Line
	calls atomic.Int64
}

var _ agent.Streamer = (*Model)(nil)

// New creates a model with these lines, one per call. A further call returns an error.
func New(lines ...Line) *Model { return &Model{lines: lines} }

// Calls returns how often the model was called in this process.
func (m *Model) Calls() int { return int(m.calls.Load()) }

// Generate answers with the next line.
func (m *Model) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.calls.Add(1)
	turn := 0
	for _, message := range request.Messages {
		if message.Role == agent.RoleAssistant {
			turn++
		}
	}
	if turn >= len(m.lines) {
		return nil, &agent.ModelError{Model: "script", Err: fmt.Errorf("the script has %d lines, but line %d was requested", len(m.lines), turn+1)}
	}
	message, err := m.lines[turn](request)
	if err != nil {
		return nil, err
	}
	message.Role = agent.RoleAssistant
	finish := agent.FinishStop
	if len(message.ToolCalls) > 0 {
		finish = agent.FinishToolCalls
	}
	return &agent.Response{Message: message, Usage: usage(request, message), Model: "script", FinishReason: finish}, nil
}

// usage counts words, as an approximation of tokens.
func usage(request *agent.Request, answer agent.Message) agent.Usage {
	var u agent.Usage
	for _, m := range request.Messages {
		u.InputTokens += words(m)
	}
	u.OutputTokens = words(answer)
	return u
}

func words(m agent.Message) int64 {
	n := len(strings.Fields(m.Text))
	for _, call := range m.ToolCalls {
		n += 1 + len(strings.Fields(call.Args))
	}
	return int64(n)
}

// Stream answers with the next line, word by word.
func (m *Model) Stream(ctx context.Context, request *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		response, err := m.Generate(ctx, request)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, word := range strings.SplitAfter(response.Message.Text, " ") {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if word != "" && !yield(&agent.Chunk{Text: word}, nil) {
				return
			}
		}
		yield(&agent.Chunk{Response: response}, nil)
	}
}
