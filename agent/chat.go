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

// Chat describes an agent that talks to a model and calls the tools that the model wants called, until the model wants none.
type Chat struct {
	Name, Description string
	// Instruction is the system message.
	Instruction string
	// Instruct makes the instruction for a run, e.g. of its session values; it replaces Instruction. It is called before
	// each call of the model.
	InstructionFunc func(ctx context.Context) (string, error)
	Model           Model
	Tools           []*tool.Tool
	// MoreTools adds tools for a run, e.g. those that a session value names. It is called whenever the agent is entered, and
	// has to give the same ones again.
	MoreTools func(ctx context.Context) ([]*tool.Tool, error)
	// Agents are what this agent may hand the conversation over to. Whoever it is handed to may hand it back.
	Agents []Agent
	// MaxTurns is how often the model may be called before the agent fails with a [*MaxTurnsError]. The default is 20.
	MaxTurns int
	// OneByOne calls the tools of a turn one after the other, and none behind one that waits. The default is all at once.
	Sequential bool
	// MaxParallel is how many tools of a turn may be at work at the same time. The default is 32.
	MaxParallel int
}

const (
	defaultTurns    = 20
	defaultParallel = 32
)

// NewChat makes a chat agent.
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
	return b, nil
}

// distinct checks that agents can be told apart by their names.
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
		case table[t.Name()] != nil || t.Name() == transferName:
			errs = append(errs, fmt.Errorf("agent: %s has two tools named %s", owner, t.Name()))
		default:
			table[t.Name()] = t
		}
	}
	return table, errors.Join(errs...)
}

// conversation is a chat agent at work. It begins at the start whenever the agent is entered, and comes quickly to where it
// was: what the model said and the tools returned is remembered.
type conversation struct {
	*Chat
	scope      *agentScope
	activation *activation.Scope
	tools      []*tool.Tool
	table      map[string]*tool.Tool
	// history is what the model sees, added what this agent has contributed to it.
	history, added []Message
	calls          map[string]bool // the ids of all tool calls
	freshResults   bool            // some results of this turn came in this entry
	edited         bool            // the run's edit was made in this entry
}

func (c *Chat) perform(ctx context.Context, input *Input) (*Output, error) {
	v := &conversation{Chat: c, scope: scopeOf(ctx), activation: activation.FromContext(ctx), tools: c.Tools, history: slices.Clone(input.Messages), calls: make(map[string]bool)}
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

// turn is one answer of the model and the tool calls in it. It returns an output when the agent is done.
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

// know notes the calls of messages: no later one gets the same id.
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

// request is what the model is asked in this turn.
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

// final is the agent's output if one of these calls ends its work.
func (v *conversation) finalOutput(calls []ToolCall, results []Message) *Output {
	for i, call := range calls {
		t := v.table[call.Name]
		if t == nil || results[i].Failed {
			continue
		}
		if call.Name == exitName {
			return v.output(true)
		}
		if t.IsFinal() {
			v.added = append(v.added, Message{Role: RoleAssistant, Agent: v.Name, Text: results[i].Text})
			return v.output(false)
		}
	}
	return nil
}

const exitName = "exit_loop"

// ExitTool lets a model end the loop that its agent is part of.
func ExitTool() *tool.Tool {
	type args struct {
		Reason string `json:"reason,omitempty" jsonschema:"why there is nothing more to do"`
	}
	return tool.New(exitName, "Ends the work when nothing is left to be done.", func(_ context.Context, a args) (string, error) {
		return "Done. " + a.Reason, nil
	}, tool.Repeatable())
}
