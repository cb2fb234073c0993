package agent

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/eventstream"
	"github.com/fermata-go/fermata/internal/recovery"
)

// Agent continues a conversation. The constructors of this package create the usual agents; write
// others as a function ([NewFunc]) or implement the interface.
//
// Run yields events as they happen. An agent that waits for a person yields the event of
// [Interrupt], or an error that fermata's calls returned (Ask, Approve …), and nothing after it.
// After the answer, Run is called again with the same input, or Resume if the agent implements it
// and raised the interrupt itself. Put work that must not be repeated into [fermata.Do]; run other
// agents with [Run]. Events that were already shown are not shown again.
type Agent interface {
	// Name is unique among the agents that an agent works with: 1 to 64 letters, digits, "_" and
	// "-".
	Name() string
	// Description describes the agent's purpose to other agents.
	Description() string
	Run(ctx context.Context, input *Input) iter.Seq2[*Event, error]
}

// Resumable is an agent with a separate method for resuming after its own interrupt.
type Resumable interface {
	Agent
	Resume(ctx context.Context, info *ResumeInfo) iter.Seq2[*Event, error]
}

// Input is the conversation so far.
type Input struct {
	Messages []Message `json:"messages"`
}

// UserInput returns an input with one user message.
func UserInput(text string) *Input { return &Input{Messages: []Message{User(text)}} }

// Output contains the messages that an agent added to the conversation.
type Output struct {
	Messages []Message `json:"messages,omitempty"`
	// Exit ends the loop that contains the agent.
	Exit bool `json:"exit,omitempty"`
}

// Text returns the text of the agent's last message.
func (o *Output) Text() string {
	for i := len(o.Messages) - 1; i >= 0; i-- {
		if m := o.Messages[i]; m.Role == RoleAssistant && m.Text != "" && len(m.ToolCalls) == 0 {
			return m.Text
		}
	}
	return ""
}

// Func is an agent as a function. It must return interrupt errors (of Ask, Approve, [Run] …) and is
// called again after the answer.
type Func func(ctx context.Context, input *Input) (*Output, error)

// NewFunc creates an agent from a function.
func NewFunc(name, description string, fn Func) (Agent, error) {
	if fn == nil {
		return nil, fmt.Errorf("agent: %s has no function", name)
	}
	return newBuiltin(name, description, func(ctx context.Context, input *Input) (*Output, error) {
		output, err := fn(ctx, input)
		if err != nil {
			return nil, err
		}
		if output == nil {
			output = new(Output)
		}
		authored := &Output{Messages: slices.Clone(output.Messages), Exit: output.Exit}
		for i := range authored.Messages {
			authored.Messages[i].setAgent(name)
			scopeOf(ctx).emitWhenSaved(MessageAdded{Message: authored.Messages[i]})
		}
		return authored, nil
	})
}

// builtin is an agent of this package.
type builtin struct {
	name, description string
	perform           Func
	parts             parts
	flow              bool // runs other agents and has no model of its own
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func newBuiltin(name, description string, perform Func) (*builtin, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("agent: invalid agent name %q: use 1 to 64 letters, digits, _ and -", name)
	}
	return &builtin{name: name, description: description, perform: perform}, nil
}

func (b *builtin) Name() string        { return b.name }
func (b *builtin) Description() string { return b.description }

// Run is for agents that process the events of this one before others see them; the function [Run]
// is simpler.
func (b *builtin) Run(ctx context.Context, input *Input) iter.Seq2[*Event, error] {
	return eventstream.New(ctx, func(ctx context.Context, emit func(*Event)) error {
		_, err := Run(withEmit(ctx, emit), b, input)
		if activation.IsWait(err) {
			emit(&Event{Body: interrupted(ctx, err)})
			return nil
		}
		return err
	})
}

// Run runs an agent as part of the run of ctx: in another agent, in a tool, or in a node of a
// graph. The agent has its own address. Its interrupts are interrupts of the run. After an answer,
// calling Run again continues the agent. A finished agent is not run again. Its events are events
// of the run.
//
// To run an agent several times at one address, use [RunNth].
func Run(ctx context.Context, a Agent, input *Input) (*Output, error) {
	return RunNth(ctx, 1, a, input)
}

// RunNth is [Run] for the nth time, counted from 1: the nth iteration of a loop, or the nth item of
// a list.
func RunNth(ctx context.Context, n int, a Agent, input *Input) (*Output, error) {
	return run(ctx, n, a, input, false)
}

// run is RunNth; handedOver reports that the agent takes over the conversation from its caller.
func run(ctx context.Context, n int, a Agent, input *Input, handedOver bool) (*Output, error) {
	outer, err := scopeFor(ctx)
	if err != nil {
		return nil, err
	}
	segment := fermata.Segment{Type: fermata.SegmentAgent, ID: a.Name()}
	if n > 1 {
		segment.SubID = strconv.Itoa(n)
	}
	var stage *agentScope
	output, err := fermata.DoAt(ctx, segment, func(ctx context.Context) (*Output, error) {
		var err error
		if stage, err = outer.enterAgent(a, segment); err != nil {
			return nil, err
		}
		stage.handedOver = handedOver
		output, err := perform(withScope(ctx, stage), a, input)
		if err := checkNotBypassed(activation.FromContext(ctx), err); err != nil {
			return nil, err
		}
		return output, err
	})
	if err == nil && stage != nil {
		for _, body := range stage.pendingEvents {
			stage.emit(body)
		}
	}
	return output, err
}

// perform runs an agent in its own scope.
func perform(ctx context.Context, a Agent, input *Input) (output *Output, err error) {
	defer recovery.Recover(&err)
	b, ok := a.(*builtin)
	if input != nil && (!ok || !b.flow) {
		view := *input
		view.Messages = viewOf(a.Name(), input.Messages)
		scopeOf(ctx).received = input.Messages
		input = &view
	}
	if ok {
		return b.perform(ctx, input)
	}
	return runCustom(ctx, a, input)
}
