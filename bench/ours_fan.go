package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// fan is the state of graphs that wait at many places. Each place records its name and its answer.
type fan struct {
	Places  []string `json:"places,omitempty"`
	Answers []string `json:"answers,omitempty"`
}

// fanAnswer is what one place records.
func fanAnswer(name, answer string) string { return name + "=" + answer }

func oursFanAsk(ctx context.Context, name string) (string, error) {
	verdict, err := review.Ask(ctx, question)
	if err != nil {
		return "", err
	}
	return fanAnswer(name, verdict), nil
}

// oursFanNodes has n parallel nodes.
func oursFanNodes(n int) (*engine, error) {
	g := graph.New[fan]("fan")
	graph.MergeField(g, "answers", graph.Append[[]string])
	for i := range n {
		name := nodeName(i)
		g.Node(name, func(ctx context.Context, f fan) (fan, error) {
			left, err := oursFanAsk(ctx, name)
			if err != nil {
				return f, err
			}
			f.Answers = append(f.Answers, left)
			return f, nil
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return oursFan(g, fan{}, n)
}

// oursFanEach has one node that works on n items.
func oursFanEach(n int) (*engine, error) {
	g := graph.New[fan]("fan")
	graph.Each(g, "each", func(f fan) []string { return f.Places }, oursFanAsk,
		func(f fan, left []string) fan { return fan{Answers: left} })
	g.Edge(graph.Start, "each")
	g.Edge("each", graph.End)
	return oursFan(g, fanOver(n), n)
}

// fanOver is the input of the graphs that work on a list.
func fanOver(n int) fan {
	input := fan{Places: make([]string, n)}
	for i := range n {
		input.Places[i] = nodeName(i)
	}
	return input
}

func oursFan(g *graph.Graph[fan], input fan, n int) (*engine, error) {
	o, err := newOurs(g, memory.New(), input, saveOnHold)
	if err != nil {
		return nil, err
	}
	return waitingEngine(o, n, func(f fan) error { return checkFan(n, f.Answers) }), nil
}

// checkFan checks that each of n places has an answer, in any order.
func checkFan(n int, left []string) error {
	if len(left) != n {
		return fmt.Errorf("%d places have an answer, want %d", len(left), n)
	}
	seen := make(map[string]bool, n)
	for _, l := range left {
		name, verdict, _ := strings.Cut(l, "=")
		if verdict != answer || seen[name] {
			return fmt.Errorf("a place has %q", l)
		}
		seen[name] = true
	}
	return nil
}
