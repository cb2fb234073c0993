package drawing_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/drawing"
	"github.com/fermata-go/fermata/internal/golden"
)

// review is a graph with everything that can be drawn.
func review() *drawing.Drawing {
	inner := drawing.New("research", [][]drawing.Node{
		{{ID: "s", Kind: drawing.KindStart}}, {{ID: "search", Kind: drawing.KindEach}}, {{ID: "pick", Kind: drawing.KindNode, Held: []string{drawing.After}}}, {{ID: "e", Kind: drawing.KindEnd}},
	}, []drawing.Edge{{From: "s", To: "search"}, {From: "search", To: "pick"}, {From: "pick", To: "e"}})
	return drawing.New(`a "graph" <&>`, [][]drawing.Node{
		{{ID: "s", Kind: drawing.KindStart}},
		{{ID: "plan", Kind: drawing.KindNode}},
		{{ID: "research", Kind: drawing.KindGraph, Inner: inner}, {ID: "ask\x1b[31m\na <lawyer>", Kind: drawing.KindNode}},
		{{ID: "publish", Kind: drawing.KindNode, Held: []string{drawing.Before}, Formerly: []string{"publish_it"}}},
		{{ID: "e", Kind: drawing.KindEnd}},
	}, []drawing.Edge{
		{From: "s", To: "plan"}, {From: "plan", To: "research"}, {From: "plan", To: "ask\x1b[31m\na <lawyer>"},
		{From: "research", To: "publish"}, {From: "ask\x1b[31m\na <lawyer>", To: "publish", Branch: true}, {From: "ask\x1b[31m\na <lawyer>", To: "e", Branch: true},
		{From: "publish", To: "plan", Branch: true}, {From: "publish", To: "e", Branch: true},
	})
}

func at(t *testing.T, address string) fermata.Address {
	t.Helper()
	a, err := fermata.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDrawing_InEveryForm(t *testing.T) {
	plain := review()
	d := plain.Marked(at(t, "runnable:review;node:research;node:search;item:3;tool:x"), at(t, "runnable:review;hold:before#publish"))
	if strings.Contains(plain.Text(), "waits") {
		t.Errorf("the drawing itself was changed:\n%s", plain.Text())
	}
	golden.Compare(t, "testdata/review.svg", d.SVG())
	golden.Compare(t, "testdata/review.mmd", d.Mermaid())
	golden.Compare(t, "testdata/review.txt", d.Text())
}

// An approver wants to know what comes next.
func TestDrawing_NextListsSuccessors(t *testing.T) {
	d := review()
	for address, want := range map[string]string{
		"runnable:review;node:plan":                        "ask\\u001b[31m a <lawyer> and research",
		"runnable:review;node:ask%1B[31m%0Aa <lawyer>":     "publish or the end",
		"runnable:review;node:publish;approve:x":           "plan or the end",
		"runnable:review;hold:before#publish":              "publish",
		"runnable:review;hold:after#publish":               "plan or the end",
		"runnable:review;node:research":                    "publish",
		"runnable:review;node:research;node:search;item:3": "pick",
		// it ends, and the outer graph continues
		"runnable:review;node:research;node:pick":             "publish",
		"runnable:review;node:research;hold:after#pick":       "publish",
		"runnable:review;node:research;tool:x":                "publish",
		"runnable:review;node:publish_it":                     "plan or the end", // its former name
		"runnable:review;node:gone":                           "",
		"runnable:review;agent:clerk;tool:book_ticket#call_1": "",
		"runnable:review":                                     "",
	} {
		if got := drawing.FormatNext(d.Next(at(t, address))); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// Whatever a server sends must not break a line, control a terminal, or look like something else.
func TestDrawing_OfWhateverAServerSends(t *testing.T) {
	odd := drawing.Drawing{Graph: "g\x1b]0;x\a", Nodes: []drawing.Node{
		{ID: "of no size", Width: -1, Held: []string{"\x1b]0;pwned\a\nfermata: approved"}},
		{ID: "pay\u200b", Kind: "\x1b[2J"}, {ID: "\u202e"}, {ID: "\xff"}, {ID: ""},
	}, Edges: []drawing.Edge{{From: "nowhere", To: "nowhere"}, {From: "pay\u200b", To: "\x1b[2J"}}}
	for form, text := range map[string]string{"SVG": odd.SVG(), "Mermaid": odd.Mermaid(), "Text": odd.Text(), "Then": drawing.FormatNext([][]string{{"\x1b]0;x\a\n"}})} {
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s has %q:\n%s", form, r, text)
			}
		}
		if strings.Contains(text, "\nfermata") || form == "Mermaid" && strings.Contains(text, `[""]`) {
			t.Errorf("%s:\n%s", form, text)
		}
	}
	for _, want := range []string{`pay\u200b`, `\u202e`, `\xff`, `""`} {
		if !strings.Contains(odd.Text(), want) {
			t.Errorf("no %s in\n%s", want, odd.Text())
		}
	}
}

// Mermaid takes an unquoted "end" for the end of a subgraph, reads %%{…}%% as a directive anywhere,
// and rejects an arrow without a target.
func TestDrawing_MermaidEscapesKeywords(t *testing.T) {
	d := drawing.New("g", [][]drawing.Node{{{ID: "end"}, {ID: `%%{init: {"theme": "dark"}}%%`}}, {{ID: "e", Kind: drawing.KindEnd}}}, nil)
	d.Edges = []drawing.Edge{{From: "end", To: "e"}, {From: "end", To: "gone"}, {From: "gone", To: "e"}}
	const want = "flowchart TD\n  n0[\"end\"]\n  n1[\"#37;#37;{init: {#quot;theme#quot;: #quot;dark#quot;}}#37;#37;\"]\n  n2((\"end\"))\n  n0 --> n2\n"
	if got := d.Mermaid(); got != want {
		t.Errorf("%s", got)
	}
	if got := d.Text(); !strings.HasPrefix(got, "end → end\n") {
		t.Errorf("an arrow without a target:\n%s", got)
	}
}

// Regression: East Asian characters and emoji are nearly twice as wide as others, and the text of a
// box overlapped its neighbours.
func TestDrawing_WideLettersStayInTheirBox(t *testing.T) {
	for _, name := range []string{"人間による確認を待っています", "승인", strings.Repeat("審", 100), strings.Repeat("🎼", 30)} {
		n := drawing.New("g", [][]drawing.Node{{{ID: name}}}, nil).Nodes[0]
		_, text, _ := strings.Cut(drawing.New("g", [][]drawing.Node{{{ID: name}}}, nil).SVG(), `text-anchor="middle">`)
		text, _, _ = strings.Cut(text, "<")
		if wide := 14 * utf8.RuneCountInString(text); wide > n.Width || text == "" {
			t.Errorf("%s is %d wide, and its box %d", text, wide, n.Width)
		}
	}
}

// Edges that are always followed are followed together; the edge that a route picks is added to
// them.
func TestDrawing_NextCombinesParallelEdges(t *testing.T) {
	rows := [][]drawing.Node{{{ID: "ask"}}, {{ID: "mail"}, {ID: "pay"}, {ID: "tell"}}, {{ID: "e", Kind: drawing.KindEnd}}}
	d := drawing.New("g", rows, []drawing.Edge{
		{From: "ask", To: "mail"}, {From: "ask", To: "e"}, {From: "ask", To: "pay", Branch: true}, {From: "ask", To: "tell", Branch: true}, {From: "ask", To: "e", Branch: true},
		{From: "mail", To: "e"},
	})
	next := d.Next(at(t, "runnable:g;node:ask"))
	if got := drawing.FormatNext(next); got != "mail and pay or mail and tell or mail" || len(next) != 3 {
		t.Errorf("%q: %q", got, next)
	}
	if got := d.Next(at(t, "runnable:g;node:mail")); len(got) != 1 || len(got[0]) != 0 || drawing.FormatNext(got) != "the end" {
		t.Errorf("%q", got)
	}
}

// Names must not become markup, and the accessible label must say where the run waits.
func TestDrawing_ASVGIsWellFormedAndSaysWhereItWaits(t *testing.T) {
	d := review().Marked(at(t, "runnable:review;node:research;node:pick"), at(t, "runnable:review;node:plan"), at(t, "runnable:review;node:gone"), at(t, "runnable:review"), nil)
	svg := d.SVG()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
	if !strings.Contains(svg, `aria-label="The graph a &#34;graph&#34; &lt;&amp;&gt;, which waits at plan and pick"`) {
		t.Errorf("%s", svg)
	}
	if strings.Contains(svg, "<lawyer>") || strings.Contains(svg, "\x1b") {
		t.Errorf("%s", svg)
	}
}

// For any graph: boxes do not overlap and are inside, an arrow leads from the lower edge of its box
// to the upper edge of the other, and crosses no box.
func TestProperty_NothingIsDrawnOverABox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := [][]drawing.Node{{{ID: "s", Kind: drawing.KindStart}}}
		names := []string{"s"}
		for y := range rapid.IntRange(1, 6).Draw(t, "rows") {
			var row []drawing.Node
			for x := range rapid.IntRange(1, 5).Draw(t, "boxes") {
				n := drawing.Node{ID: fmt.Sprintf("n%d_%d%s", y, x, strings.Repeat("x", rapid.IntRange(0, 60).Draw(t, "name"))), Kind: drawing.KindNode}
				if rapid.IntRange(0, 9).Draw(t, "inner") == 0 {
					n.Kind, n.Inner = drawing.KindGraph, review()
				}
				row, names = append(row, n), append(names, n.ID)
			}
			rows = append(rows, row)
		}
		rows = append(rows, []drawing.Node{{ID: "e", Kind: drawing.KindEnd}})
		all := append(slices.Clone(names), "e")
		var edges []drawing.Edge
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			edges = append(edges, drawing.Edge{From: rapid.SampledFrom(all).Draw(t, "from"), To: rapid.SampledFrom(all).Draw(t, "to")})
		}
		d := drawing.New("g", rows, edges)
		if len(d.Nodes) != len(names)+1 || len(d.Edges) != len(edges) {
			t.Fatalf("%d nodes and %d edges of %d and %d", len(d.Nodes), len(d.Edges), len(names)+1, len(edges))
		}
		boxes := make(map[string]drawing.Node)
		for i, n := range d.Nodes {
			boxes[n.ID] = n
			if n.X < 0 || n.Y < 0 || n.X+n.Width > d.Width || n.Y+n.Height > d.Height {
				t.Fatalf("%s lies outside: %+v", n.ID, n)
			}
			for _, other := range d.Nodes[:i] {
				if n.X < other.X+other.Width && other.X < n.X+n.Width && n.Y < other.Y+other.Height && other.Y < n.Y+n.Height {
					t.Fatalf("%s lies on %s", n.ID, other.ID)
				}
			}
		}
		for _, e := range d.Edges {
			from, to, first, last := boxes[e.From], boxes[e.To], e.Points[0], e.Points[len(e.Points)-1]
			if first[1] != from.Y+from.Height || first[0] < from.X || first[0] > from.X+from.Width || last[1] != to.Y || last[0] < to.X || last[0] > to.X+to.Width {
				t.Fatalf("%s to %s begins or ends elsewhere: %v", e.From, e.To, e.Points)
			}
			if e.Back != (to.Y <= from.Y) {
				t.Fatalf("%s to %s: back is %v", e.From, e.To, e.Back)
			}
			for i, p := range e.Points[1:] {
				straight(t, d, e, e.Points[i], p)
			}
		}
	})
}

// A graph that is too large to read is still drawn, in reasonable time.
func TestDrawing_OfALineOfThousandsWithAWayOutOfEach(t *testing.T) {
	const length = 3_000
	rows := [][]drawing.Node{{{ID: "s", Kind: drawing.KindStart}}}
	var edges []drawing.Edge
	for i := range length {
		id, before := fmt.Sprint(i), rows[i][0].ID
		rows = append(rows, []drawing.Node{{ID: id, Kind: drawing.KindNode}})
		edges = append(edges, drawing.Edge{From: before, To: id}, drawing.Edge{From: id, To: "e", Branch: true}, drawing.Edge{From: id, To: fmt.Sprint(i / 2), Branch: true}, drawing.Edge{From: id, To: fmt.Sprint(min(length-1, 2*i)), Branch: true})
	}
	rows = append(rows, []drawing.Node{{ID: "e", Kind: drawing.KindEnd}})
	d := drawing.New("long", rows, edges)
	points := 0
	for _, e := range d.Edges {
		points += len(e.Points)
	}
	if len(d.Nodes) != length+2 || len(d.Edges) != len(edges) || points > 200*len(edges) {
		t.Errorf("%d nodes, %d edges with %d points", len(d.Nodes), len(d.Edges), points)
	}
	if empty := drawing.New("nothing", nil, nil); len(empty.Nodes)+len(empty.Edges) != 0 || empty.SVG() == "" {
		t.Errorf("%+v", empty)
	}
}

// straight fails if a segment of an arrow is not straight, crosses a box or leaves the drawing.
func straight(t *rapid.T, d *drawing.Drawing, e drawing.Edge, a, b [2]int) {
	left, right, top, bottom := min(a[0], b[0]), max(a[0], b[0]), min(a[1], b[1]), max(a[1], b[1])
	if left != right && top != bottom || left < 0 || right > d.Width || top < 0 || bottom > d.Height {
		t.Fatalf("%s to %s: from %v to %v", e.From, e.To, a, b)
	}
	for _, n := range d.Nodes {
		if left < n.X+n.Width && right > n.X && top < n.Y+n.Height && bottom > n.Y {
			t.Fatalf("%s to %s crosses %s: from %v to %v, %+v", e.From, e.To, n.ID, a, b, n)
		}
	}
}
