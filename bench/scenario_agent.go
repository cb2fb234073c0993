package main

import "fmt"

// maxAgentDepth is the maximum number of agents around the innermost one: each is a tool of the
// next.
const maxAgentDepth = 4

// agentScenarios are the scenarios with agents. goals_agent.go compares the cost of a depth with
// depth 0.
func agentScenarios() []scenario {
	held := agentTaskScenario("agent/held", 0, 0)
	held.description = "an agent waits until its tool call is approved, and ends"
	list := []scenario{held}
	for depth := range maxAgentDepth + 1 {
		list = append(list, agentTaskScenario(nestedName(0, depth), depth, 0))
	}
	for depth := range maxAgentDepth + 1 {
		s := agentTaskScenario(nestedName(4*kib, depth), depth, 4*kib)
		s.description += fmt.Sprintf(", %s of arguments", sizeName(4*kib))
		s.sizeOnly, s.bulky = true, depth == maxAgentDepth
		list = append(list, s)
	}
	return list
}

func nestedName(size, depth int) string {
	if size == 0 {
		return fmt.Sprintf("agent/nested/depth%d", depth)
	}
	return fmt.Sprintf("agent/nested-%s/depth%d", sizeName(size), depth)
}

func agentTaskScenario(name string, depth, size int) scenario {
	text := escapedText(size)
	return scenario{
		name: name, description: fmt.Sprintf("the same with %d agents around it", depth),
		ours: func() (*engine, error) { return oursAgentTask(depth, text) },
		eino: func() (*engine, error) { return einoAgentTask(depth, text) },
	}
}
