package drawing

import (
	"cmp"
	"maps"
	"slices"
)

// The measures of a drawing.
const (
	margin                   = 20
	boxHeight                = 40
	dotWidth                 = 72 // of start and end
	minBoxWidth, maxBoxWidth = 120, 320
	letterWidth              = 8 // how wide a letter is, more or less, and one of the small ones
	smallLetterWidth         = 6
	gapX, gapY               = 32, 44
	backArrowOffset          = 8      // how far from the middle of a box arrows are that go back
	laneGap                  = 12     // between arrows beside each other
	arrowStart, arrowEnd     = 14, 20 // what an arrow goes straight at its beginning and its end
	passageWidth             = 12     // the room that an arrow has on its way past boxes
	sweeps                   = 6
)

// What a drawing that nobody can read costs at most: with more, arrows go over boxes, and cross where they like.
const (
	maxPassages  = 20_000
	maxReordered = 2_000
)

// New lays a graph out from top to bottom: rows says which nodes stand beside each other, and an edge to a row that is not below its own goes back. Only
// their ids, kinds, holds and inner graphs have to be given, and of edges where they lead.
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

// setSize says how large a box has to be.
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

// labelWidth is how wide a box has to be for its text, also if a run waits there.
func labelWidth(n *Node) int {
	waits := *n
	waits.Waiting = true
	name, more := waits.label()
	text := max(textWidth(name)*letterWidth, textWidth(more)*smallLetterWidth)
	if n.Inner != nil { // all of it is in one line
		text = textWidth(waits.description()) * letterWidth
	}
	return min(max(minBoxWidth, text+2*letterWidth), maxBoxWidth)
}

// textWidth is how many letters a text has the room of.
func textWidth(text string) (count int) {
	for _, r := range text {
		count += runeWidth(r)
	}
	return count
}

// runeWidth is how many letters a character has the room of, more or less: those of East Asia, which begin here, and the pictures behind them are as wide as they are high.
func runeWidth(r rune) int {
	if r >= '\u2e80' {
		return 2
	}
	return 1
}

// layout is a drawing in the making.
type layout struct {
	rows     [][]*slot
	places   map[string]*slot
	passages map[passing]*slot
	edges    []*routedEdge
	bottom   []int            // where each row ends
	top      int              // where the first one begins
	tracks   map[*slot][3]int // how far below the row before it each slot's arrows run, by their kind
}

// passing is a place in a row that arrows pass on their way to a node. Those to the same node share it.
type passing struct {
	to  *slot
	row int
}

// What runs from side to side in the gap between two rows: for each slot that does so one line, so that no two arrows seem to be one.
const (
	trackLeave  = iota // arrows that go back, from the slot
	trackTurn          // arrows that go down, from the slot
	trackArrive        // arrows that go back, to the slot
)

// slot is a place in a row: of a box, or of an arrow that passes it on its way.
type slot struct {
	node         Node
	passage      bool
	row, at      int // at is its number in the row
	x, width     int
	above, below []*slot // what arrows connect it with
}

// routedEdge is an edge, and the slots that it goes through, both ends included.
type routedEdge struct {
	Edge
	through []*slot
}

func (s *slot) middle() int { return s.x + s.width/2 }

// connect makes a way of an edge. One that goes down by more than a row gets room in those between, so that it goes past boxes and not over them.
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

// pass returns the place where arrows pass a row; nil if there are too many.
func (l *layout) passageAt(where passing) *slot {
	s := l.passages[where]
	if s == nil && len(l.passages) < maxPassages {
		s = &slot{passage: true, row: where.row, width: passageWidth}
		l.rows[where.row] = append(l.rows[where.row], s)
		l.passages[where] = s
	}
	return s
}

// untangle orders each row by what its slots are connected with, down and up in turns, and keeps the order in which the fewest arrows cross.
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

// number tells the slots where they are.
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

// sortRow puts each slot near those that it is connected with.
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

// crossings counts the arrows that cross each other between two rows.
func (l *layout) crossings() (count int) {
	for _, row := range l.rows {
		var seen []int // the ends, below, of those that begin further to the left
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

// across gives everything its place from left to right, every row in the middle, and returns how wide it all is.
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

// down gives everything its place from top to bottom, and returns how high it all is.
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

// track is a line from side to side.
type track struct {
	slot *slot
	kind int
}

// lines are the tracks above the first row, and below each.
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

// gap says where the lines between two rows run, and how much room they need.
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

// rank orders tracks so that few cross: of those that lead to the right, the one that begins furthest to the right comes first, and the other way round.
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

// arrows draws the ways.
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

// forward goes from row to row, and turns in the gaps.
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

// backward goes around everything, on the right side.
func (l *layout) backward(w *routedEdge, side int) [][2]int {
	from, to := w.through[0], w.through[1]
	start, end := from.middle()+backArrowOffset, to.middle()+backArrowOffset
	down, up := l.bottom[from.row]+l.tracks[from][trackLeave], l.top+l.tracks[to][trackArrive]
	if to.row > 0 {
		up += l.bottom[to.row-1] - l.top
	}
	return [][2]int{{start, from.node.Y + from.node.Height}, {start, down}, {side, down}, {side, up}, {end, up}, {end, to.node.Y}}
}
