package inproc_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type size string

func (size) Choices() []string { return []string{"s", "m", "l"} }

type shirt struct {
	Size  size           `json:"size"`
	Text  string         `json:"text"`
	Count map[string]int `json:"count"`
	Price int            `json:"price,string"`
}

func printer(t *testing.T) *inproc.Provider {
	t.Helper()
	g := graph.New[shirt]("print")
	g.Node("print", func(_ context.Context, s shirt) (shirt, error) { return s, nil })
	g.Edge(graph.Start, "print")
	g.Edge("print", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[shirt]{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The input schema of a graph is exact: inputs that match it start a run, and no others.
func TestExecutor_InputMustMatchTheGraphSchema(t *testing.T) {
	p := printer(t)
	said, err := schema.Parse(p.Graphs()[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]bool{
		`{"size":"m","text":"hi"}`: true, `{"text":"hi"}`: true, `{}`: true, `{"count":null}`: true,
		`{"price":"7"}`: true, `{"price":7}`: false,
		`{"size":"","text":"","count":null}`: true, // as a Go program encodes a zero shirt
		`{"size":"xxl"}`:                     false, `{"text":7}`: false, `{"colour":"red"}`: false, `[]`: false,
	} {
		result, err := p.Execute(t.Context(), provider.Execution{
			Run: provider.Run{Account: "acme", ID: "run_1", Graph: "print", State: newStore(t)}, Input: json.RawMessage(input), Owner: keeper{},
		})
		failed, failure := result.Outcome.(provider.Failed)
		if err != nil || failure == want || failure && failed.Code != "invalid_input" || said.Validate(json.RawMessage(input)) == nil != want {
			t.Errorf("%s: %+v, %v; the schema says %v", input, result.Outcome, err, said.Validate(json.RawMessage(input)))
		}
	}
}

// The error says where an input is invalid, but contains nothing of the input.
func TestFlow_SaysWhereAnInputDoesNotFit(t *testing.T) {
	p := printer(t)
	for input, want := range map[string]string{
		`{"price":7}`:       "it does not match /properties/price of the input schema",
		`{"size":"CANARY"}`: "it does not match /properties/size of the input schema",
		`{"size":"validating /properties/CANARY: "}`: "it does not match /properties/size of the input schema",
	} {
		result, err := p.Execute(t.Context(), provider.Execution{
			Run: provider.Run{Account: "acme", ID: "run_1", Graph: "print", State: newStore(t)}, Input: json.RawMessage(input), Owner: keeper{},
		})
		failed, ok := result.Outcome.(provider.Failed)
		if err != nil || !ok || failed.Message != "the input does not match the graph: "+want {
			t.Errorf("%s: %+v, %v", input, result.Outcome, err)
		}
	}
}
