package graph

import "fmt"

// Chain adds an edge from each of these nodes to the next, for nodes that run one after the other:
//
//	g.Chain(graph.Start, "draft", "review", "publish", graph.End)
//
// It needs at least two names. The nodes may be of any form and may have further edges and
// branches.
func (g *Graph[S]) Chain(nodes ...string) {
	if len(nodes) < 2 {
		g.mistakes = append(g.mistakes, Mistake{Code: mistakeMissing, Message: fmt.Sprintf("a chain of %d nodes: name at least two, such as Start and a node", len(nodes))})
		return
	}
	for i, to := range nodes[1:] {
		g.Edge(nodes[i], to)
	}
}
