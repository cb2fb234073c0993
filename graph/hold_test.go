package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

func heldGraph(c *counter) *graph.Graph[notes] {
	g := graph.New[notes]("held")
	g.Node("first", write(c, "first", fieldA))
	g.Node("danger", func(_ context.Context, s notes) (notes, error) {
		c.add("danger")
		s.B = "danger saw " + s.A
		return s, nil
	})
	g.Node("last", write(c, "last", fieldC))
	g.Edge(graph.Start, "first")
	g.Edge("first", "danger")
	g.Edge("danger", "last")
	g.Edge("last", graph.End)
	return g
}

func TestHoldBefore_ShowsTheStateAndTakesItBackEdited(t *testing.T) {
	var c counter
	g := heldGraph(&c)
	g.HoldBefore("danger")
	h := newHarness(t, g)
	_, err := h.start(notes{N: 1})
	open := h.waits(err)
	c.want(t, map[string]int{"first": 1, "danger": 0})
	hold := open[0]
	if hold.Kind != "hold" || hold.Address.String() != "runnable:held;hold:before#danger" || hold.Parent.Address.String() != "runnable:held" {
		t.Fatalf("got %+v", hold)
	}
	state, err := fermata.InfoAs[notes](hold)
	if err != nil || state.A != "first" || state.N != 1 {
		t.Fatalf("got %+v, %v", state, err)
	}
	state.A = "edited"
	out, err := h.resume(graph.Answer(hold.ID, state))
	if err != nil || out.B != "danger saw edited" || out.A != "edited" || out.N != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"first": 1, "danger": 1, "last": 1})
}

// Regression: the node took the release of its hold for an approval of its own question, which had
// not been asked.
func TestI5_ReleasingAHoldDoesNotAnswerTheNodesInterrupt(t *testing.T) {
	for _, inside := range []bool{false, true} {
		var c counter
		g := oneNode(func(ctx context.Context, s notes) (notes, error) {
			if may, _, _ := fermata.GetResumeContext[vote](ctx); !may {
				return s, fermata.Interrupt(ctx, "delete?")
			}
			c.add("deleted")
			return s, nil
		})
		g.HoldBefore("node")
		if inside {
			inner := compile(t, g)
			g = graph.New[notes]("around")
			graph.Sub(g, "sub", inner, func(s notes) notes { return s }, func(_, in notes) notes { return in })
			g.Edge(graph.Start, "sub")
			g.Edge("sub", graph.End)
		}
		h := newHarness(t, g)
		_, err := h.start(notes{})
		_, err = h.resume(graph.Answer(h.waits(err)[0].ID, nil))
		asked := h.waits(err)
		c.want(t, map[string]int{"deleted": 0})
		if _, err := h.resume(graph.Answer(asked[0].ID, vote{Approve: true})); err != nil {
			t.Error(err)
		}
		c.want(t, map[string]int{"deleted": 1})
	}
}

// Regression: the person who released the hold was told that the answer was not used, and later
// that the interrupt was withdrawn.
func TestHold_OfANodeThatAsksIsAnswered(t *testing.T) {
	var c counter
	g := oneNode(ask(&c, "node", fieldA))
	g.HoldBefore("node")
	h := newHarness(t, g)
	_, err := h.start(notes{})
	hold := h.waits(err)[0].ID
	_, err = h.resume(graph.Answer(hold, nil))
	open := h.waits(err)
	if waiting, _ := errors.AsType[*fermata.InterruptError](err); len(waiting.BadAnswers) > 0 {
		t.Errorf("got %v", err)
	}
	_, err = h.resume(graph.Answer(hold, nil))
	wantErr(t, err, graph.ErrAlreadyAnswered)
	if _, err := h.answer(open, "node?", "yes"); err != nil {
		t.Error(err)
	}
}

func TestHold_GoesOnWithoutAnEdit(t *testing.T) {
	var c counter
	g := heldGraph(&c)
	g.HoldBefore("danger")
	g.HoldAfter("danger")
	h := newHarness(t, g)
	_, err := h.start(notes{})
	before := h.waits(err)
	_, err = h.resume(graph.Answer(before[0].ID, nil))
	after := h.waits(err)
	c.want(t, map[string]int{"danger": 1, "last": 0})
	if after[0].Address.String() != "runnable:held;hold:after#danger" || after[0].ID == before[0].ID {
		t.Fatalf("got %+v", after[0])
	}
	_, err = h.resume(graph.Answer(before[0].ID, nil))
	wantErr(t, err, graph.ErrAlreadyAnswered)
	out, err := h.resume(graph.Answer(after[0].ID, nil))
	if err != nil || out.B != "danger saw first" || out.C != "last" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHoldAfter_TheRouteSeesTheEditedState(t *testing.T) {
	g := graph.New[notes]("edited-route")
	var c counter
	g.Node("plan", write(&c, "plan", fieldA))
	g.Node("yes", write(&c, "yes", fieldB))
	g.Node("no", write(&c, "no", fieldC))
	g.Edge(graph.Start, "plan")
	g.Branch("plan", func(s notes) string { return s.D }, "yes", "no")
	g.Edge("yes", graph.End)
	g.Edge("no", graph.End)
	g.HoldAfter("plan")
	h := newHarness(t, g)
	_, err := h.start(notes{D: "yes"})
	hold := h.waits(err)[0]
	state, err := fermata.InfoAs[notes](hold)
	if err != nil {
		t.Fatal(err)
	}
	state.D = "no"
	if _, err := h.resume(graph.Answer(hold.ID, &state)); err != nil {
		t.Fatal(err)
	}
	c.want(t, map[string]int{"yes": 0, "no": 1})
}

func TestI13_AHoldTakesOnlyAWholeState(t *testing.T) {
	var c counter
	g := heldGraph(&c)
	g.HoldBefore("danger")
	h := newHarness(t, g)
	_, err := h.start(notes{})
	hold := h.waits(err)[0]
	version := h.version()
	for name, wrong := range map[string]any{
		"a word":         "approved",
		"part of it":     json.RawMessage(`{"A":"x"}`),
		"unknown member": json.RawMessage(`{"A":"","B":"","C":"","D":"","N":0,"Log":null,"Force":true}`),
		"wrong type":     json.RawMessage(`{"A":"","B":"","C":"","D":"","N":"0","Log":null}`),
	} {
		_, err := h.resume(graph.Answer(hold.ID, wrong))
		if _, ok := errors.AsType[*fermata.AnswerError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
		if h.version() != version {
			t.Errorf("%s: the run was changed", name)
		}
	}
	c.want(t, map[string]int{"danger": 0})
	out, err := h.resume(graph.Answer(hold.ID, json.RawMessage(`{"A":"by JSON","B":"","C":"","D":"","N":0,"Log":null}`)))
	if err != nil || out.B != "danger saw by JSON" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHold_SeveralAtOnceAndInASubgraph(t *testing.T) {
	var c counter
	inner := heldGraph(&c)
	inner.HoldBefore("danger")
	sub := compile(t, inner)
	g := graph.New[notes]("outer")
	graph.Sub(g, "left", sub, func(notes) notes { return notes{D: "left"} }, func(s, r notes) notes { s.A = r.B; return s })
	graph.Sub(g, "right", sub, func(notes) notes { return notes{D: "right"} }, func(s, r notes) notes { s.B = r.B; return s })
	g.Node("plain", write(&c, "plain", fieldC))
	for _, name := range []string{"left", "right", "plain"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	g.HoldBefore("plain")
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	want := []string{
		"runnable:outer;hold:before#plain",
		"runnable:outer;node:left;hold:before#danger",
		"runnable:outer;node:right;hold:before#danger",
	}
	got := addresses(open)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	// Another process also sees the states.
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	for _, ic := range snapshot.Interrupts {
		if ic.Address.String() == want[2] {
			state, err := fermata.InfoAs[notes](ic)
			if err != nil || state.D != "right" || state.A != "first" {
				t.Fatalf("got %+v, %v", state, err)
			}
			state.A = "edited"
			_, err = h.resume(graph.Answer(ic.ID, state))
			if rest := h.waits(err); len(rest) != 2 {
				t.Fatalf("got %v", addresses(rest))
			}
		}
	}
	c.want(t, map[string]int{"first": 2, "danger": 1, "plain": 0})
	_, err = h.resume()
	var options []graph.Option
	for _, ic := range h.waits(err) {
		options = append(options, graph.Answer(ic.ID, nil))
	}
	out, err := h.resume(options...)
	if err != nil || out.A != "danger saw first" || out.B != "danger saw edited" || out.C != "plain" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHold_AnEditOfAStateThatHasChangedIsRejected(t *testing.T) {
	var c counter
	g := graph.New[notes]("race")
	g.Node("held", write(&c, "held", fieldA))
	g.Node("asks", ask(&c, "asks", fieldB))
	g.Edge(graph.Start, "held")
	g.Edge(graph.Start, "asks")
	g.Edge("held", graph.End)
	g.Edge("asks", graph.End)
	g.HoldBefore("held")
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	hold := open[slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return ic.Kind == "hold" })]
	_, err = h.answer(open, "asks?", "changed in between")
	h.waits(err)
	_, err = h.resume(graph.Answer(hold.ID, notes{B: "edited from the old state"}))
	wantErr(t, err, graph.ErrSuperseded)
	c.want(t, map[string]int{"held": 0})
}

// Regression: the state type of a graph that a node's own code runs is not known when the run is
// inspected. Its hold showed nothing, and an unedited answer emptied its state.
func TestHold_OfAGraphThatANodeRunsShowsItsStateInAnotherProcess(t *testing.T) {
	var c counter
	long := strings.Repeat("long ", 100) // it has a separate part
	inner := graph.New[notes]("inner")
	inner.Node("next", write(&c, "next", fieldA))
	inner.HoldBefore("next")
	inner.Edge(graph.Start, "next")
	inner.Edge("next", graph.End)
	innerFlow := compile(t, inner)
	h := newHarness(t, oneNode(func(ctx context.Context, _ notes) (notes, error) {
		return innerFlow.Run(ctx, notes{B: "short", C: long, N: 7, Log: []string{"begun"}})
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	seen, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := fermata.InfoAs[notes](seen.Interrupts[0])
	if d := cmp.Diff(open[0].Info, any(shown)); d != "" || err != nil {
		t.Fatalf("%v, (-asked +read)\n%s", err, d)
	}
	shown.D = "edited"
	out, err := h.resume(graph.Answer(open[0].ID, shown))
	if want := (notes{A: "next", B: "short", C: long, D: "edited", N: 7, Log: []string{"begun"}}); err != nil || cmp.Diff(want, out) != "" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// Regression: a non-struct state of such a graph was shown as a struct with one field, and became
// that when it was returned.
func TestHold_OfAGraphRunByANodeShowsANonStructState(t *testing.T) {
	type bag = map[string]any
	inner := graph.New[bag]("inner")
	inner.Node("next", func(_ context.Context, s bag) (bag, error) { return s, nil })
	inner.HoldBefore("next")
	inner.Edge(graph.Start, "next")
	inner.Edge("next", graph.End)
	innerFlow := compile(t, inner)
	var out bag
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (_ notes, err error) {
		out, err = innerFlow.Run(ctx, bag{"draft": "first"})
		return s, err
	}))
	if _, err := h.start(notes{}); len(h.waits(err)) != 1 {
		t.Fatal(err)
	}
	seen, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	hold := seen.Interrupts[0]
	if d := cmp.Diff(any(bag{"draft": "first"}), hold.Info); d != "" {
		t.Errorf("(-asked +read)\n%s", d)
	}
	_, err = h.resume(graph.Answer(hold.ID, hold.Info))
	if d := cmp.Diff(bag{"draft": "first"}, out); d != "" || err != nil {
		t.Errorf("%v, (-want +got)\n%s", err, d)
	}
}
