package graph_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

// An edge and a branch from Start to the same node were drawn as two arrows, and a name with a line break of Windows broke the line of
// the drawing.
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
