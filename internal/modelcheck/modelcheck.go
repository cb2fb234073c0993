// Package modelcheck is a small model checker. It visits every reachable state of a bounded model
// in breadth-first order, so it reports the shortest path to each violation. It also finds states
// from which the protocol can no longer settle.
//
// Only tests use it. The model of our protocol is the code of store/memory.
package modelcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrLimit is returned if a model has more states than its limit, so nothing is proved.
var ErrLimit = errors.New("modelcheck: the model is larger than its limit")

// Model is a protocol and its invariants. Steps must not change the state that it is given.
type Model[S any, K comparable] struct {
	Start S
	// Key identifies equivalent states. Each key is visited once.
	Key func(S) K
	// Steps returns every possible next step.
	Steps func(S) []Step[S]
	// Violated names the invariants that do not hold in a state.
	Violated func(S) []string
	// Settled reports whether the protocol may end in a state; nil if it need not end.
	Settled func(S) bool
	// Limit is the maximum number of states.
	Limit int
	// CollectAll continues after the first violation, to find the shortest path to each.
	CollectAll bool
}

// Step is one possible transition.
type Step[S any] struct {
	Name string
	// Fault marks a transition that the protocol must tolerate but must not need: a state that can
	// settle only through a fault counts as stuck.
	Fault bool
	To    S
}

// Result is the result of a check.
type Result struct {
	States int
	// Violations holds the shortest path to each violation.
	Violations map[string]Path
	// Stuck counts the states from which the protocol cannot settle. StuckAt is the shortest path
	// to one of them.
	Stuck   int
	StuckAt Path
}

// Path is a sequence of steps.
type Path []Move

// Move is one step of a path.
type Move struct {
	Name  string
	Fault bool
}

// Faults counts the faults in the path.
func (p Path) Faults() int {
	faults := 0
	for _, move := range p {
		if move.Fault {
			faults++
		}
	}
	return faults
}

// String formats the path with one numbered line per step.
func (p Path) String() string {
	var text strings.Builder
	for n, move := range p {
		fmt.Fprintf(&text, "%3d. %s\n", n+1, move.Name)
	}
	return text.String()
}

// node is a state with its first path and the states from which it is reachable without a fault.
// The state itself is released after its expansion, because a model has many states.
type node[S any] struct {
	state   S
	move    Move
	parent  int
	back    []int
	settled bool
}

type checker[S any, K comparable] struct {
	Model[S, K]
	nodes  []node[S]
	known  map[K]int
	result Result
}

// Run checks the model. It returns ErrLimit together with the results so far.
func Run[S any, K comparable](model Model[S, K]) (Result, error) {
	e := &checker[S, K]{Model: model, known: make(map[K]int), result: Result{Violations: make(map[string]Path)}}
	e.addState(model.Start, Move{}, -1)
	for n := 0; n < len(e.nodes); n++ {
		if len(e.nodes) > model.Limit {
			e.result.States = len(e.nodes)
			return e.result, ErrLimit
		}
		if e.inspect(n) && !model.CollectAll {
			e.result.States = len(e.nodes)
			return e.result, nil
		}
		e.expand(n)
	}
	e.result.States = len(e.nodes)
	if model.Settled != nil {
		e.findStuck()
	}
	return e.result, nil
}

// addState returns the number of a state and adds it if it is new.
func (e *checker[S, K]) addState(state S, move Move, parent int) int {
	key := e.Key(state)
	n, known := e.known[key]
	if !known {
		n = len(e.nodes)
		e.known[key] = n
		e.nodes = append(e.nodes, node[S]{state: state, move: move, parent: parent})
	}
	return n
}

// inspect records the properties of a state and reports whether it violates an invariant.
func (e *checker[S, K]) inspect(n int) bool {
	e.nodes[n].settled = e.Settled != nil && e.Settled(e.nodes[n].state)
	broken := e.Violated(e.nodes[n].state)
	for _, promise := range broken {
		if _, known := e.result.Violations[promise]; !known {
			e.result.Violations[promise] = e.path(n)
		}
	}
	return len(broken) > 0
}

func (e *checker[S, K]) expand(n int) {
	for _, step := range e.Steps(e.nodes[n].state) {
		m := e.addState(step.To, Move{step.Name, step.Fault}, n)
		if !step.Fault && m != n {
			e.nodes[m].back = append(e.nodes[m].back, n)
		}
	}
	var gone S
	e.nodes[n].state = gone
}

// findStuck searches backwards from settled states. States that it does not reach are stuck.
func (e *checker[S, K]) findStuck() {
	can := make([]bool, len(e.nodes))
	var queue []int
	for n := range e.nodes {
		if e.nodes[n].settled {
			can[n] = true
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, before := range e.nodes[n].back {
			if !can[before] {
				can[before] = true
				queue = append(queue, before)
			}
		}
	}
	for n := range e.nodes {
		if can[n] {
			continue
		}
		if e.result.Stuck == 0 {
			e.result.StuckAt = e.path(n)
		}
		e.result.Stuck++
	}
}

func (e *checker[S, K]) path(n int) Path {
	path := Path{}
	for ; e.nodes[n].parent >= 0; n = e.nodes[n].parent {
		path = append(path, e.nodes[n].move)
	}
	slices.Reverse(path)
	return path
}
