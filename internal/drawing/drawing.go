// Package drawing lays out graphs as boxes and arrows, marks where a run waits, and renders them as
// SVG, Mermaid and text. It does not depend on an engine: the caller assigns nodes to rows, and
// [New] computes the layout.
package drawing

import (
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/sanitize"
)

// Drawing is the layout of a graph. Its JSON contains everything needed to draw it, in pixels.
type Drawing struct {
	Graph  string `json:"graph"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Nodes  []Node `json:"nodes"`
	Edges  []Edge `json:"edges"`
}

// The kinds of nodes.
const (
	KindStart = "start"
	KindEnd   = "end"
	KindNode  = "node"
	KindGraph = "graph" // contains a graph
	KindEach  = "each"  // processes the items of a list
)

// When a hold stops a run.
const (
	Before = "before"
	After  = "after"
)

// Node is a box. X and Y are its upper left corner.
type Node struct {
	ID     string `json:"id"`
	Kind   string `json:"kind" enum:"start,end,node,graph,each"`
	X      int    `json:"x"`
	Y      int    `json:"y"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	// Formerly are names of the node in older programs; runs may still use them.
	Formerly []string `json:"formerly,omitempty" doc:"Names of the node in older programs."`
	// Waiting is true if a run waits at this node or inside it. Held lists whether every run stops
	// before or after it.
	Waiting bool     `json:"waiting,omitempty" doc:"Whether a run waits at this node or inside it."`
	Held    []string `json:"held,omitempty" enum:"before,after" doc:"Where every run stops at this node."`
	// Inner is the graph that the node contains. It is drawn in the box, with its corner at InsetX
	// and InsetY.
	Inner *Drawing `json:"inner,omitempty" doc:"The graph inside the node. Its corner is 8 to the right of and 28 below that of the box."`
}

// The offset of an inner graph from the corner of its box.
const (
	InsetX = 8
	InsetY = 28
)

// Edge is an arrow along its points. Branch marks an edge that a route picks, Back an edge that
// closes a loop.
type Edge struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Branch bool     `json:"branch,omitempty" doc:"Whether a route picks the edge."`
	Back   bool     `json:"back,omitempty" doc:"Whether the edge closes a loop."`
	Points [][2]int `json:"points"`
}

// Marked returns a copy of the drawing in which the nodes at these addresses are marked as waiting.
// An address begins with the graph itself.
func (d *Drawing) Marked(waiting ...fermata.Address) *Drawing {
	d = d.clone()
	for _, at := range waiting {
		if len(at) > 1 {
			d.mark(at[1:])
		}
	}
	return d
}

func (d *Drawing) clone() *Drawing {
	c := *d
	c.Nodes = slices.Clone(d.Nodes)
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Inner != nil {
			n.Inner = n.Inner.clone()
		}
	}
	return &c
}

// mark marks the node at an address below this drawing.
func (d *Drawing) mark(at fermata.Address) {
	if n, inside := d.findNode(at); n != nil {
		n.Waiting = true
		if n.Inner != nil {
			n.Inner.mark(inside)
		}
	}
}

// Next returns the alternatives after the node at an address. Each lists the nodes that are entered
// together; an empty list is the end. It returns nil if the drawing does not have the address.
func (d *Drawing) Next(at fermata.Address) [][]string {
	if len(at) < 2 {
		return nil
	}
	return d.next(at[1:], [][]string{{}})
}

// next handles an address below this drawing. behind are the alternatives after the end of this
// graph.
func (d *Drawing) next(at fermata.Address, behind [][]string) [][]string {
	n, inside := d.findNode(at)
	if n == nil {
		return nil
	}
	if at[0].Type == fermata.SegmentHold && at[0].ID == Before {
		return [][]string{{n.ID}}
	}
	after := d.after(n.ID, behind)
	if n.Inner != nil {
		if deeper := n.Inner.next(inside, after); deeper != nil {
			return deeper
		}
	}
	return after
}

// after returns the alternatives after a node: all its edges, and one of the edges that a route
// picks.
func (d *Drawing) after(id string, behind [][]string) [][]string {
	always, picks := [][]string{{}}, [][]string{}
	for _, e := range d.Edges {
		if e.From != id {
			continue
		}
		to := [][]string{{e.To}}
		if n := d.node(e.To); n != nil && n.Kind == KindEnd {
			to = behind
		}
		if e.Branch {
			picks = append(picks, to...)
		} else {
			always = combine(always, to)
		}
	}
	if len(picks) == 0 {
		return always
	}
	return combine(always, picks)
}

// combine returns each combination of both lists, up to a readable number.
func combine(one, other [][]string) (both [][]string) {
	for _, a := range one {
		for _, b := range other {
			// never nil: a list in JSON
			names := append(append(make([]string, 0, len(a)+len(b)), a...), b...)
			slices.Sort(names)
			if names = slices.Compact(names); len(both) < maxNext && !slices.ContainsFunc(both, func(known []string) bool { return slices.Equal(known, names) }) {
				both = append(both, names)
			}
		}
	}
	return both
}

const maxNext = 100

// FormatNext formats the result of [Drawing.Next] as text: "mail and pay", "finalize or revise or
// the end".
func FormatNext(next [][]string) string {
	ways := make([]string, len(next))
	for i, names := range next {
		words := make([]string, len(names))
		for j, name := range names {
			words[j] = sanitize.Line(name)
		}
		if ways[i] = strings.Join(words, " and "); len(words) == 0 {
			ways[i] = "the end"
		}
	}
	return strings.Join(ways, " or ")
}

// findNode finds the node of the first segment of an address, and returns the rest of the address.
func (d *Drawing) findNode(at fermata.Address) (n *Node, inside fermata.Address) {
	switch {
	case len(at) == 0:
		return nil, nil
	case at[0].Type == fermata.SegmentHold:
		return d.node(at[0].SubID), nil
	case at[0].Type != fermata.SegmentNode:
		return nil, nil
	}
	inside = at[1:]
	if len(inside) > 0 && inside[0].Type == fermata.SegmentItem {
		inside = inside[1:]
	}
	return d.node(at[0].ID), inside
}

func (d *Drawing) node(id string) *Node {
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.ID == id || slices.Contains(n.Formerly, id) {
			return n
		}
	}
	return nil
}
