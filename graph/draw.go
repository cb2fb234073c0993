package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
)

// Drawing is a graph laid out for the eye: encoded as JSON it has everything an SVG needs, in units of pixels.
type Drawing struct {
	Graph  string      `json:"graph"`
	Width  int         `json:"width"`
	Height int         `json:"height"`
	Nodes  []DrawnNode `json:"nodes"`
	Edges  []DrawnEdge `json:"edges"`
}

// DrawnNode is a box. X and Y are its upper left corner. Start and End are drawn too.
type DrawnNode struct {
	ID string `json:"id"`
	// Kind is "start", "end", "node", "graph" (it contains one) or "each" (it works on a list).
	Kind   string `json:"kind"`
	X      int    `json:"x"`
	Y      int    `json:"y"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	// Waiting is true if a run waits at this node or inside it; Held says that every run stops "before" or "after" it.
	Waiting bool     `json:"waiting,omitempty"`
	Held    []string `json:"held,omitempty"`
	// Inner is the graph that the node contains.
	Inner *Drawing `json:"inner,omitempty"`
}

// DrawnEdge is an arrow along its points. Branch marks one that a route picks, Back one that closes a loop.
type DrawnEdge struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Branch bool     `json:"branch,omitempty"`
	Back   bool     `json:"back,omitempty"`
	Points [][2]int `json:"points"`
}

// The measures of a drawing.
const (
	boxWidth, boxHeight = 160, 40
	gapX, gapY          = 40, 48
	margin              = 20
)

// Draw lays the graph out from top to bottom, with the nodes marked at which these interrupts wait.
func (fl *Flow[S]) Draw(waiting ...*fermata.InterruptCtx) *Drawing {
	places := make([]fermata.Address, 0, len(waiting))
	for _, ic := range waiting {
		if len(ic.Address) > 1 {
			places = append(places, ic.Address[1:]) // without the outermost graph itself
		}
	}
	return fl.draw(places)
}

func (fl *compiled) draw(waiting []fermata.Address) *Drawing {
	d := &Drawing{Graph: fl.name}
	rows := fl.rows()
	rank := make(map[string]int)
	for y, row := range rows {
		for x, name := range row {
			rank[name] = y
			n := DrawnNode{
				ID: name, Kind: "node", Width: boxWidth, Height: boxHeight,
				X: margin + x*(boxWidth+gapX), Y: margin + y*(boxHeight+gapY),
			}
			fl.describe(&n, waiting)
			d.Width = max(d.Width, n.X+boxWidth+margin)
			d.Height = max(d.Height, n.Y+boxHeight+margin)
			d.Nodes = append(d.Nodes, n)
		}
	}
	fl.center(d, rows)
	fl.arrows(d, rank)
	return d
}

// describe fills in what a box says.
func (fl *compiled) describe(n *DrawnNode, waiting []fermata.Address) {
	switch n.ID {
	case Start:
		n.Kind = "start"
		return
	case End:
		n.Kind = "end"
		return
	}
	i, _ := fl.find(n.ID)
	if fl.before[i] {
		n.Held = append(n.Held, holdBefore)
	}
	if fl.after[i] {
		n.Held = append(n.Held, holdAfter)
	}
	var inside []fermata.Address
	for _, a := range waiting {
		if here, rest := waitsAt(a, n.ID); here {
			n.Waiting = true
			inside = append(inside, rest)
		}
	}
	node := fl.nodes[i]
	if node.sub != nil {
		n.Kind = "graph"
		n.Inner = node.sub.draw(inside)
	}
	if node.fanOut {
		n.Kind = "each"
	}
}

// waitsAt reports whether an address (below a graph) is at or in a node, and what of it is inside.
func waitsAt(a fermata.Address, node string) (bool, fermata.Address) {
	if len(a) == 0 {
		return false, nil
	}
	if a[0].Type == fermata.SegmentHold {
		return a[0].SubID == node, nil
	}
	if a[0].Type != fermata.SegmentNode || a[0].ID != node {
		return false, nil
	}
	inside := a[1:]
	if len(inside) > 0 && inside[0].Type == fermata.SegmentItem {
		inside = inside[1:]
	}
	return true, inside
}

// rows puts every node one row below the lowest of those that lead to it, loops aside.
func (fl *compiled) rows() [][]string {
	depth := make([]int, len(fl.nodes))
	order := make([]int, len(fl.nodes))
	for i := range order {
		order[i] = i
	}
	// Who is ahead of more nodes comes first: along edges that close no loop that is a topological order.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(fl.plan.ahead[b].count(), fl.plan.ahead[a].count())
	})
	deepest := 0
	for _, i := range order {
		for _, to := range fl.plan.ways[i] {
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

// center moves every row to the middle.
func (fl *compiled) center(d *Drawing, rows [][]string) {
	i := 0
	for _, row := range rows {
		width := len(row)*(boxWidth+gapX) - gapX
		shift := (d.Width - 2*margin - width) / 2
		for range row {
			d.Nodes[i].X += shift
			i++
		}
	}
}

func (fl *compiled) arrows(d *Drawing, rank map[string]int) {
	boxes := make(map[string]DrawnNode, len(d.Nodes))
	for _, n := range d.Nodes {
		boxes[n.ID] = n
	}
	for _, e := range fl.drawnEdges() {
		from, to := boxes[e.From], boxes[e.To]
		start := [2]int{from.X + from.Width/2, from.Y + from.Height}
		end := [2]int{to.X + to.Width/2, to.Y}
		e.Back = rank[e.To] <= rank[e.From]
		if e.Back { // around the right side of the drawing
			side := d.Width - margin/2
			e.Points = [][2]int{{from.X + from.Width, from.Y + from.Height/2}, {side, from.Y + from.Height/2}, {side, to.Y + to.Height/2}, {to.X + to.Width, to.Y + to.Height/2}}
		} else {
			middle := (start[1] + end[1]) / 2
			e.Points = [][2]int{start, {start[0], middle}, {end[0], middle}, end}
		}
		d.Edges = append(d.Edges, e)
	}
}

// drawnEdges lists the arrows, without their points.
func (fl *compiled) drawnEdges() []DrawnEdge {
	var edges []DrawnEdge
	add := func(from string, always, all []int) {
		for _, to := range all {
			name := End
			if to != atEnd {
				name = fl.nodes[to].name
			}
			edges = append(edges, DrawnEdge{From: from, To: name, Branch: !slices.Contains(always, to)})
		}
	}
	add(Start, fl.plan.starts, fl.plan.start)
	for i, n := range fl.nodes {
		add(n.name, fl.plan.edges[i], fl.plan.ways[i])
	}
	return edges
}

// Mermaid returns the drawing as the text of a Mermaid flowchart.
func (d *Drawing) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	waiting := d.mermaid(&b, "n", "  ")
	if len(waiting) > 0 {
		b.WriteString("  classDef waiting fill:#fde68a,stroke:#b45309,stroke-width:3px\n")
		fmt.Fprintf(&b, "  class %s waiting\n", strings.Join(waiting, ","))
	}
	return b.String()
}

// mermaid writes one graph, with node ids that begin with prefix, and returns the ids of those that wait.
func (d *Drawing) mermaid(b *strings.Builder, prefix, indent string) (waiting []string) {
	ids := make(map[string]string, len(d.Nodes))
	for i, n := range d.Nodes {
		id := fmt.Sprintf("%s%d", prefix, i)
		ids[n.ID] = id
		if n.Waiting {
			waiting = append(waiting, id)
		}
		switch {
		case n.Inner != nil:
			fmt.Fprintf(b, "%ssubgraph %s[%s]\n", indent, id, n.label())
			waiting = append(waiting, n.Inner.mermaid(b, id+"_", indent+"  ")...)
			fmt.Fprintf(b, "%send\n", indent)
		case n.Kind == "start" || n.Kind == "end":
			fmt.Fprintf(b, "%s%s((%s))\n", indent, id, n.Kind)
		case n.Kind == "each":
			fmt.Fprintf(b, "%s%s[[%s]]\n", indent, id, n.label())
		default:
			fmt.Fprintf(b, "%s%s[%s]\n", indent, id, n.label())
		}
	}
	for _, e := range d.Edges {
		arrow := "-->"
		if e.Branch {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "%s%s %s %s\n", indent, ids[e.From], arrow, ids[e.To])
	}
	return waiting
}

// label is the name in quotes, made harmless, with the holds.
func (n *DrawnNode) label() string {
	text := n.ID
	for _, when := range n.Held {
		text += " (hold " + when + ")"
	}
	replacer := strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ", "\r", " ", "\t", " ", "#", "#35;", "`", "#96;")
	return `"` + replacer.Replace(text) + `"`
}
