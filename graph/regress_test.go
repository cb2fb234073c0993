package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// explosive panics while it is encoded.
type explosive struct{ N int }

func (e explosive) MarshalJSON() ([]byte, error) {
	if e.N == 13 {
		panic("boom")
	}
	return json.Marshal(e.N)
}

func (e *explosive) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &e.N) }

func TestI17_APanicInAJSONMethodIsAnErrorOfTheRun(t *testing.T) {
	type state struct{ A, B explosive }
	// one runs here, two run in goroutines
	for _, nodes := range [][]string{{"spoils"}, {"spoils", "sibling"}} {
		g := graph.New[state]("panic")
		for _, name := range nodes {
			g.Node(name, func(_ context.Context, s state) (state, error) {
				if name == "spoils" {
					s.A.N = 13
				}
				return s, nil
			})
			g.Edge(graph.Start, name)
			g.Edge(name, graph.End)
		}
		h := newHarness(t, g)
		_, err := h.start(state{})
		if boom, ok := errors.AsType[*graph.PanicError](err); !ok || boom.Value != "boom" {
			t.Fatalf("got %v", err)
		}
	}
	var c counter
	h := newHarness(t, oneNode(ask(&c, "node", fieldA)))
	_, err := h.start(notes{})
	open := h.waits(err)
	_, err = h.resume(graph.WithStateModifier(func(fermata.Address, any) error { panic("boom") }))
	if _, ok := errors.AsType[*graph.PanicError](err); !ok {
		t.Fatalf("got %v", err)
	}
	if _, err := h.answer(open, "node?", "yes"); err != nil {
		t.Fatal(err)
	}
}

// Regression: a node that ends its goroutine, like a failed test assertion, left a run that was
// marked as running forever.
func TestI17_ANodeThatEndsItsGoroutineLeavesARunThatCanBeResumed(t *testing.T) {
	for _, inside := range []bool{false, true} {
		var c counter
		g := oneNode(func(_ context.Context, s notes) (notes, error) {
			if c.add("node"); c.of("node") == 1 {
				runtime.Goexit()
			}
			s.A = "done"
			return s, nil
		})
		if inside {
			inner := compile(t, g)
			g = graph.New[notes]("around")
			graph.Sub(g, "sub", inner, func(s notes) notes { return s }, func(_, in notes) notes { return in })
			g.Edge(graph.Start, "sub")
			g.Edge("sub", graph.End)
		}
		h := newHarness(t, g)
		var over sync.WaitGroup
		over.Go(func() { _, _ = h.start(notes{}) })
		over.Wait()
		saved, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
		if err != nil || saved.Status != graph.StatusFailed || !strings.Contains(saved.Error, "Goexit") {
			t.Errorf("got %+v, %v", saved, err)
		}
		if s, err := h.resume(); err != nil || s.A != "done" {
			t.Errorf("got %+v, %v", s, err)
		}
	}
}

// touchy is an answer whose validator panics.
type touchy struct{ Text string }

func (a touchy) Validate() error {
	if a.Text == "boom" {
		panic("boom")
	}
	return nil
}

var touching = fermata.NewKind[string, touchy]("test-touching")

// Regression: the caller got a panic without the interrupt id, and not that the interrupt is still
// open.
func TestI13_AnAnswerWhoseCheckPanicsIsRefusedLikeAnyOther(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, n notes) (notes, error) {
		a, err := touching.Ask(ctx, "?")
		n.A = a.Text
		return n, err
	}))
	_, err := h.start(notes{})
	id := h.waits(err)[0].ID
	for _, answer := range []any{touchy{"boom"}, json.RawMessage(`{"Text":"boom"}`)} {
		_, err := h.resume(graph.Answer(id, answer))
		bad, refused := errors.AsType[*fermata.AnswerError](err)
		boom, ok := errors.AsType[*graph.PanicError](err)
		if !refused || bad.ID != id || bad.Kind != "test-touching" || !ok || boom.Value != "boom" {
			t.Errorf("got %v", err)
		}
	}
	if s, err := h.resume(graph.Answer(id, touchy{"fine"})); err != nil || s.A != "fine" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// besideAHold is a graph with a held node and one that asks; the second has been answered.
func besideAHold(t *testing.T) (*harness[notes], *fermata.InterruptCtx) {
	var c counter
	g := graph.New[notes]("beside")
	g.Node("held", write(&c, "held", fieldA))
	g.Node("asks", ask(&c, "asks", fieldB))
	g.HoldBefore("held")
	for _, name := range []string{"held", "asks"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "asks?", "beta")
	return h, h.waits(err)[0]
}

func TestI17_AHoldWhoseEditMeetsAConflictStaysOpenWithTheNewestState(t *testing.T) {
	h, hold := besideAHold(t)
	modify := func(_ fermata.Address, state any) error { state.(*notes).B = "modified"; return nil }
	_, err := h.resume(graph.Answer(hold.ID, notes{B: "edited"}), graph.WithStateModifier(modify))
	again := h.waits(err)[0]
	if shown, _ := fermata.InfoAs[notes](again); !isAnswerError(err) || again.Supersedes != hold.ID || shown.B != "modified" {
		t.Fatalf("got %+v, %v", again, err)
	}
	out, err := h.resume(graph.Answer(again.ID, notes{B: "edited knowingly"}))
	if err != nil || out.A != "held" || out.B != "edited knowingly" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func isAnswerError(err error) bool { _, ok := errors.AsType[*fermata.AnswerError](err); return ok }

func TestHold_AModifierDoesNotMakeAnEditUndoOthersWork(t *testing.T) {
	h, hold := besideAHold(t)
	out, err := h.resume(graph.Answer(hold.ID, notes{B: "beta", N: 7}), graph.WithStateModifier(func(_ fermata.Address, state any) error {
		state.(*notes).C = "modified"
		return nil
	}))
	if err != nil || out.B != "beta" || out.C != "modified" || out.N != 7 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHold_OnlyChangedFieldsAreEdits(t *testing.T) {
	type state struct {
		At time.Time
		A  string
	}
	g := graph.New[state]("zone")
	g.Node("held", func(_ context.Context, s state) (state, error) { return s, nil })
	g.Node("asks", func(ctx context.Context, s state) (state, error) {
		_, err := question.Ask(ctx, "asks?")
		s.At = s.At.Add(time.Hour)
		return s, err
	})
	g.HoldBefore("held")
	for _, name := range []string{"held", "asks"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(state{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 5*3600+1800))})
	_, err = h.answer(h.waits(err), "asks?", "x")
	hold := h.waits(err)[0]
	shown, _ := fermata.InfoAs[state](hold)
	shown.A = "edited"
	if out, err := h.resume(graph.Answer(hold.ID, shown)); err != nil || out.A != "edited" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHold_JSONNullGoesOnWithoutAnEdit(t *testing.T) {
	var c counter
	g := heldGraph(&c)
	g.HoldBefore("danger")
	h := newHarness(t, g)
	_, err := h.start(notes{N: 3})
	out, err := h.resume(graph.Answer(h.waits(err)[0].ID, json.RawMessage("null")))
	if err != nil || out.N != 3 || out.B != "danger saw first" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

type tally struct {
	M map[string]int
	X string
}

// A merge function may modify the newest value in place; a task with an older base keeps its value.
func TestMerge_InPlaceChangeDoesNotReachAHeldState(t *testing.T) {
	g := graph.New[tally]("tally")
	for _, name := range []string{"a", "b", "c"} {
		g.Node(name, func(_ context.Context, s tally) (tally, error) {
			s.M = maps.Clone(s.M)
			s.M[name]++
			return s, nil
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	g.HoldAfter("b")
	graph.MergeField(g, "M", func(base, a, b map[string]int) (map[string]int, error) {
		for key := range b {
			a[key] += b[key] - base[key]
		}
		return a, nil
	})
	h := newHarness(t, g)
	_, err := h.start(tally{M: map[string]int{}})
	hold := h.waits(err)[0]
	shown, _ := fermata.InfoAs[tally](hold)
	shown.X = "edited"
	out, err := h.resume(graph.Answer(hold.ID, shown))
	if err != nil || !maps.Equal(out.M, map[string]int{"a": 1, "b": 1, "c": 1}) || out.X != "edited" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestMerge_AnEditAndAnUnmergedResultDoNotGetTheSameClock(t *testing.T) {
	build := func(route string) *graph.Graph[notes] {
		g := graph.New[notes]("clock")
		graph.MergeField(g, "Log", graph.Append[[]string])
		g.Node("a", func(_ context.Context, s notes) (notes, error) { s.Log = append(s.Log, "a"); return s, nil })
		g.Node("held", func(_ context.Context, s notes) (notes, error) { s.N++; return s, nil })
		g.Node("waits", func(ctx context.Context, s notes) (notes, error) {
			_, err := question.Ask(ctx, "waits?")
			return s, err
		})
		for _, name := range []string{"a", "held", "waits"} {
			g.Edge(graph.Start, name)
		}
		g.HoldBefore("held")
		g.Branch("a", func(notes) string { return route }, graph.End)
		g.Edge("held", graph.End)
		g.Edge("waits", graph.End)
		return g
	}
	h := newHarness(t, build("nowhere"))
	if _, err := h.start(notes{}); err == nil {
		t.Fatal("the route leads nowhere") // so a's result stays unmerged
	}
	h.flow = compile(t, build(graph.End))
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(snapshot.Interrupts, func(ic *fermata.InterruptCtx) bool { return ic.Kind == graph.KindHold })
	_, err = h.resume(graph.Answer(snapshot.Interrupts[i].ID, notes{Log: []string{"edited"}}))
	h.waits(err)
	snapshot, err = h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil || !slices.Equal(snapshot.State.Log, []string{"edited", "a"}) {
		t.Fatalf("got %v, %v", snapshot.State.Log, err)
	}
}

// money has pointer JSON methods.
type money struct{ cents int }

func (m *money) MarshalJSON() ([]byte, error) { return json.Marshal(m.cents) }

func (m *money) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &m.cents) }

func TestState_WithJSONAtThePointerIsKept(t *testing.T) {
	type state struct{ Price money }
	g := graph.New[state]("money")
	g.Node("ask", func(ctx context.Context, s state) (state, error) {
		_, err := question.Ask(ctx, "buy?")
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	g.HoldBefore("ask")
	h := newHarness(t, g)
	_, err := h.start(state{money{995}})
	_, err = h.resume(graph.Answer(h.waits(err)[0].ID, state{money{899}}))
	out, err := h.answer(h.waits(err), "buy?", "yes")
	if err != nil || out.Price.cents != 899 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestState_RawJSONMayHoldAnyEscape(t *testing.T) {
	type state struct{ Raw json.RawMessage }
	g := graph.New[state]("raw")
	g.Node("n", func(_ context.Context, s state) (state, error) {
		s.Raw = json.RawMessage(`{"x":"\ufffd"}`)
		return s, nil
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	if _, err := newHarness(t, g).start(state{}); err != nil {
		t.Fatal(err)
	}
}

func TestChanged_AResultThatWasNotMergedMigratesToo(t *testing.T) {
	type before struct {
		Old string
		N   int
	}
	type after struct {
		New string
		N   int
	}
	faulty := storetest.NewFaulty(memory.New())
	st := &watched{Checkpoints: faulty, t: t, part: "task node:a#1", text: []byte(`"finished"`), saved: make(chan struct{})}
	g1 := graph.New[before]("g")
	g1.Node("a", func(_ context.Context, s before) (before, error) { s.Old = "work of a"; return s, nil })
	g1.Node("b", func(_ context.Context, s before) (before, error) {
		st.wait(t)
		faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite)
		return s, errors.New("this error is not reported")
	})
	g2 := graph.New[after]("g")
	g2.Node("a", func(_ context.Context, s after) (after, error) { return s, errors.New("a runs again") })
	g2.Node("b", func(_ context.Context, s after) (after, error) { s.N++; return s, nil })
	for _, name := range []string{"a", "b"} {
		g1.Edge(graph.Start, name)
		g1.Edge(name, graph.End)
		g2.Edge(graph.Start, name)
		g2.Edge(name, graph.End)
	}
	g2.MigrateState(func(fields graph.Fields) error {
		fields["New"] = fields["Old"]
		delete(fields, "Old")
		return nil
	})
	_, err := compile(t, g1).Run(t.Context(), before{}, graph.WithStore(st), graph.WithRun("r"))
	wantErr(t, err, storetest.ErrCrashed)
	faulty.Restart()
	out, err := compile(t, g2).Resume(t.Context(), "r", graph.WithStore(faulty), graph.TakeOver())
	if err != nil || out.New != "work of a" || out.N != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestRun_AFailedBeginningLeavesTheIDFree(t *testing.T) {
	build := func(to string) *graph.Graph[notes] {
		g := graph.New[notes]("begin")
		g.Node("a", pass)
		g.Branch(graph.Start, func(notes) string { return to }, "a")
		g.Edge("a", graph.End)
		return g
	}
	h := newHarness(t, build("nowhere"))
	if _, err := h.start(notes{}); err == nil {
		t.Fatal("want an error")
	}
	h.flow = compile(t, build("a"))
	if _, err := h.start(notes{}); err != nil {
		t.Fatal(err)
	}
}

func TestResume_AnswersDoNotReachRunsThatANodeResumes(t *testing.T) {
	var c counter
	child := newHarness(t, oneNode(ask(&c, "child", fieldA)))
	_, err := child.start(notes{})
	id := child.waits(err)[0].ID
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "forward?")
		if err != nil {
			return s, err
		}
		return child.flow.Resume(ctx, child.run, graph.WithStore(child.st), graph.Answer(id, answer))
	}))
	_, err = h.start(notes{})
	ctx := fermata.ResumeWithData(t.Context(), h.waits(err)[0].ID, "yes")
	out, err := h.flow.Resume(ctx, h.run, graph.WithStore(h.st))
	if err != nil || out.A != "yes" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestI15_NothingIsLeftOfRoundsThatAreOver(t *testing.T) {
	var c counter
	inner := compile(t, asking(&c))
	g := graph.New[notes]("rounds")
	g.Node("head", func(_ context.Context, s notes) (notes, error) { s.N++; return s, nil })
	g.Node("count", func(_ context.Context, s notes) (notes, error) { s.Log = append(s.Log, "c"); return s, nil })
	graph.Sub(g, "sub", inner, func(notes) innerState { return innerState{In: "x"} }, func(s notes, _ innerState) notes { s.Log = append(s.Log, "s"); return s })
	graph.MergeField(g, "Log", graph.Append[[]string])
	g.Node("join", func(_ context.Context, s notes) (notes, error) { s.Log = nil; return s, nil })
	g.Edge(graph.Start, "head")
	for _, name := range []string{"count", "sub"} {
		g.Edge("head", name)
		g.Edge(name, "join")
	}
	g.Branch("join", func(s notes) string {
		if s.N < 30 {
			return "head"
		}
		return graph.End
	}, "head", graph.End)
	for _, options := range [][]graph.Option{nil, {graph.SaveOnWait()}} {
		h := newHarness(t, g)
		_, err := h.start(notes{}, options...)
		for range 30 {
			_, err = h.resume(append(options, graph.Answer(h.waits(err)[0].ID, "go"))...)
		}
		if err != nil {
			t.Fatal(err)
		}
		for part := range h.parts() {
			if part != "run" && part != "frame " && !strings.HasPrefix(part, "interrupt ") {
				t.Errorf("%q is left", part)
			}
		}
	}
}

func TestLoad_AMissingTaskOrInterruptIsNoticed(t *testing.T) {
	var c counter
	g := graph.New[notes]("two")
	g.Node("a", ask(&c, "a", fieldA))
	g.Node("b", ask(&c, "b", fieldB))
	for _, name := range []string{"a", "b"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	whole := h.parts()
	for part := range whole {
		h.st = memory.New()
		rest := maps.Clone(whole)
		delete(rest, part)
		if _, err := h.st.Save(t.Context(), storeKey(h.run), 0, put(rest)); err != nil {
			t.Fatal(err)
		}
		_, err := h.answer(open, "a?", "x")
		if !errors.Is(err, graph.ErrCorrupt) && !errors.Is(err, graph.ErrUnknownInterrupt) {
			t.Errorf("without %q: %v", part, err)
		}
	}
	c.want(t, map[string]int{"a": 1, "b": 1})
}

// Regression: a node after an inner loop ran next to it when the outer loop was also about to
// repeat: the nodes of the outer loop were removed from the nodes that the inner one still led to.
func TestLoop_InnerAndOuterGoRoundAtOnce(t *testing.T) {
	type state struct {
		Log          []string
		Inner, Outer int
	}
	g := graph.New[state]("loops")
	graph.MergeField(g, "Log", graph.Append[[]string])
	note := func(name string) {
		g.Node(name, func(_ context.Context, s state) (state, error) {
			s.Log = append(s.Log, name)
			switch name {
			case "inner":
				s.Inner++
			case "outer":
				s.Outer++
			}
			return s, nil
		})
	}
	for _, name := range []string{"start", "right", "left", "inner", "outer", "sink"} {
		note(name)
	}
	g.Edge(graph.Start, "start")
	g.Edge("start", "left")
	g.Edge("start", "right")
	g.Edge("left", "outer")
	g.Edge("right", "inner")
	g.Edge("right", "sink")
	g.Branch("inner", func(s state) string {
		if s.Inner == 1 {
			return "right" // again
		}
		return "sink"
	}, "right", "sink")
	g.Branch("outer", func(s state) string {
		if s.Outer == 1 {
			return "start" // again
		}
		return "sink"
	}, "start", "sink")
	// it is also a part of the outer loop
	g.Branch("sink", func(state) string { return graph.End }, "start", graph.End)
	out, err := compile(t, g).Run(t.Context(), state{})
	if err != nil {
		t.Fatal(err)
	}
	before := out.Log[:slices.Index(out.Log, "sink")]
	if n := strings.Count(strings.Join(before, " "), "inner"); n != 2 {
		t.Errorf("the sink ran after %d iterations of the inner loop: %q", n, out.Log)
	}
}

// Regression: a node may execute separate runs in a store. If one of these waited, the outer run
// was reported as waiting, with interrupts that it did not have.
func TestI17_ARunWhoseNodeRanAnotherOneThatWaitsHasFailed(t *testing.T) {
	st := memory.New()
	single := func(name string, node fn) *graph.Flow[notes] {
		g := graph.New[notes](name)
		g.Node("only", node)
		g.Edge(graph.Start, "only")
		g.Edge("only", graph.End)
		return compile(t, g)
	}
	inner := single("inner", ask(new(counter), "?", fieldA))
	outer := single("outer", func(ctx context.Context, s notes) (notes, error) {
		return inner.Run(ctx, s, graph.WithStore(st), graph.WithRun("other"))
	})
	_, err := outer.Run(t.Context(), notes{}, graph.WithStore(st), graph.WithRun("this"))
	if _, waits := fermata.ExtractInterruptInfo(err); waits || err == nil || !strings.Contains(err.Error(), "another run other waits") {
		t.Errorf("got %v", err)
	}
	if now, err := outer.Inspect(t.Context(), "this", graph.WithStore(st)); err != nil || now.Status != graph.StatusFailed {
		t.Errorf("got %+v, %v", now, err)
	}
}
