package main

import "fmt"

// mostAround is how many agents stand around the innermost one at most: each is a tool of the next.
const mostAround = 4

// agentScenarios are the ones with agents. What a depth costs is compared with depth 0 in goals_agent.go.
func agentScenarios() []scenario {
	held := errandScenario("agent/held", 0, 0)
	held.what = "an agent waits until its tool call is approved, and ends"
	list := []scenario{held}
	for depth := range mostAround + 1 {
		list = append(list, errandScenario(nestedName(0, depth), depth, 0))
	}
	for depth := range mostAround + 1 {
		s := errandScenario(nestedName(4*kib, depth), depth, 4*kib)
		s.what += fmt.Sprintf(", %s of arguments", sizeName(4*kib))
		s.sizeOnly, s.bulky = true, depth == mostAround
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

func errandScenario(name string, depth, size int) scenario {
	text := prose(size)
	return scenario{
		name: name, what: fmt.Sprintf("the same with %d agents around it", depth),
		ours: func() (*subject, error) { return oursErrand(depth, text) },
		eino: func() (*subject, error) { return einoErrand(depth, text) },
	}
}
