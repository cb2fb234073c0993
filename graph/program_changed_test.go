package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

// Regression: a graph that waits inside a node cannot continue in a program that has something else
// there. It started again, or passed the node with the answer unused.
func TestI5_AGraphAtWorkInANodeThatBecameAnotherIsAnErrorAndNothingRuns(t *testing.T) {
	var c counter
	inner := func(name string) *graph.Flow[notes] {
		g := graph.New[notes](name)
		g.Node("asks", ask(&c, "asks", fieldA))
		g.Edge(graph.Start, "asks")
		g.Edge("asks", graph.End)
		return compile(t, g)
	}
	same := func(s notes) notes { return s }
	result := func(_, s notes) notes { return s }
	first := func(_ notes, all []notes) notes { return all[0] }
	list := func(s notes) []notes { return []notes{s} }
	forms := map[string]func(g *graph.Graph[notes]){
		"sub":             func(g *graph.Graph[notes]) { graph.Sub(g, "n", inner("inner"), same, result) },
		"sub of another":  func(g *graph.Graph[notes]) { graph.Sub(g, "n", inner("other"), same, result) },
		"each":            func(g *graph.Graph[notes]) { graph.EachFlow(g, "n", list, inner("inner"), first) },
		"each of another": func(g *graph.Graph[notes]) { graph.EachFlow(g, "n", list, inner("other"), first) },
		"plain":           func(g *graph.Graph[notes]) { g.Node("n", write(&c, "plain", fieldB)) },
	}
	build := func(form string) *graph.Graph[notes] {
		g := graph.New[notes]("outer")
		forms[form](g)
		g.Edge(graph.Start, "n")
		g.Edge("n", graph.End)
		return g
	}
	for _, was := range []string{"sub", "each"} {
		for is := range forms {
			if is == was {
				continue
			}
			t.Run(was+" to "+is, func(t *testing.T) {
				h := newHarness(t, build(was))
				_, err := h.start(notes{})
				open := h.waits(err)
				before := h.version()
				asked := c.of("asks")
				h.flow = compile(t, build(is))
				for what, err := range map[string]error{
					"Check":  h.flow.Check(t.Context(), h.run, graph.WithStore(h.st)),
					"Resume": second(h.answer(open, "asks?", "yes")),
				} {
					if changed, ok := errors.AsType[*graph.ProgramChangedError](err); !ok || !strings.Contains(changed.Error(), "node:n") {
						t.Errorf("%s: got %v", what, err)
					}
				}
				if h.version() != before || c.of("asks") != asked || c.of("plain") != 0 {
					t.Error("something was run or changed")
				}
				h.flow = compile(t, build(was))
				if out, err := h.answer(open, "asks?", "yes"); err != nil || out.A != "yes" {
					t.Errorf("restored: got %+v, %v", out, err)
				}
			})
		}
	}
}

func second[T any](_ T, err error) error { return err }

// evolving is a graph with one node that asks.
func evolving[S any](migrate func(graph.Fields) error) *graph.Graph[S] {
	g := graph.New[S]("evolving")
	g.Node("asks", func(ctx context.Context, s S) (S, error) {
		_, err := question.Ask(ctx, "ok?")
		return s, err
	})
	g.Edge(graph.Start, "asks")
	g.Edge("asks", graph.End)
	if migrate != nil {
		g.MigrateState(migrate)
	}
	return g
}

func TestChanged_AFieldOfAnotherTypeIsNamedAndNothingRuns(t *testing.T) {
	type was struct{ Amount string }
	type is struct{ Amount int }
	h := newHarness(t, evolving[was](nil))
	_, err := h.start(was{"12"})
	open := h.waits(err)
	before := h.version()
	later := newHarness(t, evolving[is](nil))
	later.st = h.st
	for what, err := range map[string]error{
		"Check":  later.flow.Check(t.Context(), h.run, graph.WithStore(h.st)),
		"Resume": second(later.answer(open, "ok?", "yes")),
	} {
		changed, ok := errors.AsType[*graph.ProgramChangedError](err)
		if !ok || !strings.Contains(changed.Error(), "Amount") || errors.Is(err, graph.ErrCorrupt) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if h.version() != before {
		t.Error("the run was changed")
	}
	later.flow = compile(t, evolving[is](func(fields graph.Fields) error {
		var text string
		if err := json.Unmarshal(fields["Amount"], &text); err != nil {
			return err
		}
		fields["Amount"] = []byte(text)
		return nil
	}))
	if out, err := later.answer(open, "ok?", "yes"); err != nil || out.Amount != 12 {
		t.Errorf("migrated: got %+v, %v", out, err)
	}
}

// The type of the field has the same name in both programs; only its fields have changed.
func TestChanged_AFieldInsideAFieldMigratesToo(t *testing.T) {
	type author struct{ Name string }
	type doc struct {
		By    *author
		Title string
	}
	type state struct{ Docs []doc }
	h := newHarness(t, evolving[state](nil))
	_, err := h.start(state{[]doc{{&author{"Ann"}, "Rests"}}})
	open := h.waits(err)
	{
		type author struct{ FullName string }
		type doc struct {
			By    *author
			Title string
		}
		type state struct{ Docs []doc }
		later := newHarness(t, evolving[state](func(fields graph.Fields) error {
			fields["Docs"] = []byte(strings.ReplaceAll(string(fields["Docs"]), `"Name"`, `"FullName"`))
			return nil
		}))
		later.st = h.st
		out, err := later.answer(open, "ok?", "yes")
		if err != nil || len(out.Docs) != 1 || *out.Docs[0].By != (author{"Ann"}) {
			t.Errorf("got %+v, %v", out, err)
		}
	}
}

// Regression: a renamed nested field is lost like a top-level one: a denial of the earlier program
// was the zero value in the later one, and an approval.
func TestI13_AFieldInsideAFieldThatSeemsToBeRenamedIsNamedAndNothingRuns(t *testing.T) {
	type verdict struct {
		Denied bool   `json:"denied,omitempty"`
		Reason string `json:"reason,omitempty"`
	}
	type state struct{ Verdicts map[string][]*verdict }
	h := newHarness(t, evolving[state](nil))
	_, err := h.start(state{map[string][]*verdict{"law": {nil, {Denied: true, Reason: "no"}}}})
	open := h.waits(err)
	before := h.version()
	type renamed struct {
		Refused bool   `json:"refused,omitempty"`
		Reason  string `json:"reason,omitempty"`
	}
	type later struct{ Verdicts map[string][]*renamed }
	next := newHarness(t, evolving[later](nil))
	next.st = h.st
	for what, err := range map[string]error{
		"Check":  next.flow.Check(t.Context(), h.run, graph.WithStore(h.st)),
		"Resume": second(next.answer(open, "ok?", "yes")),
	} {
		changed, ok := errors.AsType[*graph.ProgramChangedError](err)
		if !ok || !strings.Contains(changed.Error(), `"denied"`) || !strings.Contains(changed.Error(), `"refused"`) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if h.version() != before {
		t.Error("the run was changed")
	}
	type lawyers struct { // it has more fields than the earlier one
		Denied bool   `json:"denied,omitempty"`
		Reason string `json:"reason,omitempty"`
		By     string `json:"by"`
	}
	type wider struct{ Verdicts map[string][]*lawyers }
	wide := newHarness(t, evolving[wider](nil))
	wide.st = h.st
	out, err := wide.answer(open, "ok?", "yes")
	if err != nil || len(out.Verdicts["law"]) != 2 || *out.Verdicts["law"][1] != (lawyers{Denied: true, Reason: "no"}) {
		t.Errorf("got %+v, %v", out, err)
	}
}
