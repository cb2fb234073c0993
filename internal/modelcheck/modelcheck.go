// Package explore is a small model checker. It visits every state that a protocol can come to within the bounds of its model, the nearest
// first, so that what it finds is the shortest story of its kind; and it looks from which states the protocol cannot settle any more.
//
// Tests alone use it: the model of our own protocol is the code of store/memory, that of the protocol which ours replaces is
// internal/seedmodel.
package modelcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrLimit says that a model has more states than its limit, so that nothing is proved.
var ErrLimit = errors.New("explore: the model is larger than its limit")

// Model is a protocol and what it promises. Steps must not change the state that it is given.
type Model[S any, K comparable] struct {
	Start S
	// Key is the same for states from which the same can follow. Each is visited once.
	Key func(S) K
	// Steps is everything that can happen next.
	Steps func(S) []Step[S]
	// Broken names the promises that do not hold in this state.
	Violated func(S) []string
	// Settled says whether the protocol has come to its end here; nil if it need not come to any.
	Settled func(S) bool
	// Limit is the number of states that is thought to be enough.
	Limit int
	// All goes on after the first broken promise, for the shortest way to each of them.
	CollectAll bool
}

// Step is something that can happen.
type Step[S any] struct {
	Name string
	// Fault marks what the protocol must bear but must not need: a state that can settle only with its help cannot settle.
	Fault bool
	To    S
}

// Result is what an exploration came to.
type Result struct {
	States int
	// Broken holds the shortest way to each broken promise.
	Violations map[string]Path
	// Stuck counts the states from which the protocol cannot settle; StuckAt is the shortest way to one of them.
	Stuck   int
	StuckAt Path
}

// Path is a story: what happened, in order.
type Path []Move

// Move is one step of a story.
type Move struct {
	Name  string
	Fault bool
}

// Faults counts the faults of the story.
func (p Path) Faults() int {
	faults := 0
	for _, move := range p {
		if move.Fault {
			faults++
		}
	}
	return faults
}

// String writes the story with one numbered line per step.
func (p Path) String() string {
	var text strings.Builder
	for n, move := range p {
		fmt.Fprintf(&text, "%3d. %s\n", n+1, move.Name)
	}
	return text.String()
}

// node is a state with the way that led to it first, and the states from which it can be reached without a fault. The state itself
// is let go once everything is known that can follow: a model has many, and only those at the edge are at work.
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

// Run explores the model. It returns ErrLimit together with what it found so far.
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

// visit returns the number of a state, a new one if it was not known.
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

// look notes what is to be known of a state, and reports whether it breaks a promise.
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

// findStuck goes backwards from where the protocol has settled. Whatever it does not come to is stuck.
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
