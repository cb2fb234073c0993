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

// An amount in cents is shown as an amount of money in the language of the reader, with the number
// of the data next to it.
func TestRequest_AmountsOfMoney(t *testing.T) {
	type payout struct {
		Cents int `json:"cents" money:"EUR,2"`
	}
	g := graph.New[payout]("fee")
	g.Node("pay", func(ctx context.Context, p payout) (payout, error) {
		_, err := fermata.Approve(ctx, fermata.Action[payout]{Name: "payout", Args: p})
		return p, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, func(c *webtest.Config) { c.Graphs = append(c.Graphs, inproc.Flow(flow, inproc.FlowConfig[payout]{})) })
	id := ask(t, s, "inproc:fee", "p1", `{"cents":123450}`)
	ann := s.SignIn("ann")
	got := ann.Get("/requests/" + id)
	want(t, got, http.StatusOK, "ay out <b>1,234.50 EUR</b>", `1,234.50 EUR <span class="muted">(`)
	if !strings.Contains(got.Body, "123450") {
		t.Error("the page does not show the number in the data")
	}
}
