package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// besides is a graph of two parallel nodes.
func besides[S any](first, second graph.Func[S], migrate ...func(graph.Fields) error) *graph.Graph[S] {
	g := graph.New[S]("besides")
	g.Node("first", first)
	g.Node("second", second)
	for _, name := range []string{"first", "second"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	for _, m := range migrate {
		g.MigrateState(m)
	}
	return g
}

var errDown = errors.New("down")

func fails[S any](_ context.Context, s S) (S, error) { return s, errDown }

type (
	lean  struct{ A, B string }
	ample struct {
		A, B string
		Note string // new
	}
)

// crashBeside leaves a run in which the first of two nodes has finished, and the process died in
// the second.
func crashBeside(t *testing.T) store.Checkpoints {
	st := memory.New()
	faulty := storetest.NewFaulty(st)
	watch := &watched{Checkpoints: faulty, t: t, part: "task node:first#1", text: []byte(`"finished"`), saved: make(chan struct{})}
	h := newHarness(t, besides(func(_ context.Context, s lean) (lean, error) {
		s.A = "done once"
		return s, nil
	}, func(_ context.Context, s lean) (lean, error) {
		watch.wait(t)
		faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite)
		return s, errDown
	}))
	h.st = watch
	_, err := h.start(lean{})
	wantErr(t, err, storetest.ErrCrashed)
	return st
}

// Regression: a program with a changed state type removed the saved result and rewrote it only
// after the step. A save in between, such as that of a Do, followed by a crash left an unreadable
// run.
func TestI14_AResultThatWaitsForItsSiblingsSurvivesADeployAndACrash(t *testing.T) {
	for name, migrate := range map[string][]func(graph.Fields) error{
		"read as it is": nil,
		"migrated":      {func(graph.Fields) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			faulty := storetest.NewFaulty(crashBeside(t))
			var c counter
			h := newHarness(t, besides(func(_ context.Context, s ample) (ample, error) {
				c.add("first")
				return s, nil
			}, func(ctx context.Context, s ample) (ample, error) {
				var err error
				s.B, err = fermata.Do(ctx, "b", func(context.Context) (string, error) { return "too", nil })
				return s, err
			}, migrate...))
			h.st = faulty
			// the first sets the status to running, the second is that of Do
			faulty.CrashSave(2, storetest.AfterWrite)
			_, err := h.resume(graph.TakeOver())
			wantErr(t, err, storetest.ErrCrashed)
			faulty.Restart()

			out, err := h.resume(graph.TakeOver())

			if err != nil || out.A != "done once" || out.B != "too" {
				t.Errorf("got %+v, %v", out, err)
			}
			c.want(t, map[string]int{"first": 0})
		})
	}
}

type (
	loose  struct{ A any }
	strict struct{ A int }
)

// Regression: Check did not find a value that only a waiting node has, so Resume failed after the
// answer was saved.
func TestCheck_FindsIncompatibleStateOfWaitingNode(t *testing.T) {
	was := besides(func(ctx context.Context, s loose) (loose, error) {
		_, err := question.Ask(ctx, "ok?")
		return s, err
	}, func(_ context.Context, s loose) (loose, error) { s.A = 7; return s, nil })
	for text, is := range map[string]*graph.Graph[strict]{
		`field "A"`: besides(fails[strict], fails[strict]),
		"migrating": besides(fails[strict], fails[strict], func(fields graph.Fields) error {
			return json.Unmarshal(fields["A"], new(int))
		}),
	} {
		t.Run(text, func(t *testing.T) {
			h := newHarness(t, was)
			_, err := h.start(loose{A: "seven"})
			goesBack(t, h, &harness[strict]{flow: compile(t, is)}, text, err)
		})
		t.Run(text+" inside", func(t *testing.T) {
			h := newHarness(t, inside(t, was, loose{A: "seven"}))
			_, err := h.start("")
			goesBack(t, h, &harness[string]{flow: compile(t, inside(t, is, strict{}))}, text, err)
		})
	}
}

// inside is a graph with another one in its only node.
func inside[S any](t testing.TB, inner *graph.Graph[S], input S) *graph.Graph[string] {
	g := graph.New[string]("outer")
	graph.Sub(g, "n", compile(t, inner), func(string) S { return input }, func(out string, _ S) string { return out })
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	return g
}

// goesBack checks that a later program leaves a run unchanged that it cannot resume, so that the
// earlier one can.
func goesBack[S, T any](t *testing.T, h *harness[S], later *harness[T], text string, err error) {
	t.Helper()
	open, before := h.waits(err), h.version()
	later.t, later.st, later.run = t, h.st, h.run
	later.refuses(open, text)
	if h.version() != before {
		t.Error("the run was changed")
	}
	if _, err := h.answer(open, "ok?", "yes"); err != nil {
		t.Errorf("brought back: %v", err)
	}
}

// refuses checks that this program does not resume the run, and that Check reports it.
func (h *harness[S]) refuses(open []*fermata.InterruptCtx, text string) {
	h.t.Helper()
	for what, err := range map[string]error{
		"Check":  h.flow.Check(h.t.Context(), h.run, graph.WithStore(h.st)),
		"Resume": second(h.answer(open, "ok?", "yes")),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			h.t.Errorf("%s: got %v", what, err)
		}
	}
}

// The same for a result that is not merged yet.
func TestCheck_FindsAResultInAFieldThatIsGone(t *testing.T) {
	st := crashBeside(t)
	h := newHarness(t, besides(fails[struct{ B string }], fails[struct{ B string }]))
	h.st = st
	before := h.version()
	for what, err := range map[string]error{
		"Check":  h.flow.Check(t.Context(), h.run, graph.WithStore(st)),
		"Resume": second(h.resume(graph.TakeOver())),
	} {
		if changed, ok := errors.AsType[*graph.ProgramChangedError](err); !ok || !strings.Contains(changed.Error(), `field "A"`) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if h.version() != before {
		t.Error("the run was changed")
	}
}

// Regression: after a rollback and a second deployment, the changes of an inner graph in between
// were not checked, because the outer one was last saved by the same program.
func TestCheck_ChecksInnerGraphsSavedByAnotherProgram(t *testing.T) {
	var c counter
	outer := func(nodes ...string) *graph.Flow[notes] {
		inner := graph.New[notes]("inner")
		last := graph.Start
		for _, name := range nodes {
			inner.Node(name, ask(&c, name, fieldA))
			inner.Edge(last, name)
			last = name
		}
		inner.Edge(last, graph.End)
		g := graph.New[notes]("outer")
		graph.Sub(g, "n", compile(t, inner), func(s notes) notes { return s }, func(_, s notes) notes { return s })
		g.Node("beside", ask(&c, "beside", fieldB))
		for _, name := range []string{"n", "beside"} {
			g.Edge(graph.Start, name)
			g.Edge(name, graph.End)
		}
		return compile(t, g)
	}
	was, is := outer("one", "ok"), outer("one")
	h := &harness[notes]{t: t, flow: was, st: memory.New(), run: "run"}
	_, err := h.start(notes{})
	open := h.waits(err)
	h.flow = is
	_, err = h.answer(open, "beside?", "yes")
	open = h.waits(err)
	h.flow = was
	_, err = h.answer(open, "one?", "yes")
	open, before := h.waits(err), h.version()

	h.flow = is
	h.refuses(open, "node:ok")

	if h.version() != before {
		t.Error("the run was changed")
	}
}

// stopping is a graph that is stopped after its first node.
func stopping(t testing.TB, c *counter, build func(g *graph.Graph[notes])) (*graph.Graph[notes], context.Context) {
	ctx, stop := graph.WithStop(t.Context())
	g := graph.New[notes]("stopping")
	g.Node("a", func(_ context.Context, s notes) (notes, error) {
		stop(graph.NoLimit)
		return s, nil
	})
	g.Node("b", write(c, "b", fieldA))
	g.Edge(graph.Start, "a")
	g.Edge("a", "b")
	g.Edge("b", graph.End)
	if build != nil {
		build(g)
	}
	return g, ctx
}

// Regression: the node was about to be entered when the run was stopped for the deployment, and was
// entered after it without the new hold.
func TestI5_AHoldThatADeployBringsHoldsARunThatWasStoppedBeforeIt(t *testing.T) {
	var c counter
	was, ctx := stopping(t, &c, nil)
	h := newHarness(t, was)
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	wantErr(t, err, graph.ErrStopped)
	is, _ := stopping(t, &c, func(g *graph.Graph[notes]) { g.HoldBefore("b") })
	h.flow = compile(t, is)

	_, err = h.resume()

	open := h.waits(err)
	if len(open) != 1 || open[0].Kind != graph.KindHold || c.of("b") != 0 {
		t.Fatalf("waits at %v, b ran %d times", addresses(open), c.of("b"))
	}
	if out, err := h.resume(graph.Answer(open[0].ID, nil)); err != nil || out.A != "b" {
		t.Errorf("released: got %+v, %v", out, err)
	}
}

// Regression: a stop inside a node counted as a failure of the node, so that a failed effect was
// repeated next to the alternative that the node had chosen.
func TestI14_StopInsideANodeDoesNotRetryAFailedEffect(t *testing.T) {
	var c counter
	g, ctx := stopping(t, &c, nil)
	inner := compile(t, g)
	pay := func(ctx context.Context, card string) error {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "pay", Args: card, Policy: fermata.PolicyFunc(
			func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
				return fermata.Ruling{Verdict: fermata.Allow}, nil
			})})
		if err != nil {
			return err
		}
		_, err = fermata.Effect(ctx, yes, func(context.Context, string, string) (string, error) {
			if c.add(card); card == "mine" && c.of(card) == 1 {
				return "", fermata.NotDone(errDown)
			}
			return "", nil
		})
		return err
	}
	outer := graph.New[notes]("outer")
	outer.Node("n", func(ctx context.Context, s notes) (notes, error) {
		if pay(ctx, "mine") != nil {
			if err := pay(ctx, "yours"); err != nil {
				return s, err
			}
		}
		return inner.Run(ctx, s)
	})
	outer.Edge(graph.Start, "n")
	outer.Edge("n", graph.End)
	h := newHarness(t, outer)
	_, err := h.flow.Run(ctx, notes{}, graph.WithStore(h.st), graph.WithRun(h.run))
	wantErr(t, err, graph.ErrStopped)

	_, err = h.resume()

	if err != nil {
		t.Fatal(err)
	}
	c.want(t, map[string]int{"mine": 1, "yours": 1, "b": 1})
}

// eachOf processes two items with results of some type: the first finishes at once, the second
// asks.
func eachOf[R any](result R) *graph.Graph[notes] {
	g := graph.New[notes]("each-of")
	graph.Each(g, "n", func(notes) []int { return []int{0, 1} }, func(ctx context.Context, i int) (R, error) {
		if i == 0 {
			return result, nil
		}
		_, err := question.Ask(ctx, "ok?")
		return result, err
	}, func(s notes, all []R) notes { s.N = len(all); return s })
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	return g
}

// Regression: the later program could not decode the result of a finished item; the other item ran
// anyway, and its result could not be decoded by the earlier program. Neither could continue.
func TestI17_AListWithResultsOfAnotherTypeIsLeftToTheProgramThatBeganIt(t *testing.T) {
	same := func(notes) []notes { return []notes{{}, {}} }
	inner := graph.New[notes]("inner")
	inner.Node("n", write(new(counter), "n", fieldA))
	inner.Edge(graph.Start, "n")
	inner.Edge("n", graph.End)
	flows := graph.New[notes]("each-of")
	graph.EachFlow(flows, "n", same, compile(t, inner), func(s notes, all []notes) notes { s.N = len(all); return s })
	flows.Edge(graph.Start, "n")
	flows.Edge("n", graph.End)
	for name, later := range map[string]*graph.Graph[notes]{"another type": eachOf(12), "graphs": flows} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, eachOf("done"))
			_, err := h.start(notes{})
			goesBack(t, h, &harness[notes]{flow: compile(t, later)}, "item:0", err)
		})
	}
}
