package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// NewSequential creates an agent that runs others one after the other. Each receives the
// conversation and the messages of the agents before it, narrated as user messages.
func NewSequential(name, description string, agents ...Agent) (Agent, error) {
	agents, err := checkAgents(name, agents)
	if err != nil {
		return nil, err
	}
	return newFlow(name, description, 1, agents, func(ctx context.Context, input *Input) (*Output, error) {
		return round(ctx, newCallCounts(agents), input, new(Output))
	})
}

// NewLoop creates an agent that runs others repeatedly in order, until one of them exits ([Exit],
// [ExitTool]) or after maxRounds iterations. An agent sees its messages of earlier iterations as
// its own.
func NewLoop(name, description string, maxRounds int, agents ...Agent) (Agent, error) {
	agents, err := checkAgents(name, agents)
	if maxRounds < 1 {
		err = errors.Join(err, fmt.Errorf("agent: %s: invalid number of loop iterations: %d", name, maxRounds))
	}
	if err != nil {
		return nil, err
	}
	return newFlow(name, description, maxRounds, agents, func(ctx context.Context, input *Input) (*Output, error) {
		counts, output := newCallCounts(agents), new(Output)
		for range maxRounds {
			if _, err := round(ctx, counts, input, output); err != nil {
				return nil, err
			}
			if output.Exit {
				break
			}
		}
		output.Exit = false // the exit applies to this loop only
		return output, nil
	})
}

// NewParallel creates an agent that runs others concurrently, each on the same conversation. Their
// messages are joined in the order of the agents. If some wait, the others still finish, once.
func NewParallel(name, description string, agents ...Agent) (Agent, error) {
	agents, err := checkAgents(name, agents)
	if err != nil {
		return nil, err
	}
	return newFlow(name, description, 1, agents, func(ctx context.Context, input *Input) (*Output, error) {
		counts := newCallCounts(agents)
		times := make([]int, len(agents))
		for i, a := range agents {
			times[i] = counts.next(a)
		}
		outputs := make([]*Output, len(agents))
		errs := recovery.Parallel(len(agents), 0, func(i int) (err error) {
			outputs[i], err = RunNth(ctx, times[i], agents[i], input)
			return err
		})
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		output := new(Output)
		for _, o := range outputs {
			output.Messages = append(output.Messages, o.Messages...)
			output.Exit = output.Exit || o.Exit
		}
		return output, nil
	})
}

// newFlow creates an agent that runs these agents, each at most rounds times.
func newFlow(name, description string, rounds int, agents []Agent, perform Func) (Agent, error) {
	b, err := newBuiltin(name, description, func(ctx context.Context, input *Input) (*Output, error) {
		if err := checkAgentsPresent(activation.FromContext(ctx), rounds, agents...); err != nil {
			return nil, err
		}
		return perform(ctx, input)
	})
	if err != nil {
		return nil, err
	}
	b.parts, b.flow = parts{agents: agents}, true
	return b, nil
}

func checkAgents(name string, agents []Agent) ([]Agent, error) {
	if len(agents) == 0 {
		return nil, fmt.Errorf("agent: %s has no agents", name)
	}
	if i := slices.IndexFunc(agents, func(a Agent) bool { return a == nil }); i >= 0 {
		return nil, fmt.Errorf("agent: %s: agent %d is nil", name, i+1)
	}
	return slices.Clone(agents), nil
}

// callCounts counts the calls of each agent.
type callCounts struct {
	agents []Agent
	counts map[string]int
}

func newCallCounts(agents []Agent) *callCounts { return &callCounts{agents, make(map[string]int)} }

func (c *callCounts) next(a Agent) int {
	c.counts[a.Name()]++
	return c.counts[a.Name()]
}

// round runs the agents one after the other, until one exits, and adds their messages to the
// output.
func round(ctx context.Context, c *callCounts, input *Input, output *Output) (*Output, error) {
	for _, a := range c.agents {
		next := &Input{Messages: slices.Concat(input.Messages, output.Messages)}
		result, err := RunNth(ctx, c.next(a), a, next)
		if err != nil {
			return nil, err
		}
		output.Messages = append(output.Messages, result.Messages...)
		if result.Exit {
			output.Exit = true
			break
		}
	}
	return output, nil
}
