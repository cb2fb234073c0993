// Package drawing shows graphs to people: boxes and arrows that are laid out, where a run waits, and the same as SVG, as Mermaid and as text. It knows no engine: whoever
// has a graph says what stands in which row, and [New] does the rest.
package drawing

import (
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/sanitize"
)

// Drawing is a graph laid out for the eye: encoded as JSON it has everything a picture needs, in units of pixels.
type Drawing struct {
	Graph  string `json:"graph"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Nodes  []Node `json:"nodes"`
	Edges  []Edge `json:"edges"`
}

// What a box can be.
const (
	KindStart = "start"
	KindEnd   = "end"
	KindNode  = "node"
	KindGraph = "graph" // it contains a graph
	KindEach  = "each"  // it works on the items of a list
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
	// Formerly are names that it had in older programs, and that runs may still know it by.
	Formerly []string `json:"formerly,omitempty" doc:"Names that it had in older programs."`
	// Waiting is true if a run waits at this node or inside it; Held says that every run stops before or after it.
	Waiting bool     `json:"waiting,omitempty" doc:"A run waits at this node, or inside it."`
	Held    []string `json:"held,omitempty" enum:"before,after" doc:"Every run stops there."`
	// Inner is the graph that the node contains. It lies in the box, with its corner at Inset.
	Inner *Drawing `json:"inner,omitempty" doc:"The graph inside of it; its corner is 8 to the right of the box's, and 28 below it."`
}

// Where the graph inside of a box begins, from the corner of the box.
const (
	InsetX = 8
	InsetY = 28
)

// Edge is an arrow along its points. Branch marks one that a route picks, Back one that closes a loop.
type Edge struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Branch bool     `json:"branch,omitempty" doc:"A route picks it, or not."`
	Back   bool     `json:"back,omitempty" doc:"It closes a loop."`
	Points [][2]int `json:"points"`
}

// Marked returns the drawing with the nodes marked at which a run waits: those that these addresses lead to. An address begins with the graph itself.
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

// mark follows an address from here on.
func (d *Drawing) mark(at fermata.Address) {
	if n, inside := d.findNode(at); n != nil {
		n.Waiting = true
		if n.Inner != nil {
			n.Inner.mark(inside)
		}
	}
}

// Next says where a run can go from the place that an address leads to: what may come, and of each the names of the nodes that are entered together. One without any is the end. It is
// nil if the drawing does not have the place.
func (d *Drawing) Next(at fermata.Address) [][]string {
	if len(at) < 2 {
		return nil
	}
	return d.next(at[1:], [][]string{{}})
}

// next follows an address from here on. Behind the end of this graph comes what is said.
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

// after is what may come after a node: all that it leads to, and of what a route picks one.
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

// combine is each of the one with each of the other. It stays within what somebody would read.
func combine(one, other [][]string) (both [][]string) {
	for _, a := range one {
		for _, b := range other {
			names := append(append(make([]string, 0, len(a)+len(b)), a...), b...) // never nil: as JSON it is a list
			slices.Sort(names)
			if names = slices.Compact(names); len(both) < maxNext && !slices.ContainsFunc(both, func(known []string) bool { return slices.Equal(known, names) }) {
				both = append(both, names)
			}
		}
	}
	return both
}

const maxNext = 100

// FormatNext is what [Drawing.Next] returned, in words: "mail and pay", "finalize or revise or the end".
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

// at finds the node to which the first step of an address leads, and what of the address is inside of it.
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
