package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/suggest"
)

// Flow is a compiled graph. It is immutable and safe for concurrent use by any number of runs.
type Flow[S any] struct {
	_ [0]*S // prevents conversion to a flow with another state type
	*compiled
}

// compiled is a compiled graph without its state type.
type compiled struct {
	name        string
	address     string // of the graph as the outermost one
	stateType   *stateType
	plan        plan
	nodes       []*node
	index       map[string]int // node index by name
	segments    []string       // address segments by node index
	routes      [][]route      // by node + 1; Start is 0
	before      []bool
	after       []bool
	holdRecords func(statePtr) *[]HoldRecord // nil: holds are not recorded
	recordGrant func(statePtr, HoldRecord)   // nil: the same
	protected   []func(statePtr) any         // parts of the state that only the program writes
	renames     map[string]string
	refusalTo   map[fermata.Verb]refusalTarget
	migrate     func(Fields) error
	maxSteps    int
	parallel    int
	fingerprint string
	// newActivation allocates an activation and an output state in one piece.
	newActivation func() (*activation.Activation, statePtr)
	drawing       drawingCache
}

func allocActivation[S any]() (*activation.Activation, statePtr) {
	var e struct {
		visit activation.Activation
		out   S
	}
	return &e.visit, &e.out
}

// typedState converts the final state of a run to its type.
func typedState[S any](state statePtr, err error) (S, error) {
	if err != nil {
		var zero S
		return zero, err
	}
	return *state.(*S), nil
}

type route struct {
	pick    func(in statePtr) string
	targets map[string]int
	names   []string
}

// Compile checks the graph and returns it ready to run. If the graph is invalid, it returns a
// [*CompileError] that lists all mistakes. The graph may be changed and compiled again; earlier
// results do not change.
func (g *Graph[S]) Compile() (*Flow[S], error) {
	fl, err := g.compile(reflect.TypeFor[S](), allocActivation[S])
	if err != nil {
		return nil, err
	}
	return &Flow[S]{compiled: fl}, nil
}

func (g *definition) compile(state reflect.Type, entry func() (*activation.Activation, statePtr)) (*compiled, error) {
	c := compiler{definition: g, state: state, newActivation: entry, index: make(map[string]int), mistakes: slices.Clone(g.mistakes)}
	c.checkNodes()
	c.checkEdges()
	c.checkState()
	c.checkReachability()
	if len(c.mistakes) > 0 {
		return nil, &CompileError{Graph: g.name, Mistakes: c.mistakes}
	}
	return c.build(), nil
}

type compiler struct {
	*definition
	state         reflect.Type
	newActivation func() (*activation.Activation, statePtr)
	index         map[string]int
	stateType     *stateType
	plan          plan
	mistakes      []Mistake
}

func (c *compiler) addMistake(code, node, format string, args ...any) {
	c.mistakes = append(c.mistakes, Mistake{Code: code, Node: node, Message: fmt.Sprintf(format, args...)})
}

func (c *compiler) checkNodes() {
	if c.name == "" || !utf8.ValidString(c.name) {
		c.addMistake(mistakeName, "", "invalid graph name %q", c.name)
	}
	if len(c.nodes) == 0 {
		c.addMistake(mistakeMissing, "", "the graph has no nodes")
	}
	for i, n := range c.nodes {
		switch {
		case n.name == "" || n.name == Start || n.name == End || !utf8.ValidString(n.name):
			c.addMistake(mistakeName, n.name, "invalid node name %q", n.name)
		case n.run == nil:
			c.addMistake(mistakeMissing, n.name, "node %q has no function", n.name)
		}
		for _, message := range n.unsavable {
			c.addMistake(mistakeState, n.name, "%s", message)
		}
		if _, duplicate := c.index[n.name]; duplicate {
			c.addMistake(mistakeDuplicate, n.name, "node %q is defined twice", n.name)
			continue
		}
		c.index[n.name] = i
	}
	c.checkUniqueIDs()
	for _, hold := range slices.Concat(c.before, c.after) {
		if _, ok := c.index[hold]; !ok {
			c.addMistake(mistakeUnknown, hold, "a hold names unknown node %q%s", hold, c.suggestion(hold))
		}
	}
	for _, verb := range []fermata.Verb{fermata.VerbReturn, fermata.VerbReject} {
		if to, declared := c.refusalTo[verb]; declared && !c.isNode(to.node) {
			name := map[fermata.Verb]string{fermata.VerbReturn: "ReturnTo", fermata.VerbReject: "RejectTo"}[verb]
			c.addMistake(mistakeUnknown, to.node, "%s names unknown node %q%s", name, to.node, c.suggestion(to.node))
		}
	}
	for _, old := range slices.Sorted(maps.Keys(c.renames)) {
		if _, ok := c.index[c.renames[old]]; !ok {
			c.addMistake(mistakeUnknown, c.renames[old], "a rename names unknown node %q%s", c.renames[old], c.suggestion(c.renames[old]))
		}
	}
}

func (c *compiler) checkUniqueIDs() {
	owners := make(map[string]string)
	for _, n := range c.nodes {
		if n.unique == "" {
			continue
		}
		if other, used := owners[n.unique]; used {
			c.addMistake(mistakeDuplicate, n.name, "nodes %q and %q have the same id %q: give each its own", other, n.name, n.unique)
		}
		owners[n.unique] = n.name
	}
}

func (c *compiler) checkEdges() {
	seen := make(map[edge]bool)
	for _, e := range c.edges {
		if seen[e] {
			c.addMistake(mistakeDuplicate, e.from, "the edge from %q to %q is defined twice", e.from, e.to)
		}
		seen[e] = true
		c.checkFrom("an edge", e.from)
		c.checkTo("an edge from "+fmt.Sprintf("%q", e.from), e.to)
	}
	for _, b := range c.branches {
		c.checkFrom("a branch", b.from)
		if b.pick == nil {
			c.addMistake(mistakeMissing, b.from, "the branch from %q has no route", b.from)
		}
		if len(b.targets) == 0 {
			c.addMistake(mistakeMissing, b.from, "the branch from %q has no targets", b.from)
		}
		for _, target := range b.targets {
			c.checkTo(fmt.Sprintf("the branch from %q", b.from), target)
		}
	}
}

func (c *compiler) checkFrom(what, name string) {
	if name == End {
		c.addMistake(mistakeUnknown, name, "%s starts at End", what)
	} else if _, ok := c.index[name]; !ok && name != Start {
		c.addMistake(mistakeUnknown, name, "%s starts at unknown node %q%s", what, name, c.suggestion(name))
	}
}

func (c *compiler) checkTo(what, name string) {
	if name == Start {
		c.addMistake(mistakeUnknown, name, "%s leads to Start", what)
	} else if _, ok := c.index[name]; !ok && name != End {
		c.addMistake(mistakeUnknown, name, "%s leads to unknown node %q%s", what, name, c.suggestion(name))
	}
}

// suggestion proposes the node that a misspelt name may have meant.
func (c *compiler) suggestion(name string) string {
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.name)
	}
	if near := suggest.Closest(name, names, len(name)/2); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

func (c *compiler) checkState() {
	var unsavable []string
	c.stateType, unsavable = newStateType(c.state)
	for _, message := range unsavable {
		c.addMistake(mistakeState, "", "%s", message)
	}
	for i := range c.merges {
		m := &c.merges[i]
		at, ok := c.stateType.byName[m.field]
		if !ok {
			c.addMistake(mistakeMerge, m.field, "a merge function names unknown state field %q", m.field)
			continue
		}
		f := &c.stateType.fields[at]
		if f.typ != m.value {
			c.addMistake(mistakeMerge, m.field, "the merge function of field %q is for %s, but the field is of type %s", m.field, m.value, f.typ)
			continue
		}
		f.merge = m
	}
}

// checkReachability finds nodes that cannot be reached from Start or cannot reach End.
func (c *compiler) checkReachability() {
	c.plan = newPlan(len(c.nodes))
	for _, e := range c.edges {
		if c.isKnown(e.from) && c.isKnown(e.to) {
			c.plan.addEdge(c.nodeIndex(e.from), c.nodeIndex(e.to))
		}
	}
	for _, b := range c.branches {
		for _, target := range b.targets {
			if c.isKnown(b.from) && c.isKnown(target) {
				c.plan.addTarget(c.nodeIndex(b.from), c.nodeIndex(target))
			}
		}
	}
	for _, to := range c.refusalTo {
		for _, held := range slices.Concat(c.before, c.after) {
			if c.isNode(to.node) && c.isKnown(held) {
				c.plan.addTarget(c.nodeIndex(held), c.nodeIndex(to.node))
			}
		}
	}
	c.plan.finish()
	for i, n := range c.nodes {
		if c.index[n.name] != i {
			continue // a duplicate name
		}
		switch {
		case !c.plan.reachable[i]:
			c.addMistake(mistakeUnreachable, n.name, "node %q is not reachable from Start", n.name)
		case len(c.plan.targets[i]) == 0:
			c.addMistake(mistakeDeadEnd, n.name, "node %q is a dead end: it has no outgoing edge", n.name)
		case !c.plan.reachesEnd[i]:
			c.addMistake(mistakeDeadEnd, n.name, "node %q is a dead end: no path from it leads to End", n.name)
		}
	}
	if !slices.Contains(c.plan.reachable, true) {
		c.addMistake(mistakeUnreachable, "", "no edge leads from Start to a node")
	}
}

func (c *compiler) isNode(name string) bool {
	_, ok := c.index[name]
	return ok
}

func (c *compiler) isKnown(name string) bool {
	return c.isNode(name) || name == Start || name == End
}

// nodeIndex returns the index of a node. Both ends are atEnd, because no edge leads to Start or
// away from End.
func (c *compiler) nodeIndex(name string) int {
	if name == Start || name == End {
		return atEnd
	}
	return c.index[name]
}

func (c *compiler) build() *compiled {
	f := &compiled{
		name: c.name, address: fermata.Segment{Type: fermata.SegmentRunnable, ID: c.name}.String(), stateType: c.stateType, plan: c.plan, nodes: slices.Clone(c.nodes), index: c.index, routes: make([][]route, len(c.nodes)+1),
		holdRecords: c.holdRecords, recordGrant: c.recordGrant, protected: slices.Clone(c.protected), before: make([]bool, len(c.nodes)), after: make([]bool, len(c.nodes)),
		renames: maps.Clone(c.renames), refusalTo: maps.Clone(c.refusalTo), migrate: c.migrate, maxSteps: c.maxSteps, parallel: c.parallel, newActivation: c.newActivation,
	}
	for _, n := range c.nodes {
		f.segments = append(f.segments, nodeSegment(n.name))
	}
	for _, name := range c.definition.before {
		f.before[c.index[name]] = true
	}
	for _, name := range c.definition.after {
		f.after[c.index[name]] = true
	}
	for _, b := range c.branches {
		r := route{pick: b.pick, targets: make(map[string]int), names: slices.Clone(b.targets)}
		for _, target := range b.targets {
			r.targets[target] = c.nodeIndex(target)
		}
		from := c.nodeIndex(b.from) + 1
		f.routes[from] = append(f.routes[from], r)
	}
	f.fingerprint = c.fingerprint()
	return f
}

// fingerprint is the same for graphs of the same form. Functions are not part of it: a run that
// waits in a node whose code has changed continues in the new code.
func (c *compiler) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "graph %q state %s\n", c.name, c.stateType.fingerprint)
	for i, n := range c.nodes {
		fmt.Fprintf(h, "node %q before %t after %t fan-out %t", n.name, slices.Contains(c.before, n.name), slices.Contains(c.after, n.name), n.fanOut)
		if n.sub != nil {
			fmt.Fprintf(h, " sub %s", n.sub.fingerprint)
		}
		if n.result != nil {
			writeType(h, n.result, nil)
		}
		fmt.Fprintf(h, " ways %v\n", c.plan.targets[i])
	}
	fmt.Fprintf(h, "start %v\n", c.plan.startTargets)
	return hex.EncodeToString(h.Sum(nil)[:12])
}
