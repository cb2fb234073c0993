package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

type transferArgs struct {
	Agent string `json:"agent_name"`
}

// targets returns the agents that this one may hand over to: its subagents, and the one that handed
// over to it.
func (v *conversation) targets() []Agent {
	targets := v.Agents
	if s := v.scope; s.handedOver && s.outer != nil && v.subagent(s.outer.agent.Name()) == nil {
		targets = append(slices.Clip(targets), s.outer.agent)
	}
	return targets
}

func (v *conversation) target(name string) Agent { return named(v.targets(), name) }

func (v *conversation) subagent(name string) Agent { return named(v.Agents, name) }

func named(agents []Agent, name string) Agent {
	for _, a := range agents {
		if a.Name() == name {
			return a
		}
	}
	return nil
}

// transferSpec describes the hand-over to the model.
func (v *conversation) transferSpec() (ToolSpec, bool) {
	targets := v.targets()
	if len(targets) == 0 {
		return ToolSpec{}, false
	}
	names := make([]string, len(targets))
	var text strings.Builder
	text.WriteString("Hands the conversation over to another agent, who takes it from there. The agents are:")
	for i, a := range targets {
		names[i] = a.Name()
		fmt.Fprintf(&text, "\n- %s: %s", a.Name(), a.Description())
	}
	enum, err := json.Marshal(names)
	if err != nil {
		return ToolSpec{}, false // strings always have a JSON form
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{"agent_name":{"type":"string","enum":%s}},"required":["agent_name"],"additionalProperties":false}`, enum)
	return ToolSpec{ToolTransfer, text.String(), json.RawMessage(schema)}, true
}

// acceptTransfer answers the model's hand-over call.
func (v *conversation) acceptTransfer(args json.RawMessage) (tool.Result, error) {
	var wish transferArgs
	if err := json.Unmarshal(args, &wish); err != nil {
		return tool.Result{Text: "Invalid arguments: " + err.Error(), Failed: true}, nil
	}
	if v.target(wish.Agent) == nil {
		return tool.Result{Text: fmt.Sprintf("There is no agent %q to hand over to.", wish.Agent), Failed: true}, nil
	}
	return tool.Result{Text: "Handed over to " + wish.Agent + "."}, nil
}

// handOver runs another agent if one of these calls hands over. The first one counts.
func (v *conversation) handOver(ctx context.Context, calls []ToolCall, results []Message) (*Output, error) {
	for i, call := range calls {
		if call.Name != ToolTransfer || results[i].Failed {
			continue
		}
		var wish transferArgs
		if err := json.Unmarshal([]byte(call.Args), &wish); err != nil {
			return nil, err
		}
		target := v.target(wish.Agent)
		if target == nil {
			address, err := fermata.ParseAddress(v.activation.Child(fermata.Segment{Type: fermata.SegmentAgent, ID: wish.Agent}.String()).FullAddress())
			return nil, errors.Join(&ProgramChangedError{Run: v.scope.run, Missing: []fermata.Address{address}}, err)
		}
		if v.freshResults { // otherwise it was shown when the last of these calls was done
			v.scope.emit(Transferred{To: wish.Agent})
		}
		output, err := run(ctx, 1, target, &Input{Messages: narrateUnnamed(v.handedHistory())}, true)
		if err != nil {
			return nil, err
		}
		return &Output{Messages: slices.Concat(v.added, output.Messages), Exit: output.Exit}, nil
	}
	return nil, nil
}

// handedHistory returns the conversation for the agent that takes over: as this one received it, so
// that each agent finds its own messages. An edited history replaces it.
func (v *conversation) handedHistory() []Message {
	if v.replaced {
		return v.history
	}
	return slices.Concat(v.scope.received, v.added)
}

// narrate converts a conversation for another agent: messages and calls of agents are told in the
// third person, so that a model does not mistake them for its own.
func narrate(messages []Message) []Message {
	return narrateUnless(messages, func(string) bool { return false })
}

// narrateUnnamed narrates the messages of a conversation that the run started with: they belong to
// the agent that hands it over.
func narrateUnnamed(messages []Message) []Message {
	return narrateUnless(messages, func(author string) bool { return author != "" })
}

// viewOf returns a conversation as an agent sees it: its own messages as its own, those of other
// agents narrated.
func viewOf(agent string, messages []Message) []Message {
	mine := func(author string) bool { return author == "" || author == agent }
	if !slices.ContainsFunc(messages, func(m Message) bool { return !mine(m.Agent) }) {
		return messages
	}
	return narrateUnless(messages, mine)
}

// continued asks an agent to continue if the last message is its own, as in a loop of one agent.
// Some models reject a conversation that ends with their own message.
func continued(agent string, messages []Message) []Message {
	if n := len(messages); n > 0 && messages[n-1].Agent == agent {
		return append(slices.Clip(messages), User("Continue."))
	}
	return messages
}

// narrateUnless narrates the messages of all authors but those that keep reports.
func narrateUnless(messages []Message, keep func(author string) bool) []Message {
	calls := make(map[string]ToolCall)
	var narrated []Message
	for _, m := range messages {
		if m.Role == RoleUser || keep(m.Agent) {
			narrated = append(narrated, m)
			continue
		}
		name := m.Agent
		if name == "" {
			name = "assistant" // of a conversation that the run started with
		}
		switch m.Role {
		case RoleAssistant:
			for _, call := range m.ToolCalls {
				calls[call.ID] = call
			}
			if m.Text != "" {
				narrated = append(narrated, User(fmt.Sprintf("[%s] %s", name, m.Text)))
			}
		case RoleTool:
			if call := calls[m.CallID]; call.Name != ToolTransfer {
				narrated = append(narrated, User(fmt.Sprintf("[%s] called %s with %s and got: %s", name, m.Tool, call.Args, m.Text)))
			}
		default: // instructions are for their own agent only
		}
	}
	return narrated
}

// Supervisor configures a chat agent that delegates work to workers and gets their answers: each
// worker is a tool. A worker sees the whole conversation and the task.
type Supervisor struct {
	// Chat configures the supervisor. Its Agents must not include the workers: the supervisor would
	// hand the conversation over to them.
	Chat
	Workers []Agent
}

// NewSupervisor creates a supervisor.
func NewSupervisor(s Supervisor) (Agent, error) {
	if len(s.Workers) == 0 {
		return nil, fmt.Errorf("agent: %s has no workers", s.Name)
	}
	if err := distinct(s.Name, s.Workers); err != nil {
		return nil, err
	}
	c := s.Chat
	c.Tools = slices.Clone(c.Tools)
	for _, worker := range s.Workers {
		c.Tools = append(c.Tools, AsTool(worker, WithConversation()))
	}
	return NewChat(c)
}
