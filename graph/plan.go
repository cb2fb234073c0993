package graph

import (
	"math/bits"
	"slices"
)

// atEnd represents Start as an origin and End as a target.
const atEnd = -1

// plan is the form of a graph without its functions: nodes are indices.
//
// It answers the scheduling question whether a node that has been reached may run. It may run if no
// active node can still lead to it. For a node inside a loop, only the current iteration counts:
// the next iteration of its own loop does not delay it. For a node after the loop, all iterations
// count. The next iteration begins when the current one is over.
type plan struct {
	edges        [][]int   // always followed
	targets      [][]int   // edges and branches
	startTargets []int     // from Start, edges and branches
	startEdges   []int     // from Start, edges only
	reachable    []bool    // from Start
	reachesEnd   []bool    // End can be reached
	ahead        []nodeSet // nodes that can still be reached in this iteration
	loops        []nodeSet // by first node of a loop: the nodes of the loop; nil for other nodes
}

func newPlan(nodes int) plan {
	return plan{edges: make([][]int, nodes), targets: make([][]int, nodes)}
}

func (p *plan) addEdge(from, to int) {
	if from == atEnd {
		p.startEdges = append(p.startEdges, to)
	} else {
		p.edges[from] = append(p.edges[from], to)
	}
	p.addTarget(from, to)
}

func (p *plan) addTarget(from, to int) {
	ways := &p.startTargets
	if from != atEnd {
		ways = &p.targets[from]
	}
	if !slices.Contains(*ways, to) {
		*ways = append(*ways, to)
	}
}

func (p *plan) finish() {
	n := len(p.targets)
	p.reachable = make([]bool, n)
	p.ahead, p.loops = make([]nodeSet, n), make([]nodeSet, n)
	for i := range p.ahead {
		p.ahead[i] = newNodeSet(n)
	}
	order := p.discover()
	p.findLoops(order, noHeader, order)
	p.findEnds()
}

// discover returns the nodes in depth-first order from Start.
func (p *plan) discover() (order []int) {
	stack := slices.Clone(p.startTargets)
	slices.Reverse(stack)
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at == atEnd || p.reachable[at] {
			continue
		}
		p.reachable[at] = true
		order = append(order, at)
		for _, to := range slices.Backward(p.targets[at]) {
			stack = append(stack, to)
		}
	}
	return order
}

const noHeader = -2

// findLoops computes which of these nodes can lead to which. Nodes that can reach each other form a
// loop. Whatever a loop leads to, every node in it can reach. Inside a loop, the edge back to its
// first node (in discovery order) begins the next iteration: without that edge, the loop is
// searched again for inner loops.
func (p *plan) findLoops(nodes []int, header int, order []int) {
	if len(nodes) < 2 {
		return
	}
	loops := p.components(nodes, header)
	of := make(map[int]int, len(nodes))
	for i, loop := range loops {
		for _, node := range loop {
			of[node] = i
		}
	}
	reach := make([]nodeSet, len(loops))
	for i, loop := range loops { // components come in reverse topological order
		reach[i] = newNodeSet(len(p.targets))
		for _, node := range loop {
			for _, to := range p.targets[node] {
				k, inside := of[to]
				if !inside || to == header || k == i {
					continue
				}
				reach[i].union(reach[k])
				for _, other := range loops[k] {
					reach[i].set(other)
				}
			}
		}
		for _, node := range loop {
			p.ahead[node].union(reach[i])
		}
	}
	for _, loop := range loops {
		if len(loop) > 1 {
			first := order[slices.IndexFunc(order, func(node int) bool { return slices.Contains(loop, node) })]
			p.loops[first] = newNodeSet(len(p.targets))
			for _, node := range loop {
				p.loops[first].set(node)
			}
			p.findLoops(loop, first, order)
		}
	}
}

// components splits nodes into strongly connected components, ignoring edges into header. A
// component comes after all components that it can reach (Tarjan's algorithm, with an explicit
// stack because a graph may be long).
func (p *plan) components(nodes []int, header int) [][]int {
	t := tarjan{plan: p, header: header, inside: newNodeSet(len(p.targets)), index: make(map[int]int), low: make(map[int]int), onStack: newNodeSet(len(p.targets))}
	for _, node := range nodes {
		t.inside.set(node)
	}
	for _, node := range nodes {
		if _, seen := t.index[node]; !seen {
			t.search(node)
		}
	}
	return t.components
}

type tarjan struct {
	plan       *plan
	header     int
	inside     nodeSet
	index, low map[int]int
	stack      []int
	onStack    nodeSet
	components [][]int
}

func (t *tarjan) search(root int) {
	type place struct{ node, next int }
	work := []place{{node: root}}
	t.push(root)
	for len(work) > 0 {
		top := &work[len(work)-1]
		if ways := t.plan.targets[top.node]; top.next < len(ways) {
			to := ways[top.next]
			top.next++
			if to == atEnd || to == t.header || !t.inside.has(to) {
				continue
			}
			if _, seen := t.index[to]; !seen {
				t.push(to)
				work = append(work, place{node: to})
			} else if t.onStack.has(to) {
				t.low[top.node] = min(t.low[top.node], t.index[to])
			}
			continue
		}
		node := top.node
		work = work[:len(work)-1]
		if len(work) > 0 {
			outer := work[len(work)-1].node
			t.low[outer] = min(t.low[outer], t.low[node])
		}
		if t.low[node] == t.index[node] {
			t.popComponent(node)
		}
	}
}

func (t *tarjan) push(node int) {
	t.index[node] = len(t.index)
	t.low[node] = t.index[node]
	t.stack = append(t.stack, node)
	t.onStack.set(node)
}

// popComponent removes the component whose first node is node from the stack.
func (t *tarjan) popComponent(node int) {
	at := slices.Index(t.stack, node)
	loop := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, n := range loop {
		t.onStack.unset(n)
	}
	t.components = append(t.components, loop)
}

// isBackEdge reports whether an edge leads to the next iteration of a loop.
func (p *plan) isBackEdge(from, to int) bool {
	return p.loops[to] != nil && p.loops[to].has(from)
}

// findEnds computes the nodes from which End can be reached.
func (p *plan) findEnds() {
	p.reachesEnd = make([]bool, len(p.targets))
	for changed := true; changed; {
		changed = false
		for i, ways := range p.targets {
			if !p.reachesEnd[i] && slices.ContainsFunc(ways, func(to int) bool { return to == atEnd || p.reachesEnd[to] }) {
				p.reachesEnd[i], changed = true, true
			}
		}
	}
}

// nodeSet is a set of nodes.
type nodeSet []uint64

func newNodeSet(n int) nodeSet { return make(nodeSet, (n+63)/64) }
func (b nodeSet) set(i int)    { b[i/64] |= 1 << (i % 64) }
func (b nodeSet) intersects(other nodeSet) bool {
	for i := range b {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

func (b nodeSet) unset(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b nodeSet) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b nodeSet) union(other nodeSet) {
	for i := range b {
		b[i] |= other[i]
	}
}

// unionExcept adds the elements of other that are not in without.
func (b nodeSet) unionExcept(other, without nodeSet) {
	for i := range b {
		b[i] |= other[i] &^ without[i]
	}
}

func (b nodeSet) count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
