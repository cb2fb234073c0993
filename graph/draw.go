package graph

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/drawing"
)

// Draw lays out the graph from top to bottom and marks the nodes where these interrupts wait.
func (fl *Flow[S]) Draw(waiting ...*fermata.InterruptCtx) *drawing.Drawing {
	places := make([]fermata.Address, len(waiting))
	for i, ic := range waiting {
		places[i] = ic.Address
	}
	return fl.draw().Marked(places...)
}

// drawingCache is the drawing of a graph and its number of boxes. A graph may be part of many
// others and is drawn once.
type drawingCache struct {
	once    sync.Once
	drawing *drawing.Drawing
	boxes   int
}

// maxBoxes is the maximum number of boxes in a drawing, including inner graphs. Inner graphs beyond
// that are drawn closed.
const maxBoxes = 2_000

func (fl *compiled) draw() *drawing.Drawing {
	fl.drawing.once.Do(func() {
		boxes := len(fl.nodes) + 2
		var rows [][]drawing.Node
		for _, names := range fl.rows() {
			row := make([]drawing.Node, len(names))
			for i, name := range names {
				row[i] = fl.describe(name, &boxes)
			}
			rows = append(rows, row)
		}
		fl.drawing.drawing, fl.drawing.boxes = drawing.New(fl.name, rows, fl.drawnEdges()), boxes
	})
	return fl.drawing.drawing
}

// describe returns the box of a node. It adds the boxes of the inner graph if there is room for
// them.
func (fl *compiled) describe(name string, boxes *int) drawing.Node {
	n := drawing.Node{ID: name, Kind: drawing.KindNode}
	switch name {
	case Start:
		n.Kind = drawing.KindStart
		return n
	case End:
		n.Kind = drawing.KindEnd
		return n
	}
	i, _ := fl.find(name)
	if fl.before[i] {
		n.Held = append(n.Held, drawing.Before)
	}
	if fl.after[i] {
		n.Held = append(n.Held, drawing.After)
	}
	for _, old := range slices.Sorted(maps.Keys(fl.renames)) {
		if now, there := fl.find(old); there && now == i && old != name {
			n.Formerly = append(n.Formerly, old)
		}
	}
	node := fl.nodes[i]
	if node.sub != nil {
		n.Kind = drawing.KindGraph
		if inner := node.sub.draw(); *boxes+node.sub.drawing.boxes <= maxBoxes {
			n.Inner, *boxes = inner, *boxes+node.sub.drawing.boxes
		}
	}
	if node.fanOut {
		n.Kind = drawing.KindEach
	}
	return n
}

// rows puts every node one row below the lowest of its predecessors, ignoring back edges.
func (fl *compiled) rows() [][]string {
	depth := make([]int, len(fl.nodes))
	order := make([]int, len(fl.nodes))
	for i := range order {
		order[i] = i
	}
	// Nodes with more nodes ahead come first: without back edges that is a topological order.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(fl.plan.ahead[b].count(), fl.plan.ahead[a].count())
	})
	deepest := 0
	for _, i := range order {
		for _, to := range fl.plan.targets[i] {
			if to != atEnd && fl.plan.ahead[i].has(to) {
				depth[to] = max(depth[to], depth[i]+1)
				deepest = max(deepest, depth[to])
			}
		}
	}
	rows := make([][]string, deepest+3)
	rows[0] = []string{Start}
	for i, n := range fl.nodes {
		rows[depth[i]+1] = append(rows[depth[i]+1], n.name)
	}
	rows[deepest+2] = []string{End}
	return rows
}

// drawnEdges lists the edges, without their points.
func (fl *compiled) drawnEdges() []drawing.Edge {
	var edges []drawing.Edge
	add := func(from string, always, all []int) {
		for _, to := range all {
			name := End
			if to != atEnd {
				name = fl.nodes[to].name
			}
			edges = append(edges, drawing.Edge{From: from, To: name, Branch: !slices.Contains(always, to)})
		}
	}
	add(Start, fl.plan.startEdges, fl.plan.startTargets)
	for i, n := range fl.nodes {
		add(n.name, fl.plan.edges[i], fl.plan.targets[i])
	}
	return edges
}
