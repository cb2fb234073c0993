package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// besideGraph holds before (or after) "drop", next to "asks", whose answer changes what "drop"
// drops.
func besideGraph(c *counter, after bool) *graph.Graph[notes] {
	g := graph.New[notes]("beside")
	g.Node("asks", ask(c, "asks", fieldA))
	g.Node("drop", func(_ context.Context, s notes) (notes, error) {
		c.add("drop")
		s.B = "dropped " + s.A
		return s, nil
	})
	g.Node("last", func(_ context.Context, s notes) (notes, error) {
		s.C = "last saw " + s.A
		return s, nil
	})
	g.Edge(graph.Start, "asks")
	g.Edge(graph.Start, "drop")
	g.Edge("asks", graph.End)
	g.Edge("drop", "last")
	g.Edge("last", graph.End)
	if after {
		g.HoldAfter("drop")
	} else {
		g.HoldBefore("drop")
	}
	return g
}

func holdOf(t testing.TB, open []*fermata.InterruptCtx) *fermata.InterruptCtx {
	t.Helper()
	i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return ic.Kind == graph.KindHold })
	if i < 0 {
		t.Fatalf("no hold is open: %v", addresses(open))
	}
	return open[i]
}

func shownA(t testing.TB, ic *fermata.InterruptCtx) string {
	t.Helper()
	state, err := fermata.InfoAs[notes](ic)
	if err != nil {
		t.Fatal(err)
	}
	return state.A
}

func wantSuperseded(t testing.TB, before, now *fermata.InterruptCtx) {
	t.Helper()
	want := []fermata.Change{{Pointer: "/A", Before: []byte(`"tmp"`), After: []byte(`"users"`)}}
	if now.ID == before.ID || now.Supersedes != before.ID || cmp.Diff(want, now.Changes) != "" {
		t.Errorf("got id %s (before %s), supersedes %q, changes %s", now.ID, before.ID, now.Supersedes, now.Changes)
	}
	if shownA(t, before) != "tmp" || shownA(t, now) != "users" {
		t.Errorf("showed %q, now %q", shownA(t, before), shownA(t, now))
	}
}

func TestI6_AHoldWhoseStateChangedIsAskedAgainWithTheDifference(t *testing.T) {
	for _, after := range []bool{false, true} {
		var c counter
		h := newHarness(t, besideGraph(&c, after))
		_, err := h.start(notes{A: "tmp"})
		open := h.waits(err)
		before := holdOf(t, open)
		_, err = h.answer(open, "asks?", "users")
		now := holdOf(t, h.waits(err))
		wantSuperseded(t, before, now)
		// another process sees the same
		seen, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
		if err != nil {
			t.Fatal(err)
		}
		stored := holdOf(t, seen.Interrupts)
		if stored.ID != now.ID || stored.Supersedes != before.ID || cmp.Diff(now.Changes, stored.Changes) != "" {
			t.Errorf("inspected: %+v, want %+v", stored, now)
		}
		version := h.version()
		_, err = h.resume(graph.Answer(before.ID, nil))
		wantErr(t, err, graph.ErrSuperseded)
		if h.version() != version {
			t.Error("an answer to the old version changed the run")
		}
		out, err := h.resume(graph.Answer(now.ID, nil))
		if err != nil || out.C != "last saw users" {
			t.Errorf("got %+v, %v", out, err)
		}
		c.want(t, map[string]int{"drop": 1})
	}
}

func TestI6_AHoldWhoseStateIsTheSameKeepsItsID(t *testing.T) {
	var c counter
	h := newHarness(t, besideGraph(&c, false))
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	_, err = h.answer(open, "asks?", "tmp")
	if now := holdOf(t, h.waits(err)); now.ID != holdOf(t, open).ID || now.Supersedes != "" {
		t.Errorf("got %+v", now)
	}
}

// Both are answered in one call: the person who released the hold has not seen the other answer,
// and the node gets the state that was shown.
func TestI6_AHoldReleasedTogetherWithAnAnswerRunsWithWhatWasShown(t *testing.T) {
	var c counter
	h := newHarness(t, besideGraph(&c, false))
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	out, err := h.resume(graph.Answer(find(t, open, "asks?").ID, "users"), graph.Answer(holdOf(t, open).ID, nil))
	if err != nil || out.B != "dropped tmp" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// twoHolds holds before two parallel nodes.
func twoHolds() *graph.Graph[notes] {
	g := graph.New[notes]("two")
	g.Node("a", func(_ context.Context, s notes) (notes, error) { s.C = "a saw " + s.A + s.B; return s, nil })
	g.Node("b", func(_ context.Context, s notes) (notes, error) { s.D = "b saw " + s.A + s.B; return s, nil })
	for _, name := range []string{"a", "b"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	g.HoldBefore("a", "b")
	return g
}

func holdAt(t testing.TB, open []*fermata.InterruptCtx, node string) *fermata.InterruptCtx {
	t.Helper()
	i := slices.IndexFunc(open, func(ic *fermata.InterruptCtx) bool { return ic.Address[len(ic.Address)-1].SubID == node })
	if i < 0 {
		t.Fatalf("no hold at %s is open: %v", node, addresses(open))
	}
	return open[i]
}

func TestI6_AnEditOfOneHoldReopensTheOtherThatWasEditedWithIt(t *testing.T) {
	h := newHarness(t, twoHolds())
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	a, b := holdAt(t, open, "a"), holdAt(t, open, "b")
	_, err = h.resume(graph.Answer(a.ID, notes{A: "users"}), graph.Answer(b.ID, notes{A: "tmp", B: "!"}))
	now := h.waits(err)
	if again := holdAt(t, now, "b"); again.ID == b.ID || again.Supersedes != b.ID || shownA(t, again) != "users" {
		t.Errorf("got %+v", again)
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || bad.ID != b.ID || !errors.Is(bad, graph.ErrSuperseded) {
		t.Errorf("got %v", err)
	}
	out, err := h.resume(graph.Answer(holdAt(t, now, "b").ID, nil))
	if err != nil || out.C != "a saw users" || out.D != "b saw users" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestI6_APlainReleaseNextToAnEditRunsWithWhatWasShown(t *testing.T) {
	h := newHarness(t, twoHolds())
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	out, err := h.resume(graph.Answer(holdAt(t, open, "a").ID, notes{A: "users"}), graph.Answer(holdAt(t, open, "b").ID, nil))
	if err != nil || out.C != "a saw users" || out.D != "b saw tmp" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestI6_AStateModifierReopensAHoldThatIsNotAnswered(t *testing.T) {
	h := newHarness(t, twoHolds())
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	_, err = h.resume(graph.WithStateModifier(func(_ fermata.Address, state any) error { state.(*notes).A = "users"; return nil }))
	for _, node := range []string{"a", "b"} {
		wantSuperseded(t, holdAt(t, open, node), holdAt(t, h.waits(err), node))
	}
}

func TestI6_AHoldInASubgraphAndInAFanOutIsAskedAgain(t *testing.T) {
	var c counter
	inner := compile(t, besideGraph(&c, false))
	forms := map[string]func(g *graph.Graph[notes]){
		"sub": func(g *graph.Graph[notes]) {
			graph.Sub(g, "n", inner, func(s notes) notes { return s }, func(_, in notes) notes { return in })
		},
		"each": func(g *graph.Graph[notes]) {
			graph.EachFlow(g, "n", func(s notes) []notes { return []notes{s} }, inner, func(_ notes, all []notes) notes { return all[0] })
		},
		"own code": func(g *graph.Graph[notes]) {
			g.Node("n", func(ctx context.Context, s notes) (notes, error) { return inner.Run(ctx, s) })
		},
	}
	for name, add := range forms {
		t.Run(name, func(t *testing.T) {
			g := graph.New[notes]("outer")
			add(g)
			g.Edge(graph.Start, "n")
			g.Edge("n", graph.End)
			h := newHarness(t, g)
			_, err := h.start(notes{A: "tmp"})
			open := h.waits(err)
			_, err = h.answer(open, "asks?", "users")
			now := holdOf(t, h.waits(err))
			wantSuperseded(t, holdOf(t, open), now)
			_, err = h.resume(graph.Answer(holdOf(t, open).ID, nil))
			wantErr(t, err, graph.ErrSuperseded)
			if out, err := h.resume(graph.Answer(now.ID, nil)); err != nil || out.B != "dropped users" {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
}

// Two parts of a node interrupt; the second words its question by the answer to the first.
func TestI6_AnInterruptThatShowsSomethingElseGetsANewID(t *testing.T) {
	part := func(ctx context.Context, id, asks string) (string, error) {
		ctx = fermata.AppendAddressSegment(ctx, "part", id)
		if target, ok, answer := fermata.GetResumeContext[string](ctx); target && ok {
			return answer, nil
		}
		return "", fermata.Interrupt(ctx, asks)
	}
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		first, errFirst := part(ctx, "1", "table?")
		asks := "drop tmp?"
		if first != "" {
			asks = "drop " + first + "?"
		}
		second, errSecond := part(ctx, "2", asks)
		s.A, s.B = first, second
		return s, errors.Join(errFirst, errSecond)
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	old := find(t, open, "drop tmp?")
	_, err = h.answer(open, "table?", "users")
	now := find(t, h.waits(err), "drop users?")
	if now.ID == old.ID || now.Supersedes != old.ID || len(now.Changes) != 1 {
		t.Errorf("got %+v, before %+v", now, old)
	}
	_, err = h.resume(graph.Answer(old.ID, "yes"))
	wantErr(t, err, graph.ErrSuperseded)
	out, err := h.resume(graph.Answer(now.ID, "yes"))
	if err != nil || out.A != "users" || out.B != "yes" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestI6_AChangedQuestionNamesTheOneItReplaces(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "drop "+s.A+"?")
		s.B = answer
		return s, err
	}))
	_, err := h.start(notes{A: "tmp"})
	open := h.waits(err)
	_, err = h.resume(graph.Answer(open[0].ID, "yes"), graph.WithStateModifier(func(_ fermata.Address, state any) error { state.(*notes).A = "users"; return nil }))
	now := h.waits(err)
	if len(now) != 1 || now[0].Supersedes != open[0].ID || len(now[0].Changes) != 1 {
		t.Errorf("got %+v", now[0])
	}
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || bad.ID != open[0].ID {
		t.Errorf("the unused answer is not reported: %v", err)
	}
	_, err = h.resume(graph.Answer(open[0].ID, "yes"))
	wantErr(t, err, graph.ErrSuperseded)
}
