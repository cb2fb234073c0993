package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/drawing"
)

// Regression: an edge and a branch from Start to the same node were drawn as two arrows, and a name
// with CRLF broke the line of the drawing.
func TestDraw_OneArrowPerWayAndOneLinePerNode(t *testing.T) {
	pass := func(_ context.Context, s notes) (notes, error) { return s, nil }
	odd := "a\r\nb\tc"
	g := graph.New[notes]("odd")
	g.Node(odd, pass)
	g.Node("other", pass)
	g.Edge(graph.Start, odd)
	g.Branch(graph.Start, func(notes) string { return odd }, odd, "other")
	g.Edge(odd, graph.End)
	g.Edge("other", graph.End)
	drawing := compile(t, g).Draw()
	if len(drawing.Edges) != 4 {
		t.Errorf("got %d arrows, want 4: %+v", len(drawing.Edges), drawing.Edges)
	}
	for line := range strings.SplitSeq(drawing.Mermaid(), "\n") {
		if strings.ContainsAny(line, "\r\t") || strings.Count(line, `"`)%2 != 0 {
			t.Errorf("a broken line: %q", line)
		}
	}
}

// A run that waits at a node that was renamed since is marked at the new name; a graph that is used
// many times is drawn once.
func TestDraw_RenamedNodesAndSharedInnerGraphs(t *testing.T) {
	pass := func(_ context.Context, s notes) (notes, error) { return s, nil }
	g := graph.New[notes]("renamed")
	g.Node("new", pass)
	g.Rename("old", "new")
	g.Rename("older", "new")
	g.Edge(graph.Start, "new")
	g.Edge("new", graph.End)
	at, err := fermata.ParseAddress("runnable:renamed;node:old")
	if err != nil {
		t.Fatal(err)
	}
	inner := compile(t, g)
	d := inner.Draw(&fermata.InterruptCtx{Address: at})
	if got := drawing.FormatNext(d.Next(at)); got != "the end" || !strings.Contains(d.Text(), "new (waits)") {
		t.Errorf("then %s:\n%s", got, d.Text())
	}
	for depth := range 9 { // 4⁹ boxes
		outer := graph.New[notes](fmt.Sprint("outer", depth))
		for i := range 4 {
			name := fmt.Sprint("sub", i)
			graph.Sub(outer, name, inner, func(s notes) notes { return s }, func(_, s notes) notes { return s })
			outer.Edge(graph.Start, name)
			outer.Edge(name, graph.End)
		}
		inner = compile(t, outer)
	}
	if size := len(inner.Draw().Text()); size > 200_000 {
		t.Errorf("%d bytes", size)
	}
}
