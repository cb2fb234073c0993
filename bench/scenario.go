package main

import "fmt"

// scenario is one comparison, or one measurement of our side only.
type scenario struct {
	// name is matched by -scenario, description is the row's title.
	name, description string
	ours              func() (*engine, error)
	// eino is nil if Eino has no equivalent.
	eino func() (*engine, error)
	// sizeOnly omits time and allocations.
	sizeOnly bool
	// bulky omits Eino in a quick run, which is also a test: its side needs gigabytes under the
	// race detector.
	bulky bool
	// unequal says what differs between the two sides.
	unequal string
}

// The line has ten nodes, and the fifth of them interrupts.
const (
	lineLength = 10
	lineAsk    = 5
)

const (
	noteSavesMore = "our side also saves after every step, which survives a crash between two waits; Eino cannot do that"
	noteEachItem  = "our side is one node that fans out over a list (graph.Each); Eino has branches only"
	noteStoresAll = "the text is in the state of every level, not only of the innermost one"
)

// nestResult is the result of the nested graphs: two nodes per level and the one that interrupts.
func nestResult(depth int, text string) doc {
	return doc{Steps: 2*depth + 1, Answer: answer, Read: len(text)}
}

// scenarios lists all scenarios in the order of the report.
func scenarios() []scenario {
	list := []scenario{{name: "line/10", description: "10 nodes in a line, no store, no wait", ours: oursRun, eino: einoRun}}
	for _, size := range []int{kib, 64 * kib, mib} {
		list = append(list, waitScenario("wait/", size, saveOnHold, ""))
	}
	for _, size := range []int{kib, 64 * kib, mib} {
		list = append(list, waitScenario("wait-each-step/", size, saveEachStep, noteSavesMore))
	}
	for _, n := range []int{100, 1000} {
		list = append(list, fanScenario("fan/nodes/", n, oursFanNodes, saveOnHold, ""))
	}
	for _, n := range []int{100, 1000} {
		list = append(list, fanScenario("fan/each/", n, oursFanEach, saveOnHold, noteEachItem))
	}
	list = append(list, nestScenario(5, false), nestScenario(10, true), nestThrough(5))
	list = append(list, agentScenarios()...)
	list = append(list, oursAlone()...)
	return append(list, policyScenarios()...)
}

func waitScenario(prefix string, size int, mode saveMode, unequal string) scenario {
	text := escapedText(size)
	return scenario{
		name: prefix + sizeName(size), description: fmt.Sprintf("wait at node 5 of 10 and resume, %s of state", sizeName(size)),
		ours:    func() (*engine, error) { return oursWait(text, mode) },
		eino:    func() (*engine, error) { return einoWait(text) },
		unequal: unequal,
	}
}

type oursFanMaker func(n int, how saveMode) (*engine, error)

func fanScenario(prefix string, n int, make oursFanMaker, mode saveMode, unequal string) scenario {
	return scenario{
		name: fmt.Sprint(prefix, n), description: fmt.Sprintf("%d parallel waits, answered in one call", n),
		ours:    func() (*engine, error) { return make(n, mode) },
		eino:    func() (*engine, error) { return einoFan(n) },
		unequal: unequal,
	}
}

// nestScenario has the text in the innermost graph only.
func nestScenario(depth int, sizeOnly bool) scenario {
	text := escapedText(64 * kib)
	return scenario{
		name: fmt.Sprintf("nest/%d", depth), description: fmt.Sprintf("%d nested graphs, the innermost waits with 64KiB", depth),
		ours:     func() (*engine, error) { return oursNest(depth, text, doc{}, saveOnHold) },
		eino:     func() (*engine, error) { return einoNest(depth, text, doc{}) },
		sizeOnly: sizeOnly,
	}
}

// nestThrough passes the text through the states of all levels.
func nestThrough(depth int) scenario {
	s := nestScenario(depth, true)
	text := escapedText(64 * kib)
	s.name = fmt.Sprintf("nest-through/%d", depth)
	s.ours = func() (*engine, error) { return oursNest(depth, text, doc{Text: text}, saveOnHold) }
	s.eino = func() (*engine, error) { return einoNest(depth, text, doc{Text: text}) }
	s.unequal = noteStoresAll
	return s
}

// oursAlone are the rows without an equivalent in Eino.
func oursAlone() []scenario {
	text := escapedText(kib)
	list := []scenario{
		{
			name: "sqlite/on-hold", description: "wait at node 5 of 10 and resume, 1KiB, SQLite, saved when it holds",
			ours: func() (*engine, error) { return oursSQLite(text, saveOnHold) },
		},
		{
			name: "sqlite/each-step", description: "wait at node 5 of 10 and resume, 1KiB, SQLite, saved after every step",
			ours: func() (*engine, error) { return oursSQLite(text, saveEachStep) },
		},
	}
	for _, form := range []struct {
		prefix, what string
		make         oursFanMaker
		how          saveMode
	}{
		{"fan/flows/", ", each in a graph of its own (graph.EachFlow)", oursFanFlows, saveOnHold},
		{"fan-each-step/nodes/", ", saved after every step", oursFanNodes, saveEachStep},
		{"fan-each-step/each/", ", saved after every step", oursFanEach, saveEachStep},
		{"fan-each-step/flows/", ", each in a graph of its own, saved after every step", oursFanFlows, saveEachStep},
	} {
		for _, n := range []int{100, 1000} {
			s := fanScenario(form.prefix, n, form.make, form.how, "")
			s.description += form.what
			s.eino = nil
			list = append(list, s)
		}
	}
	return list
}
