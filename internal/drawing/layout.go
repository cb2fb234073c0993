package drawing

import (
	"cmp"
	"maps"
	"slices"
)

// Dimensions of a drawing, in pixels.
const (
	margin                   = 20
	boxHeight                = 40
	dotWidth                 = 72 // of start and end
	minBoxWidth, maxBoxWidth = 120, 320
	letterWidth              = 8 // approximate width of a letter, and of a small one
	smallLetterWidth         = 6
	gapX, gapY               = 32, 44
	backArrowOffset          = 8  // distance of back edges from the middle of a box
	laneGap                  = 12 // distance between parallel arrows
	// length of the straight part at the start and the end of an arrow
	arrowStart, arrowEnd = 14, 20
	passageWidth         = 12 // width reserved for an arrow that passes boxes
	sweeps               = 6
)

// Limits for large drawings: beyond them arrows may cross boxes and each other.
const (
	maxPassages  = 20_000
	maxReordered = 2_000
)

// New lays out a graph from top to bottom. rows contains the nodes of each row; an edge to a row
// that is not below its own is a back edge. Nodes need only ids, kinds, holds and inner graphs, and
// edges only their ends.
func New(graph string, rows [][]Node, edges []Edge) *Drawing {
	l := &layout{rows: make([][]*slot, len(rows)), places: make(map[string]*slot), passages: make(map[passing]*slot)}
	for y, row := range rows {
		for _, n := range row {
			setSize(&n)
			s := &slot{node: n, row: y, width: n.Width}
			l.rows[y] = append(l.rows[y], s)
			l.places[n.ID] = s
		}
	}
	for _, e := range edges {
		l.addEdge(e)
	}
	l.reduceCrossings()
	d := &Drawing{Graph: graph, Nodes: []Node{}}
	d.Width = l.placeColumns()
	d.Height = l.placeRows()
	d.Edges = l.routeEdges(d.Width)
	for _, row := range l.rows {
		for _, s := range row {
			if !s.passage {
				d.Nodes = append(d.Nodes, s.node)
			}
		}
	}
	return d
}

// setSize sets the size of a box.
func setSize(n *Node) {
	switch {
	case n.Kind == KindStart || n.Kind == KindEnd:
		n.Width, n.Height = dotWidth, boxHeight-8
	case n.Inner != nil:
		n.Width = max(labelWidth(n), n.Inner.Width+2*InsetX)
		n.Height = n.Inner.Height + InsetY + InsetX
	default:
		n.Width, n.Height = labelWidth(n), boxHeight
	}
}

// labelWidth returns the width of a box for its text, also if a run waits there.
func labelWidth(n *Node) int {
	waits := *n
	waits.Waiting = true
	name, more := waits.label()
	text := max(textWidth(name)*letterWidth, textWidth(more)*smallLetterWidth)
	if n.Inner != nil { // a single line
		text = textWidth(waits.description()) * letterWidth
	}
	return min(max(minBoxWidth, text+2*letterWidth), maxBoxWidth)
}

// textWidth returns the width of a text in letters.
func textWidth(text string) (count int) {
	for _, r := range text {
		count += runeWidth(r)
	}
	return count
}

// runeWidth returns the approximate width of a character in letters: East Asian characters, which
// begin here, and emoji are as wide as they are high.
func runeWidth(r rune) int {
	if r >= '\u2e80' {
		return 2
	}
	return 1
}

// layout is a drawing under construction.
type layout struct {
	rows     [][]*slot
	places   map[string]*slot
	passages map[passing]*slot
	edges    []*routedEdge
	bottom   []int            // bottom of each row
	top      int              // top of the first row
	tracks   map[*slot][3]int // offset of each slot's tracks below the previous row, by track kind
}

// passing identifies the slot of a row that arrows to one node pass through. All arrows to the same
// node share it.
type passing struct {
	to  *slot
	row int
}

// The horizontal tracks in the gap between two rows: one per slot, so that two arrows never look
// like one.
const (
	trackLeave  = iota // back edges, from the slot
	trackTurn          // forward edges, from the slot
	trackArrive        // back edges, to the slot
)

// slot is a position in a row: of a box, or of an arrow that passes the row.
type slot struct {
	node         Node
	passage      bool
	row, at      int // at is its index in the row
	x, width     int
	above, below []*slot // connected slots
}

// routedEdge is an edge with the slots that it passes, including both ends.
type routedEdge struct {
	Edge
	through []*slot
}

func (s *slot) middle() int { return s.x + s.width/2 }

// addEdge adds an edge. An edge that spans several rows gets slots in the rows between, so that it
// does not cross boxes.
func (l *layout) addEdge(e Edge) {
	from, to := l.places[e.From], l.places[e.To]
	if from == nil || to == nil {
		return
	}
	w := &routedEdge{Edge: e, through: []*slot{from}}
	w.Back = to.row <= from.row
	for row := from.row + 1; row < to.row && !w.Back; row++ {
		if s := l.passageAt(passing{to, row}); s != nil {
			w.through = append(w.through, s)
		}
	}
	w.through = append(w.through, to)
	for i, s := range w.through[1:] {
		if before := w.through[i]; !w.Back && !slices.Contains(s.above, before) {
			s.above = append(s.above, before)
			before.below = append(before.below, s)
		}
	}
	l.edges = append(l.edges, w)
}

// passageAt returns the slot where arrows pass a row; nil if there are too many.
func (l *layout) passageAt(where passing) *slot {
	s := l.passages[where]
	if s == nil && len(l.passages) < maxPassages {
		s = &slot{passage: true, row: where.row, width: passageWidth}
		l.rows[where.row] = append(l.rows[where.row], s)
		l.passages[where] = s
	}
	return s
}

// reduceCrossings orders each row by the positions of connected slots, alternating downwards and
// upwards, and keeps the order with the fewest crossings.
func (l *layout) reduceCrossings() {
	l.assignPositions()
	if len(l.places)+len(l.passages)+len(l.edges) > maxReordered {
		return
	}
	best, fewest := l.order(), l.crossings()
	for sweep := range sweeps {
		for i := range l.rows {
			if sweep%2 == 0 {
				sortRow(l.rows[i], func(s *slot) []*slot { return s.above })
			} else {
				sortRow(l.rows[len(l.rows)-1-i], func(s *slot) []*slot { return s.below })
			}
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.order(), n
		}
	}
	l.rows = best
	l.assignPositions()
}

// assignPositions sets the row and index of all slots.
func (l *layout) assignPositions() {
	for _, row := range l.rows {
		for i, s := range row {
			s.at = i
		}
	}
}

func (l *layout) order() [][]*slot {
	order := make([][]*slot, len(l.rows))
	for i, row := range l.rows {
		order[i] = slices.Clone(row)
	}
	return order
}

// sortRow moves each slot near its connected slots.
func sortRow(row []*slot, with func(*slot) []*slot) {
	weight := make(map[*slot]float64, len(row))
	for i, s := range row {
		weight[s] = float64(i)
		if near := with(s); len(near) > 0 {
			sum := 0
			for _, n := range near {
				sum += n.at
			}
			weight[s] = float64(sum) / float64(len(near))
		}
	}
	slices.SortStableFunc(row, func(a, b *slot) int { return cmp.Compare(weight[a], weight[b]) })
	for i, s := range row {
		s.at = i
	}
}

// crossings counts the crossings of arrows between rows.
func (l *layout) crossings() (count int) {
	for _, row := range l.rows {
		var seen []int // lower ends of arrows that begin further to the left
		for _, s := range row {
			before := len(seen)
			for _, to := range s.below {
				for _, other := range seen[:before] {
					if other > to.at {
						count++
					}
				}
				seen = append(seen, to.at)
			}
		}
	}
	return count
}

// placeColumns sets all horizontal positions, with every row centred, and returns the total width.
func (l *layout) placeColumns() int {
	widths := make([]int, len(l.rows))
	for i, row := range l.rows {
		for _, s := range row {
			widths[i] += s.width + gapX
		}
		widths[i] -= gapX
	}
	inner := slices.Max(append(widths, 0))
	for i, row := range l.rows {
		x := margin + (inner-widths[i])/2
		for _, s := range row {
			s.x, s.node.X = x, x
			x += s.width + gapX
		}
	}
	back := 0
	for _, w := range l.edges {
		if w.Back {
			back++
		}
	}
	return inner + 2*margin + back*laneGap
}

// placeRows sets all vertical positions and returns the total height.
func (l *layout) placeRows() int {
	l.bottom = make([]int, len(l.rows))
	l.tracks = make(map[*slot][3]int)
	lines := l.collectTracks()
	l.top = margin
	y := l.top + l.placeTracks(lines[0], 0)
	for i, row := range l.rows {
		tallest := 0
		for _, s := range row {
			s.node.Y = y
			tallest = max(tallest, s.node.Height)
		}
		l.bottom[i] = y + tallest
		least := gapY
		if i == len(l.rows)-1 {
			least = 0
		}
		y = l.bottom[i] + l.placeTracks(lines[i+1], least)
	}
	return y + margin
}

// track is a horizontal line.
type track struct {
	slot *slot
	kind int
}

// collectTracks returns the tracks above the first row and below each row.
func (l *layout) collectTracks() []map[track]bool {
	lines := make([]map[track]bool, len(l.rows)+1)
	for i := range lines {
		lines[i] = make(map[track]bool)
	}
	for _, w := range l.edges {
		first, last := w.through[0], w.through[len(w.through)-1]
		if w.Back {
			lines[first.row+1][track{first, trackLeave}] = true
			lines[last.row][track{last, trackArrive}] = true
			continue
		}
		for i, to := range w.through[1:] {
			if from := w.through[i]; from.middle() != to.middle() {
				lines[from.row+1][track{from, trackTurn}] = true
			}
		}
	}
	return lines
}

// placeTracks sets the positions of the tracks between two rows and returns the height that they
// need.
func (l *layout) placeTracks(lines map[track]bool, least int) int {
	if len(lines) == 0 {
		return least
	}
	all := slices.SortedFunc(maps.Keys(lines), func(a, b track) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.slot.at, b.slot.at))
	})
	room := max(gapY, arrowStart+arrowEnd+(len(all)-1)*laneGap)
	for i, t := range all {
		at := l.tracks[t.slot]
		at[t.kind] = arrowStart + (2*i+1)*(room-arrowStart-arrowEnd)/(2*len(all))
		l.tracks[t.slot] = at
	}
	return room
}

// rank orders tracks to reduce crossings: of those that lead right, the one that begins rightmost
// comes first; of those that lead left, the leftmost.
func (t track) rank() int {
	sum := 0
	for _, s := range t.slot.below {
		sum += s.middle() - t.slot.middle()
	}
	if sum > 0 {
		return -t.slot.middle()
	}
	return t.slot.middle()
}

// routeEdges computes the points of all edges.
func (l *layout) routeEdges(width int) []Edge {
	side, edges := width-margin/2, make([]Edge, 0, len(l.edges))
	for _, w := range l.edges {
		if w.Back {
			w.Points = l.backward(w, side)
			side -= laneGap
		} else {
			w.Points = l.forward(w)
		}
		edges = append(edges, w.Edge)
	}
	return edges
}

// forward routes an edge from row to row, with turns in the gaps.
func (l *layout) forward(w *routedEdge) [][2]int {
	first, last := w.through[0], w.through[len(w.through)-1]
	points := [][2]int{{first.middle(), first.node.Y + first.node.Height}}
	for i, to := range w.through[1:] {
		if from := w.through[i]; from.middle() != to.middle() {
			turn := l.bottom[from.row] + l.tracks[from][trackTurn]
			points = append(points, [2]int{from.middle(), turn}, [2]int{to.middle(), turn})
		}
	}
	return append(points, [2]int{last.middle(), last.node.Y})
}

// backward routes a back edge around all boxes, on the right side.
func (l *layout) backward(w *routedEdge, side int) [][2]int {
	from, to := w.through[0], w.through[1]
	start, end := from.middle()+backArrowOffset, to.middle()+backArrowOffset
	down, up := l.bottom[from.row]+l.tracks[from][trackLeave], l.top+l.tracks[to][trackArrive]
	if to.row > 0 {
		up += l.bottom[to.row-1] - l.top
	}
	return [][2]int{{start, from.node.Y + from.node.Height}, {start, down}, {side, down}, {side, up}, {end, up}, {end, to.node.Y}}
}
