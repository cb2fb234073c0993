package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

type purge struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
}

// purgeGraph asks for an approval with evidence.
func purgeGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[purge]("purge")
	g.Node("do", func(ctx context.Context, p purge) (purge, error) {
		_, err := fermata.Approve(ctx, fermata.Action[purge]{
			Name: "purge-table", Args: p, Target: func(context.Context, purge) (any, error) { return map[string]int{"version": 7}, nil },
			Evidence: []fermata.Evidence{
				{Title: "Plan", Source: "terraform", Text: "- <b>users</b>\u202e\n+ nothing"},
				{Title: "Dashboard", URL: "https://grafana.example/d/1"},
				{Title: "Bad link", URL: "javascript:alert(1)"},
			},
		})
		return p, err
	})
	g.Edge(graph.Start, "do")
	g.Edge("do", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[purge]{})
}

func TestRequest_ShowsEvidence(t *testing.T) {
	s := open(t, func(c *webtest.Config) { c.Graphs = append(c.Graphs, purgeGraph(t)) })
	id := ask(t, s, "inproc:purge", "p1", `{"table":"users","rows":3}`)
	got := s.SignIn("ann").Get("/requests/" + id)
	want(t, got, http.StatusOK, "Evidence", "State of the target", "Plan", "terraform", "&lt;b&gt;users&lt;/b&gt;", "U+202E", `href="https://grafana.example/d/1"`, "Bad link")
	if strings.Contains(got.Body, "javascript:") {
		t.Error("the page has a link with a script")
	}
}

func TestRequest_SentenceWordsTheAction(t *testing.T) {
	s := open(t)
	id := ask(t, s, "inproc:refund-order", "r1", `{"order":17,"customer":"Ines Roth","amount":120.5,"currency":"EUR"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/requests/"+id), http.StatusOK, "wants to refund <b>120.50 EUR</b> on order <b>17</b> for <b>Ines Roth</b></h1>")
	want(t, b.Get("/inbox"), http.StatusOK, "Refund <b>120.50 EUR</b> on order <b>17</b>")
}
