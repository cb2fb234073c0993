package web_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

// refund is the state of the graph refund, and the arguments of its action.
type refund struct {
	Order   int         `json:"order"`
	Payment json.Number `json:"payment"`
	Amount  string      `json:"amount"`
	Note    string      `json:"note,omitempty"`
}

// refundGraph asks for the approval of a refund, and records what was done.
func refundGraph(t *testing.T, done func(refund)) inproc.Graph {
	t.Helper()
	g := graph.New[refund]("refund")
	g.Node("pay", func(ctx context.Context, r refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "refund", Args: r, Summary: "The parcel arrived <b>damaged</b>."})
		if err != nil {
			return r, err
		}
		return fermata.Effect(ctx, yes, func(_ context.Context, r refund, _ string) (refund, error) {
			done(r)
			return r, nil
		})
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[refund]{})
}

// ask starts a run and returns the id of its request.
func ask(t *testing.T, s *webtest.Server, graphID, key, input string) string {
	t.Helper()
	outcome, err := s.Executor.Run(t.Context(), executor.RunRequest{Account: webtest.Account, StateKey: key, Graph: graphID, Input: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	waits, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waits.Interrupts) != 1 {
		t.Fatalf("%+v", outcome)
	}
	return waits.Interrupts[0].ID
}

var seenData = regexp.MustCompile(`data-shown="([^"]*)" data-rendering="([^"]*)"`)

// seenOn returns what the page of a request says that it showed, as fields of a form, and more.
func seenOn(b *webtest.Browser, id string, more ...string) []string {
	b.Helper()
	page := b.Get("/requests/" + id)
	match := seenData.FindStringSubmatch(page.Body)
	if match == nil {
		b.Fatalf("%d: the page does not say what it shows\n%s", page.Status, page.Body)
	}
	return append([]string{"shown", match[1], "rendering", match[2]}, more...)
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// hidden returns the hidden fields of a form as pairs, followed by more.
func hidden(page webtest.Response, more ...string) (fields []string) {
	for _, match := range hiddenField.FindAllStringSubmatch(page.Body, -1) {
		fields = append(fields, match[1], strings.ReplaceAll(match[2], "&#34;", `"`))
	}
	return append(fields, more...)
}
