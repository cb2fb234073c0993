package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/tool"
)

// parts are the agents and tools that an agent of this package calls.
type parts struct {
	agents  []Agent
	tools   []*tool.Tool
	dynamic bool // it has more tools, which are known only when it runs
}

// CheckOpen reports whether this program can resume the open interrupts of an agent's run: the
// agents and tools at their addresses exist, and the arguments of the waiting tool calls match the
// tool's schema. It runs nothing. Agents that other code implements, and tools that an agent gets
// only when it runs, are not checked.
func CheckOpen(root Agent, open []*fermata.InterruptCtx) error {
	var errs []error
	for _, ic := range open {
		if err := checkPlace(root, ic); err != nil {
			errs = append(errs, fmt.Errorf("agent: %s: %w", ic.Address, err))
		}
	}
	return errors.Join(errs...)
}

func checkPlace(root Agent, ic *fermata.InterruptCtx) error {
	var at Agent
	for _, segment := range ic.Address {
		switch segment.Type {
		case fermata.SegmentAgent:
			next := root
			if at != nil {
				next = findAgent(root, segment.ID)
			}
			if next == nil || next.Name() != segment.ID {
				return fmt.Errorf("this program has no agent %q there", segment.ID)
			}
			at = next
			if _, ours := at.(*builtin); !ours {
				return nil
			}
		case fermata.SegmentTool:
			if at == nil {
				return nil
			}
			return checkTool(at.(*builtin), segment.ID, ic)
		default:
		}
	}
	return nil
}

// findAgent returns an agent that the root calls or hands over to, directly or not; nil if there is
// none.
func findAgent(root Agent, name string) Agent {
	queue, known := []Agent{root}, make(map[Agent]bool)
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		if known[a] {
			continue
		}
		known[a] = true
		if a.Name() == name {
			return a
		}
		if b, ours := a.(*builtin); ours {
			queue = append(queue, b.parts.agents...)
		}
	}
	return nil
}

// checkTool checks the tool of a waiting call. The call of a tool that is an agent has interrupts
// below it, which are not checked.
func checkTool(of *builtin, name string, ic *fermata.InterruptCtx) error {
	i := slices.IndexFunc(of.parts.tools, func(t *tool.Tool) bool { return t.Name() == name })
	if i < 0 {
		if of.parts.dynamic {
			return nil
		}
		return fmt.Errorf("agent %q has no tool %q any more", of.name, name)
	}
	if ic.Kind != fermata.Approval.Name() {
		return nil
	}
	asked, err := fermata.Approval.Question(ic)
	if err != nil || asked.Args == nil || asked.Action != name {
		return nil
	}
	if err := schema.CheckData("arguments", of.parts.tools[i].Schema(), asked.Args); err != nil {
		return fmt.Errorf("the schema of tool %q has changed: %w", name, err)
	}
	return nil
}
