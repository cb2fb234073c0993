package main

import (
	"context"
	"fmt"
)

// scenario is one comparison.
type scenario struct {
	// name is matched by -scenario.
	name       string
	ours, eino func() (*engine, error)
	// sizeOnly omits time and allocations.
	sizeOnly bool
	// cpuShare is the goal for our share of Eino's CPU time, maxStored for our stored bytes.
	cpuShare  float64
	maxStored int
}

// The line has ten nodes, and the fifth of them interrupts.
const (
	lineLength = 10
	lineAsk    = 5
)

// nestResult is the result of the nested graphs: two nodes per level and the one that interrupts.
func nestResult(depth int, text string) doc {
	return doc{Steps: 2*depth + 1, Answer: answer, Read: len(text)}
}

// scenarios lists all scenarios in the order of the report.
func scenarios() []scenario {
	list := []scenario{{name: "line/10", ours: oursRun, eino: einoRun, cpuShare: 1. / 10}}
	for _, size := range []int{kib, 64 * kib, mib} {
		list = append(list, waitScenario("wait/", size, saveOnHold))
	}
	list[1].cpuShare = 1. / 10
	for _, size := range []int{kib, 64 * kib, mib} {
		list = append(list, waitScenario("wait-each-step/", size, saveEachStep))
	}
	for _, n := range []int{100, 1000} {
		list = append(list, fanScenario("fan/nodes/", n, oursFanNodes), fanScenario("fan/each/", n, oursFanEach))
	}
	return append(list, nestScenario(5, false), nestScenario(10, true))
}

func waitScenario(prefix string, size int, mode saveMode) scenario {
	text := escapedText(size)
	return scenario{
		name: prefix + sizeName(size),
		ours: func() (*engine, error) { return oursWait(text, mode) },
		eino: func() (*engine, error) { return einoWait(text) },
	}
}

func fanScenario(prefix string, n int, make func(n int) (*engine, error)) scenario {
	return scenario{
		name: fmt.Sprint(prefix, n),
		ours: func() (*engine, error) { return make(n) },
		eino: func() (*engine, error) { return einoFan(n) },
	}
}

// nestScenario has the text in the innermost graph only, and stores it once.
func nestScenario(depth int, sizeOnly bool) scenario {
	text := escapedText(64 * kib)
	return scenario{
		name:     fmt.Sprintf("nest/%d", depth),
		ours:     func() (*engine, error) { return oursNest(depth, text) },
		eino:     func() (*engine, error) { return einoNest(depth, text) },
		sizeOnly: sizeOnly, maxStored: len(text)*6/5 + 2*kib,
	}
}

// growths are pairs of scenarios. The second has that many times as much work, and may cost as many
// times more, with some slack.
var growths = []struct {
	small, big string
	factor     float64
}{
	{"fan/nodes/100", "fan/nodes/1000", 10}, {"fan/each/100", "fan/each/1000", 10},
	{"wait/64KiB", "wait/1MiB", 16}, {"wait-each-step/64KiB", "wait-each-step/1MiB", 16},
}

// slack is how much worse than linear still counts as linear: caches are finite, and the machine is
// shared.
const slack = 1.3

// measureEngines measures the engines.
func measureEngines(ctx context.Context, c config, r *recorder) error {
	p := plan{rounds: c.rounds, duration: stretch}
	if c.quick {
		p = plan{rounds: 1}
	}
	found, err := p.measure(ctx, selected(c, scenarios(), func(s scenario) string { return s.name }), r)
	if err != nil {
		return err
	}
	byName := make(map[string]result)
	for _, one := range found {
		byName[one.scenario.name] = one
		r.add(one.metrics())
	}
	for _, g := range growths {
		small, ok := byName[g.small]
		big, both := byName[g.big]
		if !ok || !both {
			continue
		}
		s := &scenarioMetrics{name: g.small + " → " + g.big}
		a, b := small.ours.best(), big.ours.best()
		s.add("CPU", b.cpu/a.cpu, unitTimes).AtMost = slack * g.factor
		s.add("allocations", b.allocs/a.allocs, unitTimes).AtMost = slack * g.factor
		s.add("stored", float64(big.ours.stored), unitBytes).AtMost = slack * g.factor * float64(small.ours.stored)
		r.add(s)
	}
	return nil
}
