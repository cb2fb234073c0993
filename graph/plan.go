package graph

import (
	"math/bits"
	"slices"
)

// atEnd stands for Start as an origin and for End as a target.
const atEnd = -1

// plan is the form of a graph, without its functions: nodes are indices.
//
// It answers the one question of scheduling, whether a node that something led to may run already. It may if nothing that
// is under way can still lead to it. "Can lead to" goes along all edges but those that close a loop: the next round of a
// loop does not hold up this one.
type plan struct {
	edges     [][]int   // followed always
	ways      [][]int   // edges and branches
	start     []int     // ways from Start
	starts    []int     // edges from Start
	reachable []bool    // from Start
	ends      []bool    // a way leads to End
	ahead     []nodeSet // what a node can still lead to within this round
}

func newPlan(nodes int) plan {
	return plan{edges: make([][]int, nodes), ways: make([][]int, nodes)}
}

func (p *plan) edge(from, to int) {
	if from == atEnd {
		p.starts = append(p.starts, to)
	} else {
		p.edges[from] = append(p.edges[from], to)
	}
	p.way(from, to)
}

func (p *plan) way(from, to int) {
	if from == atEnd {
		p.start = append(p.start, to)
	} else if !slices.Contains(p.ways[from], to) {
		p.ways[from] = append(p.ways[from], to)
	}
}

func (p *plan) finish() {
	p.walkAhead()
	p.walkBack()
}

// walkAhead goes through the graph depth first, from Start. An edge to a node that is still being walked closes a loop.
// When a node is left, all that it leads to ahead has been left before.
func (p *plan) walkAhead() {
	const walking, left = 1, 2
	n := len(p.ways)
	p.reachable = make([]bool, n)
	p.ahead = make([]nodeSet, n)
	mark := make([]byte, n)
	type place struct{ node, next int }
	for _, first := range p.start {
		if first == atEnd || mark[first] != 0 {
			continue
		}
		stack := []place{{node: first}}
		mark[first], p.ahead[first] = walking, newNodeSet(n)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(p.ways[top.node]) {
				mark[top.node] = left
				p.reachable[top.node] = true
				stack = stack[:len(stack)-1]
				if len(stack) > 0 {
					outer := stack[len(stack)-1].node
					p.ahead[outer].set(top.node)
					p.ahead[outer].add(p.ahead[top.node])
				}
				continue
			}
			to := p.ways[top.node][top.next]
			top.next++
			switch {
			case to == atEnd:
			case mark[to] == 0:
				mark[to], p.ahead[to] = walking, newNodeSet(n)
				stack = append(stack, place{node: to})
			case mark[to] == left:
				p.ahead[top.node].set(to)
				p.ahead[top.node].add(p.ahead[to])
			}
		}
	}
}

// walkBack finds the nodes from which a way leads to End.
func (p *plan) walkBack() {
	p.ends = make([]bool, len(p.ways))
	for again := true; again; {
		again = false
		for i, ways := range p.ways {
			if !p.ends[i] && slices.ContainsFunc(ways, func(to int) bool { return to == atEnd || p.ends[to] }) {
				p.ends[i], again = true, true
			}
		}
	}
}

// nodeSet is a set of nodes.
type nodeSet []uint64

func newNodeSet(n int) nodeSet   { return make(nodeSet, (n+63)/64) }
func (b nodeSet) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b nodeSet) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b nodeSet) add(other nodeSet) {
	for i := range b {
		b[i] |= other[i]
	}
}

func (b nodeSet) count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
