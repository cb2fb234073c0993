package graph_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type everything struct {
	Left, Right string
	Work        string
	Paid        string
	Items       []string `json:"items"`
	Plain       string   `json:"plain,omitempty"`
}

// everythingGraph contains everything that can be in a checkpoint.
func everythingGraph(t testing.TB, c *counter) *graph.Graph[everything] {
	g := graph.New[everything]("everything")
	sub := compile(t, asking(c))
	graph.Sub(g, "left", sub, func(everything) innerState { return innerState{In: "left"} }, func(s everything, r innerState) everything { s.Left = r.Answer; return s })
	g.Node("work", func(ctx context.Context, s everything) (everything, error) {
		done, err := fermata.Do(ctx, "once", func(context.Context) (string, error) { c.add("once"); return "done", nil })
		if err != nil {
			return s, err
		}
		answer, err := question.Ask(ctx, "work?")
		s.Work = done + answer
		return s, err
	})
	g.Node("pay", func(ctx context.Context, s everything) (everything, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[int]{Name: "pay", Args: 7})
		if err != nil {
			return s, err
		}
		s.Paid, err = fermata.Effect(ctx, ok, func(_ context.Context, _ int, key string) (string, error) { c.add("paid"); return key, nil })
		if err != nil {
			return s, err
		}
		_, err = question.Ask(ctx, "paid, go on?")
		return s, err
	})
	graph.Each(g, "each", func(everything) []string { return []string{"a", "b"} },
		func(ctx context.Context, item string) (string, error) {
			if item == "a" {
				c.add("item a")
				return "A", nil
			}
			return question.Ask(ctx, "item b?")
		},
		func(s everything, r []string) everything { s.Items = r; return s })
	g.Node("stateful", func(ctx context.Context, s everything) (everything, error) {
		if target, _, data := fermata.GetResumeContext[string](ctx); target {
			_, _, kept := fermata.GetInterruptState[string](ctx)
			s.Right = kept + data
			return s, nil
		}
		return s, fermata.StatefulInterrupt(ctx, "stateful?", "kept ")
	})
	g.Node("held", func(_ context.Context, s everything) (everything, error) { s.Plain = "held"; return s, nil })
	g.HoldBefore("held")
	for _, name := range []string{"left", "work", "pay", "each", "stateful", "held"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return g
}

// park runs everythingGraph until all of it waits.
func park(t *testing.T, c *counter) *harness[everything] {
	h := newHarness(t, everythingGraph(t, c))
	_, err := h.start(everything{})
	open := h.waits(err)
	i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return ic.Kind == fermata.Approval.Name() })
	_, err = h.resume(graph.Answer(open[i].ID, fermata.Decision{Verb: fermata.VerbApprove}))
	if open := h.waits(err); len(open) != 6 {
		t.Fatalf("got %v", addresses(open))
	}
	return h
}

const fixture = "testdata/checkpoints/format2.json"

// TestFormat_ACheckpointOfTheSecondFormatStillResumes reads a checkpoint of an earlier build. The
// file is never rewritten; a new format gets an additional file.
func TestFormat_ACheckpointOfTheSecondFormatStillResumes(t *testing.T) {
	if _, err := os.Stat(fixture); *golden.Update && os.IsNotExist(err) {
		var c counter
		h := park(t, &c)
		saved, err := h.st.Load(t.Context(), storeKey(h.run))
		if err != nil {
			t.Fatal(err)
		}
		parts := make(map[string]json.RawMessage)
		for name, data := range saved.Parts {
			parts[name] = data
		}
		data, err := json.MarshalIndent(parts, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, fixture, append(data, '\n'))
	}
	var parts map[string]json.RawMessage
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		t.Fatal(err)
	}
	var delta store.Delta
	for name, data := range parts {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: data})
	}
	var c counter
	h := newHarness(t, everythingGraph(t, &c))
	h.st = memory.New()
	if _, err := h.st.Save(t.Context(), storeKey(h.run), 0, delta); err != nil {
		t.Fatal(err)
	}
	if err := h.flow.Check(t.Context(), h.run, graph.WithStore(h.st)); err != nil {
		t.Fatal(err)
	}
	_, err = h.resume()
	open := h.waits(err)
	var answers []graph.Option
	for _, ic := range open {
		switch ic.Kind {
		case "hold":
			answers = append(answers, graph.Answer(ic.ID, nil))
		default:
			answers = append(answers, graph.Answer(ic.ID, "yes"))
		}
	}
	out, err := h.resume(answers...)
	if err != nil {
		t.Fatal(err)
	}
	if out.Left != "yes!" || out.Right != "kept yes" || out.Work != "doneyes" || out.Paid == "" || !slices.Equal(out.Items, []string{"A", "yes"}) || out.Plain != "held" {
		t.Fatalf("got %+v", out)
	}
	c.want(t, map[string]int{"once": 0, "paid": 0, "item a": 0, "prepare left": 0})
}

// TestFormat_IsReadable shows the format that this build writes: changes must be intentional.
func TestFormat_IsReadable(t *testing.T) {
	var c counter
	h := newHarness(t, everythingGraph(t, &c))
	_, err := h.start(everything{})
	h.waits(err)
	var names []string
	for name, data := range h.parts() {
		if !json.Valid(data) {
			t.Errorf("part %q is not JSON: %s", name, data)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	text, err := json.MarshalIndent(names, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/checkpoints/parts.json", append(text, '\n'))
}

func TestDraw_MermaidAndLayout(t *testing.T) {
	var c counter
	inner := asking(&c)
	inner.HoldAfter("prepare")
	g := graph.New[notes](`odd "name" <graph>`)
	g.Node("draft", write(&c, "draft", fieldA))
	g.Node("human review", ask(&c, "review", fieldB))
	graph.Sub(g, "sub", compile(t, inner), func(notes) innerState { return innerState{In: "x"} }, func(s notes, _ innerState) notes { return s })
	graph.Each(g, "each", func(notes) []string { return nil }, func(context.Context, string) (string, error) { return "", nil }, func(s notes, _ []string) notes { return s })
	g.HoldBefore("draft")
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "human review")
	g.Edge("draft", "sub")
	g.Branch("human review", func(s notes) string { return graph.End }, "each", graph.End)
	g.Edge("sub", "each")
	g.Branch("each", func(s notes) string { return graph.End }, "draft", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	_, err = h.resume(graph.Answer(h.waits(err)[0].ID, nil))
	drawing := h.flow.Draw(h.waits(err)...)
	golden.Compare(t, "testdata/drawing.mmd", drawing.Mermaid())
	data, err := json.MarshalIndent(drawing, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/drawing.json", append(data, '\n'))
	waiting := map[string]bool{}
	for _, n := range drawing.Nodes {
		waiting[n.ID] = n.Waiting
		if n.X < 0 || n.Y < 0 || n.X+n.Width > drawing.Width || n.Y+n.Height > drawing.Height {
			t.Errorf("%s is outside the drawing", n.ID)
		}
	}
	if !waiting["human review"] || !waiting["sub"] || waiting["draft"] || waiting["each"] {
		t.Errorf("got %v", waiting)
	}
}
