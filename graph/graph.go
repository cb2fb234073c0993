package graph

import (
	"context"
	"reflect"
	"time"
)

// Start and End are the two ends of every graph. They are no nodes; no node can have these names.
const (
	Start = "__start__"
	End   = "__end__"
)

// Func is what a node does: it gets the state and returns the state that comes after it. It must not keep the state it was
// given, and it may be entered again after an answer, a crash or a failure, with the same state: what must not be repeated
// goes into [fermata.Do] or [fermata.Effect].
type Func[S any] func(ctx context.Context, state S) (S, error)

// Route picks the next node after a branch. It must go by the state alone, so that the way of a run can be understood from
// what was saved.
type Route[S any] func(state S) string

// Graph is a graph in the making. Its methods note what is wanted; [Graph.Compile] says what is wrong with it.
type Graph[S any] struct {
	_ [0]*S // or Go would convert it to a graph over any other state
	definition
}

// definition is a graph in the making, whatever its state.
type definition struct {
	name     string
	nodes    []*node
	edges    []edge
	branches []branch
	before   []string
	after    []string
	merges   []merge
	renames  map[string]string
	migrate  func(fields Fields) error
	maxSteps int
	parallel int
}

// node is a place in the graph. sub is set for a node that contains a graph, fanOut for one that works on a list.
type node struct {
	name string
	// run does what the node does: with the state in, of which it takes a copy, it makes out. A fan-out is told how many items may run at once.
	run     func(ctx context.Context, in, out statePtr, parallel int) error
	timeout time.Duration
	sub     *compiled
	fanOut  bool
	// items is the list that a fan-out works on.
	items func(in statePtr) any
	// result is the type of the results of a fan-out, unsavable what would be lost of them.
	result    reflect.Type
	unsavable []string
}

type edge struct{ from, to string }

type branch struct {
	from    string
	pick    func(in statePtr) string
	targets []string
}

// New returns an empty graph over the state S: a struct with exported fields, whose JSON is what is saved, or any other type
// that JSON can hold. The name is part of every address and of what is saved.
//
// A node that is entered in another process sees what JSON has kept: where the type is any, a number is a json.Number then and a
// struct a map. Give such values a type if nodes look into them.
func New[S any](name string) *Graph[S] {
	return &Graph[S]{definition: definition{name: name, maxSteps: DefaultMaxSteps, renames: map[string]string{}}}
}

// DefaultMaxSteps is how many steps a graph may take without a person's word, unless [Graph.MaxSteps] says otherwise.
const DefaultMaxSteps = 1000

// NodeOption changes how a node runs.
type NodeOption func(*nodeOptions)

type nodeOptions struct{ timeout time.Duration }

// Timeout cancels the context of a node after d. The node has to heed it; a node cannot be stopped from outside.
func Timeout(d time.Duration) NodeOption { return func(o *nodeOptions) { o.timeout = d } }

// Node adds a node.
func (g *Graph[S]) Node(name string, fn Func[S], options ...NodeOption) {
	n := &node{name: name}
	if fn != nil {
		n.run = func(ctx context.Context, in, out statePtr, _ int) (err error) {
			*out.(*S), err = fn(ctx, *in.(*S))
			return err
		}
	}
	g.add(n, options)
}

func (g *definition) add(n *node, options []NodeOption) {
	var o nodeOptions
	for _, option := range options {
		option(&o)
	}
	n.timeout = o.timeout
	g.nodes = append(g.nodes, n)
}

// Edge leads from one node to the next. Several edges out of one node are followed together. A node that several edges lead
// to runs when the ways that are under way have all arrived: once for what comes together, again for what comes later.
func (g *Graph[S]) Edge(from, to string) { g.edges = append(g.edges, edge{from, to}) }

// Branch leads from a node to the one target that the route picks. Every possible target must be declared; picking another
// one is an error of the run.
func (g *Graph[S]) Branch(from string, route Route[S], targets ...string) {
	b := branch{from: from, targets: targets}
	if route != nil {
		b.pick = func(in statePtr) string { return route(*in.(*S)) }
	}
	g.branches = append(g.branches, b)
}

// HoldBefore stops every run before it enters one of these nodes, until a person lets it go on. The interrupt is of kind
// "hold", its Info is the graph's state, and its answer is nil or the edited state.
func (g *Graph[S]) HoldBefore(nodes ...string) { g.before = append(g.before, nodes...) }

// HoldAfter stops every run after one of these nodes has finished, before its edges are followed. See [Graph.HoldBefore].
func (g *Graph[S]) HoldAfter(nodes ...string) { g.after = append(g.after, nodes...) }

// MaxSteps limits the steps that a run may take from start or resume to its next rest. It is the brake for a loop that does
// not end.
func (g *Graph[S]) MaxSteps(n int) { g.maxSteps = n }

// MaxParallel limits how many nodes of a step, and how many items of a fan-out, run at the same time. The default 0 is no
// limit.
func (g *Graph[S]) MaxParallel(n int) { g.parallel = n }

// Rename says that a node had another name in an earlier version of the program, so that runs which wait there go on here.
func (g *Graph[S]) Rename(old, now string) { g.renames[old] = now }

// Fields is a saved state: the JSON of each field by its JSON name.
type Fields = map[string][]byte

// MigrateState registers a function that brings a saved state up to date: it may change, add and remove fields. It is called
// when a run goes on whose state had other fields, or fields of other types, also inside of these. It may be called for a state
// that needs nothing done, and for one run several times: look before you change.
func (g *Graph[S]) MigrateState(migrate func(fields Fields) error) { g.migrate = migrate }

// KindHold is the kind of the interrupts that [Graph.HoldBefore] and [Graph.HoldAfter] make. Their answer is nil, to go on, or
// the graph's state, edited.
const KindHold = "hold"
