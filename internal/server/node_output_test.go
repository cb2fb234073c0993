package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The output of a graph's nodes is streamed live like the tokens of a model, with its address.
func TestChatStream_SendsOutputOfNodes(t *testing.T) {
	type essay struct {
		Text string `json:"text"`
	}
	g := graph.New[essay]("essay")
	g.Node("write", func(ctx context.Context, s essay) (essay, error) {
		for _, word := range []string{"Good ", "evening."} {
			graph.Emit(ctx, word)
			s.Text += word
		}
		return s, nil
	})
	g.Chain(graph.Start, "write", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, nil, nil, inproc.Flow(flow, inproc.FlowConfig[essay]{}))
	var said strings.Builder
	events := eventsIn(strings.NewReader(s.chat("agent@acme", `{"graphId":"inproc:essay","input":{"text":""}}`, "Accept", acceptStream).body), nil)
	for _, e := range events {
		if e.kind != "token" {
			continue
		}
		var token struct{ Address, Agent, Text string }
		if err := json.Unmarshal([]byte(e.data), &token); err != nil || token.Address != "runnable:essay;node:write" || token.Agent != "" {
			t.Errorf("%+v, %v", e, err)
		}
		said.WriteString(token.Text)
	}
	if last := events[len(events)-1]; said.String() != "Good evening." || last.kind != "outcome" || !strings.Contains(last.data, `"completed"`) {
		t.Errorf("it received %q, and %+v", said.String(), last)
	}
}
