package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/tool"
)

// Chat configures an agent that calls a model and the tools that the model requests, until the
// model requests none.
type Chat struct {
	Name, Description string
	// Instruction is the system message.
	Instruction string
	// InstructionFunc builds the instruction for a run, for example from session values; it
	// replaces Instruction. It is called before each model call.
	InstructionFunc func(ctx context.Context) (string, error)
	Model           Model
	Tools           []*tool.Tool
	// MoreTools adds tools for a run, for example depending on a session value. It is called
	// whenever the agent is entered and must return the same tools each time.
	MoreTools func(ctx context.Context) ([]*tool.Tool, error)
	// Agents are the agents that this agent may hand the conversation over to. They may hand it
	// back.
	Agents []Agent
	// MaxTurns is the maximum number of model calls before the agent fails with a [*MaxTurnsError].
	// The default is 20.
	MaxTurns int
	// Sequential makes the tool calls of a turn one after the other, and stops at one that waits.
	// The default is concurrent calls.
	Sequential bool
	// MaxParallel is the maximum number of concurrent tool calls of a turn. The default is 32.
	MaxParallel int
}

const (
	defaultTurns    = 20
	defaultParallel = 32
)

// NewChat creates a chat agent.
func NewChat(c Chat) (Agent, error) {
	var errs []error
	if c.Model == nil {
		errs = append(errs, fmt.Errorf("agent: %s has no model", c.Name))
	}
	if c.MaxTurns < 0 || c.MaxParallel < 0 {
		errs = append(errs, fmt.Errorf("agent: %s: MaxTurns is %d, MaxParallel is %d", c.Name, c.MaxTurns, c.MaxParallel))
	}
	if c.MaxTurns == 0 {
		c.MaxTurns = defaultTurns
	}
	if c.MaxParallel == 0 {
		c.MaxParallel = defaultParallel
	}
	c.Tools, c.Agents = slices.Clone(c.Tools), slices.Clone(c.Agents)
	_, err := toolTable(c.Name, c.Tools)
	errs = append(errs, err, distinct(c.Name, c.Agents))
	b, err := newBuiltin(c.Name, c.Description, c.perform)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	b.parts = parts{agents: c.Agents, tools: c.Tools, dynamic: c.MoreTools != nil}
	return b, nil
}

// distinct checks that the agents have different names.
func distinct(owner string, agents []Agent) error {
	known := make(map[string]bool)
	var errs []error
	for i, a := range agents {
		switch {
		case a == nil:
			errs = append(errs, fmt.Errorf("agent: %s: agent %d is nil", owner, i+1))
		case known[a.Name()]:
			errs = append(errs, fmt.Errorf("agent: %s has two agents named %s", owner, a.Name()))
		default:
			known[a.Name()] = true
		}
	}
	return errors.Join(errs...)
}

func toolTable(owner string, lists ...[]*tool.Tool) (map[string]*tool.Tool, error) {
	table := make(map[string]*tool.Tool)
	var errs []error
	for _, t := range slices.Concat(lists...) {
		switch {
		case t == nil:
			errs = append(errs, fmt.Errorf("agent: %s has a nil tool", owner))
		case table[t.Name()] != nil || t.Name() == ToolTransfer:
			errs = append(errs, fmt.Errorf("agent: %s has two tools named %s", owner, t.Name()))
		default:
			table[t.Name()] = t
		}
	}
	return table, errors.Join(errs...)
}

// conversation is the execution of a chat agent. It starts from the beginning whenever the agent is
// entered, and replays recorded model answers and tool results.
type conversation struct {
	*Chat
	scope      *agentScope
	activation *activation.Scope
	tools      []*tool.Tool
	table      map[string]*tool.Tool
	// history is the conversation that the model sees; added is the part that this agent added.
	history, added []Message
	calls          map[string]bool // the ids of all tool calls
	freshResults   bool            // some results of this turn are from this entry
	edited         bool            // the history edit was made in this entry
	replaced       bool            // an edit of this or an earlier entry replaced the history
}

func (c *Chat) perform(ctx context.Context, input *Input) (*Output, error) {
	v := &conversation{Chat: c, scope: scopeOf(ctx), activation: activation.FromContext(ctx), tools: c.Tools, history: slices.Clone(continued(c.Name, input.Messages)), calls: make(map[string]bool)}
	if c.MoreTools != nil {
		more, err := c.MoreTools(ctx)
		if err != nil {
			return nil, err
		}
		v.tools = slices.Concat(v.tools, more)
	}
	v.recordCallIDs(input.Messages...)
	v.scope.history = func() []Message { return v.history }
	var err error
	if v.table, err = toolTable(c.Name, v.tools); err != nil {
		return nil, err
	}
	for turn := 1; turn <= c.MaxTurns; turn++ {
		output, err := v.turn(ctx, turn)
		if output != nil || err != nil {
			return output, err
		}
	}
	return nil, &MaxTurnsError{Agent: c.Name, Max: c.MaxTurns}
}

// turn handles one answer of the model and its tool calls. It returns an output when the agent is
// done.
func (v *conversation) turn(ctx context.Context, turn int) (*Output, error) {
	if err := v.recallEdit(turn); err != nil {
		return nil, err
	}
	message, err := v.scope.generate(ctx, strconv.Itoa(turn), v.Model,
		func(ctx context.Context) (*Request, error) { return v.request(ctx, turn) },
		func(m *Message) error { uniqueCalls(turn, m.ToolCalls, v.calls); return nil })
	if err != nil {
		return nil, err
	}
	v.recordCallIDs(message)
	v.add(message)
	if len(message.ToolCalls) == 0 {
		return v.output(false), nil
	}
	if err := v.scope.cancel.checkAt(CancelAfterModel); err != nil {
		return nil, err
	}
	results, err := v.callAll(ctx, turn, message.ToolCalls)
	if err != nil {
		return nil, err
	}
	v.add(results...)
	if output, err := v.handOver(ctx, message.ToolCalls, results); output != nil || err != nil {
		return output, err
	}
	if output := v.finalOutput(message.ToolCalls, results); output != nil {
		return output, nil
	}
	return nil, v.scope.cancel.checkAt(CancelAfterTools)
}

// recordCallIDs records the call ids of messages: later calls get different ids.
func (v *conversation) recordCallIDs(messages ...Message) {
	for _, message := range messages {
		for _, call := range message.ToolCalls {
			v.calls[call.ID] = true
		}
	}
}

func (v *conversation) add(messages ...Message) {
	v.history = append(v.history, messages...)
	v.added = append(v.added, messages...)
}

func (v *conversation) output(exit bool) *Output { return &Output{Messages: v.added, Exit: exit} }

// request builds the model request of this turn.
func (v *conversation) request(ctx context.Context, turn int) (*Request, error) {
	if err := v.applyEdit(ctx, turn); err != nil {
		return nil, err
	}
	instruction := v.Instruction
	if v.InstructionFunc != nil {
		var err error
		if instruction, err = v.InstructionFunc(ctx); err != nil {
			return nil, err
		}
	}
	request := new(Request)
	if instruction != "" {
		request.Messages = append(request.Messages, System(instruction))
	}
	request.Messages = append(request.Messages, v.history...)
	for _, t := range v.tools {
		request.Tools = append(request.Tools, ToolSpec{t.Name(), t.Description(), t.Schema()})
	}
	if spec, ok := v.transferSpec(); ok {
		request.Tools = append(request.Tools, spec)
	}
	return request, nil
}

// finalOutput returns the agent's output if one of these calls ends its work.
func (v *conversation) finalOutput(calls []ToolCall, results []Message) *Output {
	for i, call := range calls {
		t := v.table[call.Name]
		if t == nil || results[i].Failed {
			continue
		}
		if call.Name == ToolExit {
			return v.output(true)
		}
		if t.IsFinal() {
			v.added = append(v.added, Message{Role: RoleAssistant, Agent: v.Name, Text: results[i].Text})
			return v.output(false)
		}
	}
	return nil
}

// ExitTool returns a tool that lets a model end the loop that contains its agent.
func ExitTool() *tool.Tool {
	type args struct {
		Reason string `json:"reason,omitempty" jsonschema:"why there is nothing more to do"`
	}
	return tool.New(ToolExit, "Ends the work when nothing is left to be done.", func(_ context.Context, a args) (string, error) {
		return "Done. " + a.Reason, nil
	}, tool.Repeatable())
}
