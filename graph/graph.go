package graph

import (
	"context"
	"reflect"
	"time"

	"github.com/fermata-go/fermata"
)

// Start and End are the two ends of every graph. They are not nodes, and nodes cannot have these
// names.
const (
	Start = "__start__"
	End   = "__end__"
)

// Func is the function of a node. It receives the state and returns the next state. It must not
// retain the state. It may be called again with the same state after an answer, a crash or a
// failure: put work that must not be repeated into [fermata.Do] or [fermata.Effect].
type Func[S any] func(ctx context.Context, state S) (S, error)

// Route picks the next node after a branch. It must depend only on the state, so that the path of a
// run can be derived from the saved data.
type Route[S any] func(state S) string

// Graph is a graph under construction. Its methods record the definition; [Graph.Compile] reports
// mistakes.
type Graph[S any] struct {
	_ [0]*S // prevents conversion to a graph with another state type
	definition
}

// definition is a graph under construction, without its state type.
type definition struct {
	name        string
	nodes       []*node
	edges       []edge
	branches    []branch
	mistakes    []Mistake // of calls that could not be recorded
	holdRecords func(statePtr) *[]HoldRecord
	recordGrant func(statePtr, HoldRecord)
	protected   []func(statePtr) any
	before      []string
	after       []string
	merges      []merge
	renames     map[string]string
	migrate     func(fields Fields) error
	refusalTo   map[fermata.Verb]refusalTarget // by return and reject
	maxSteps    int
	parallel    int
}

// refusalTarget is where a run continues when a hold is rejected or returned for redesign.
type refusalTarget struct {
	node string
	note func(state statePtr, refused fermata.Refusal)
}

// node is a node of the graph. sub is set if it contains a graph, fanOut if it processes a list.
type node struct {
	name string
	// run executes the node: it copies the state in and sets out. A fan-out limits its concurrent
	// items to parallel.
	run     func(ctx context.Context, in, out statePtr, parallel int) error
	timeout time.Duration
	unique  string // the id of UniqueID
	latest  bool   // see LatestState
	sub     *compiled
	fanOut  bool
	// items returns the list that a fan-out processes.
	items func(in statePtr) any
	// result is the type of a fan-out's results; unsavable lists the parts of it that cannot be
	// saved.
	result    reflect.Type
	unsavable []string
}

type edge struct{ from, to string }

type branch struct {
	from    string
	pick    func(in statePtr) string
	targets []string
}

// New returns an empty graph with the state type S: a struct with exported fields, which is saved
// as JSON, or any other type that JSON can represent. The name is part of every address and of the
// saved data.
//
// Every node, and the caller, gets the state as decoded from its JSON, whether or not it was saved:
// a time.Time has no monotonic part, fields with the tag `json:"-"` are zero, and in fields of type
// any numbers are json.Number and structs are maps. Use concrete types for values that nodes
// inspect. A value in a field of type any of which JSON would lose a part is an error of its node.
func New[S any](name string) *Graph[S] {
	return &Graph[S]{definition: definition{name: name, maxSteps: DefaultMaxSteps, renames: map[string]string{}}}
}

// DefaultMaxSteps is the default step limit of an execution. See [Graph.MaxSteps].
const DefaultMaxSteps = 1000

// NodeOption configures a node.
type NodeOption func(*nodeOptions)

type nodeOptions struct {
	timeout time.Duration
	unique  string
	latest  bool
}

// LatestState is for a node that asks people about the state and routes the run, such as a gate:
// the nodes after it use the newest state. It runs after all other nodes that are ready. If a
// parallel branch changes the state while it waits, it is entered again with the new state. If it
// then asks something else, the new question supersedes the earlier one, whose answers are rejected
// with [ErrSuperseded].
func LatestState() NodeOption { return func(o *nodeOptions) { o.latest = true } }

// UniqueID declares an id of a node, apart from its name, that no other node of the graph may have,
// such as that of a gate. Compile reports duplicates.
func UniqueID(id string) NodeOption { return func(o *nodeOptions) { o.unique = id } }

// Timeout cancels the context of a node after d. The node must honour its context; it cannot be
// stopped otherwise.
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
	n.timeout, n.unique, n.latest = o.timeout, o.unique, o.latest
	g.nodes = append(g.nodes, n)
}

// Edge adds an edge between two nodes. Several edges from one node are followed in parallel. A node
// with several incoming edges runs once when all active branches have arrived, and again for
// branches that arrive later.
func (g *Graph[S]) Edge(from, to string) { g.edges = append(g.edges, edge{from, to}) }

// Branch adds edges from a node to targets; the route picks one of them. All possible targets must
// be declared; another result is an error of the run.
func (g *Graph[S]) Branch(from string, route Route[S], targets ...string) {
	b := branch{from: from, targets: targets}
	if route != nil {
		b.pick = func(in statePtr) string { return route(*in.(*S)) }
	}
	g.branches = append(g.branches, b)
}

// HoldBefore stops every run before it enters one of these nodes, until a person releases it. The
// interrupt is of kind "hold", its Info is the graph's state, and its answer is nil or the edited
// state.
func (g *Graph[S]) HoldBefore(nodes ...string) { g.before = append(g.before, nodes...) }

// HoldAfter stops every run after one of these nodes has finished, before its edges are followed.
// See [Graph.HoldBefore].
func (g *Graph[S]) HoldAfter(nodes ...string) { g.after = append(g.after, nodes...) }

// RecordHolds declares the part of the state that records who released the holds of this graph. The
// runtime appends a record when a hold is released. An answer that changes this part is rejected
// with [fermata.ErrForgedIdentity], and so is an input that has records.
func (g *Graph[S]) RecordHolds(records func(state *S) *[]HoldRecord) {
	g.holdRecords = nil
	if records != nil {
		g.holdRecords = func(state statePtr) *[]HoldRecord { return records(state.(*S)) }
		g.Protect(func(state *S) any { return records(state) })
	}
}

// Protect declares a part of the state that only the program writes, such as a record of decisions.
// part returns a pointer to it. An answer to a hold that changes this part is rejected with
// [fermata.ErrForgedIdentity], and so is an input in which it is not empty.
func (g *Graph[S]) Protect(part func(state *S) any) {
	if part != nil {
		g.protected = append(g.protected, func(state statePtr) any { return part(state.(*S)) })
	}
}

// RecordGrant registers a function that writes into the state who released a hold, in the fields
// that the program uses:
//
//	g.RecordGrant(func(s *State, by graph.HoldRecord) { s.Approval, s.Approver = "granted", by.By })
//
// It is called each time a hold of this graph is released, after the edits of the answer, and must
// only use its arguments. It overwrites what the answer has in these fields; use [Graph.Protect] to
// reject such an answer.
func (g *Graph[S]) RecordGrant(write func(state *S, by HoldRecord)) {
	g.recordGrant = nil
	if write != nil {
		g.recordGrant = func(state statePtr, by HoldRecord) { write(state.(*S), by) }
	}
}

// ReturnTo declares the node at which a run continues when a person returns one of its holds for
// redesign. The held node is not entered, and the edges after it are not followed. note, if not
// nil, writes the reason into the state. Without ReturnTo such a run fails with a
// [*fermata.ReturnedError].
func (g *Graph[S]) ReturnTo(node string, note func(state *S, returned fermata.Refusal)) {
	g.refuseTo(fermata.VerbReturn, node, note)
}

// RejectTo declares the node at which a run continues when one of its holds is rejected, by a
// person or by a rule at its deadline. Otherwise it is like [Graph.ReturnTo]: without RejectTo such
// a run fails with a [*fermata.RejectedError].
func (g *Graph[S]) RejectTo(node string, note func(state *S, rejected fermata.Refusal)) {
	g.refuseTo(fermata.VerbReject, node, note)
}

func (g *Graph[S]) refuseTo(verb fermata.Verb, node string, note func(*S, fermata.Refusal)) {
	to := refusalTarget{node: node}
	if note != nil {
		to.note = func(state statePtr, refused fermata.Refusal) { note(state.(*S), refused) }
	}
	if g.refusalTo == nil {
		g.refusalTo = make(map[fermata.Verb]refusalTarget)
	}
	g.refusalTo[verb] = to
}

// MaxSteps limits the number of steps of one execution, from start or resume until the run waits or
// ends. It protects against endless loops.
func (g *Graph[S]) MaxSteps(n int) { g.maxSteps = n }

// MaxParallel limits how many nodes of a step, and how many items of a fan-out, run concurrently.
// The default 0 means no limit.
func (g *Graph[S]) MaxParallel(n int) { g.parallel = n }

// Rename declares that a node had another name in an earlier version of the program. Runs that wait
// at the old name continue at the new one.
func (g *Graph[S]) Rename(old, now string) { g.renames[old] = now }

// Fields is a saved state: the JSON of each field by its JSON name.
type Fields = map[string][]byte

// MigrateState registers a function that updates a saved state: it may change, add and remove
// fields. It is called when a run is resumed whose state had other fields or field types, at any
// depth. It may be called for a state that needs no change, and several times for one run, so it
// must check before it changes anything.
func (g *Graph[S]) MigrateState(migrate func(fields Fields) error) { g.migrate = migrate }

// KindHold is the kind of the interrupts of [Graph.HoldBefore] and [Graph.HoldAfter]. Their answer
// is nil, to continue, or the edited state of the graph.
const KindHold = "hold"
