package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// oneNode is a graph with one function.
func oneNode(f fn) *graph.Graph[notes] {
	g := graph.New[notes]("one")
	g.Node("node", f)
	g.Edge(graph.Start, "node")
	g.Edge("node", graph.End)
	return g
}

func TestInterrupt_CarriesAddressInfoStateAndData(t *testing.T) {
	type saved struct{ Tries int }
	type answer struct{ OK bool }
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		was, has, state := fermata.GetInterruptState[saved](ctx)
		if !was {
			return s, fermata.StatefulInterrupt(ctx, "may I?", saved{Tries: 3})
		}
		target, hasData, data := fermata.GetResumeContext[answer](ctx)
		s.A = fmt.Sprint(has, state.Tries, target, hasData, data.OK)
		return s, nil
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	if len(open) != 1 || open[0].Address.String() != "runnable:one;node:node" || open[0].Info != "may I?" || !open[0].IsRootCause {
		t.Fatalf("got %+v", open)
	}
	if open[0].Parent == nil || open[0].Parent.Address.String() != "runnable:one" || open[0].Parent.IsRootCause {
		t.Fatalf("got parent %+v", open[0].Parent)
	}
	out, err := h.resume(graph.Answer(open[0].ID, answer{OK: true}))
	if err != nil || out.A != "true 3 true true true" {
		t.Fatalf("got %q, %v", out.A, err)
	}
}

func TestInterrupt_ResumeWithoutDataIsASignal(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		if target, hasData, _ := fermata.GetResumeContext[string](ctx); target {
			s.A = fmt.Sprint("go on, data: ", hasData)
			return s, nil
		}
		return s, fermata.Interrupt(ctx, "ready?")
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	out, err := h.flow.Resume(fermata.Resume(t.Context(), open[0].ID), h.run, graph.WithStore(h.st))
	if err != nil || out.A != "go on, data: false" {
		t.Fatalf("got %q, %v", out.A, err)
	}
}

// processes is a node with three parts that wait separately, in the lower-level style: each part
// checks whether it is a target and raises its interrupt again if not.
func processes(c *counter) fn {
	return func(ctx context.Context, s notes) (notes, error) {
		c.add("node")
		var errs []error
		results := make([]string, 3)
		for i := range results {
			sub := fermata.AppendAddressSegment(ctx, "process", fmt.Sprint("p", i))
			target, has, data := fermata.GetResumeContext[string](sub)
			if !target {
				errs = append(errs, fermata.StatefulInterrupt(sub, fmt.Sprint("p", i, "?"), i))
				continue
			}
			results[i] = fmt.Sprint(has, data)
		}
		if len(errs) > 0 {
			return s, fermata.CompositeInterrupt(ctx, "three processes", "the node's own state", errs...)
		}
		s.A = strings.Join(results, ",")
		return s, nil
	}
}

func TestComposite_PartsAreAnsweredOnTheirOwn(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(processes(&c)))
	_, err := h.start(notes{})
	open := h.waits(err)
	want := []string{"runnable:one;node:node;process:p0", "runnable:one;node:node;process:p1", "runnable:one;node:node;process:p2"}
	if got := addresses(open); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	parent := open[0].Parent
	if parent == nil || parent.Info != "three processes" || parent.IsRootCause || parent.ID == "" {
		t.Fatalf("got parent %+v", parent)
	}
	for _, ic := range open[1:] {
		if ic.Parent != parent {
			t.Error("parts of one composite must share one parent")
		}
	}
	_, err = h.resume(graph.Answer(open[0].ID, "zero"), graph.Answer(open[2].ID, nil))
	again := h.waits(err)
	if len(again) != 1 || again[0].ID != open[1].ID || again[0].Parent.ID != parent.ID {
		t.Fatalf("only p1 should still wait, with its old id: %v", addresses(again))
	}
	out, err := h.resume(graph.Answer(open[1].ID, "one"))
	if err != nil || out.A != "truezero,trueone,false" {
		t.Fatalf("got %q, %v", out.A, err)
	}
}

// A composite may be answered itself. It is raised again while parts of it wait, and the parts then
// belong to the new one.
func TestComposite_ThatIsAnsweredItselfIsFollowedByAnother(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		part := fermata.AppendAddressSegment(ctx, "part", "one")
		if target, _, answer := fermata.GetResumeContext[string](part); target && answer != "" {
			s.A = answer
			return s, nil
		}
		return s, fermata.CompositeInterrupt(ctx, "the parts", nil, fermata.Interrupt(part, "one?"))
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	first := open[0].Parent.ID
	_, err = h.resume(graph.Answer(first, "go on"))
	open = h.waits(err)
	again := open[0].Parent
	if again.ID == first || again.IsRootCause {
		t.Errorf("the part belongs to %+v, which is answered", again)
	}
	if _, err = h.resume(graph.Answer(again.ID, "go on")); len(h.waits(err)) != 1 {
		t.Errorf("got %v", err)
	}
	if out, err := h.answer(open, "one?", "yes"); err != nil || out.A != "yes" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestComposite_APlainErrorWinsAndFinishedWorkIsSaved(t *testing.T) {
	var c counter
	broken := errors.New("broken")
	fail := true
	g := graph.New[notes]("mixed")
	g.Node("mixed", func(ctx context.Context, s notes) (notes, error) {
		c.add("mixed")
		if _, err := fermata.Do(ctx, "paid work", func(context.Context) (int, error) { c.add("work"); return 1, nil }); err != nil {
			return s, err
		}
		if !fail {
			s.A = "mended"
			return s, nil
		}
		interrupt := fermata.Interrupt(fermata.AppendAddressSegment(ctx, "part", "x"), "x?")
		return s, fermata.CompositeInterrupt(ctx, nil, nil, interrupt, broken)
	})
	g.Node("sibling", write(&c, "sibling", fieldB))
	g.Node("waiting", ask(&c, "waiting", fieldC))
	for _, name := range []string{"mixed", "sibling", "waiting"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	wantErr(t, err, broken)
	failed, ok := errors.AsType[*graph.NodeError](err)
	if !ok || failed.Address.String() != "runnable:mixed;node:mixed" {
		t.Fatalf("got %v", err)
	}
	if _, waits := fermata.ExtractInterruptInfo(err); waits {
		t.Fatal("no interrupt may be reported if there is a plain error")
	}
	fail = false
	_, err = h.resume()
	out, err := h.answer(h.waits(err), "waiting?", "yes")
	if err != nil || out.A != "mended" || out.B != "sibling" || out.C != "yes" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"mixed": 2, "work": 1, "sibling": 1, "waiting": 2})
}

func TestInterrupt_WrappedAndJoinedErrorsStillWait(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		a, errA := question.Ask(ctx, "a?")
		b, errB := question.Ask(ctx, "b?")
		if err := errors.Join(errA, errB); err != nil {
			return s, fmt.Errorf("asking: %w", err)
		}
		s.A, s.B = a, b
		return s, nil
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	if got := infos(open); !slices.Equal(got, []string{"a?", "b?"}) {
		t.Fatalf("got %v", got)
	}
	b := find(t, open, "b?")
	_, err = h.resume(graph.Answer(b.ID, "second"))
	rest := h.waits(err)
	if len(rest) != 1 || rest[0].ID != find(t, open, "a?").ID {
		t.Fatalf("ids must be equal before and after a partial resume: %v", infos(rest))
	}
	out, err := h.answer(rest, "a?", "first")
	if err != nil || out.A != "first" || out.B != "second" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// Sequential tools in other frameworks continue after the one that asked.
func TestInterrupt_SequentialWorkAfterItDoesNotRun(t *testing.T) {
	var c counter
	g := graph.New[notes]("sequence")
	g.Node("calls", func(ctx context.Context, s notes) (notes, error) {
		for i, name := range []string{"lookup", "delete", "report"} {
			result, err := fermata.DoAt(ctx, fermata.Segment{Type: fermata.SegmentTool, ID: name, SubID: fmt.Sprint(i)}, func(ctx context.Context) (string, error) {
				c.add(name)
				if name == "delete" {
					return question.Ask(ctx, "delete?")
				}
				return name, nil
			})
			if err != nil {
				return s, err
			}
			s.Log = append(s.Log, result)
		}
		return s, nil
	})
	g.Node("after", write(&c, "after", fieldA))
	g.Edge(graph.Start, "calls")
	g.Edge("calls", "after")
	g.Edge("after", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	if got := addresses(open); !slices.Equal(got, []string{"runnable:sequence;node:calls;tool:delete#1"}) {
		t.Fatalf("got %v", got)
	}
	c.want(t, map[string]int{"lookup": 1, "delete": 1, "report": 0, "after": 0})
	out, err := h.answer(open, "delete?", "deleted")
	if err != nil || !slices.Equal(out.Log, []string{"lookup", "deleted", "report"}) {
		t.Fatalf("got %v, %v", out.Log, err)
	}
	c.want(t, map[string]int{"lookup": 1, "delete": 2, "report": 1, "after": 1})
}

func TestI5_ASwallowedQuestionIsNotPassed(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		if _, err := question.Ask(ctx, "delete prod?"); err != nil {
			s.A = "deleted anyway"
		}
		return s, nil
	}))
	_, err := h.start(notes{})
	wantErr(t, err, fermata.ErrSwallowed)
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil || snapshot.State.A != "" {
		t.Fatalf("got %+v, %v", snapshot, err)
	}
}

func TestInterrupt_DuplicateAddressesAreRefused(t *testing.T) {
	for name, node := range map[string]fn{
		"two processes under one address": func(ctx context.Context, s notes) (notes, error) {
			one := fermata.Interrupt(fermata.AppendAddressSegment(ctx, "process", "p"), 1)
			two := fermata.Interrupt(fermata.AppendAddressSegment(ctx, "process", "p"), 2)
			return s, fermata.CompositeInterrupt(ctx, nil, nil, one, two)
		},
		"two calls with one name": func(ctx context.Context, s notes) (notes, error) {
			for range 2 {
				if _, err := fermata.Do(ctx, "same", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return s, err
				}
			}
			return s, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newHarness(t, oneNode(node)).start(notes{})
			if _, ok := errors.AsType[*fermata.DuplicateError](err); !ok {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestInterrupt_AComponentThatForgetsToAskAgainDoesNotPass(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		if was, _, _ := fermata.GetInterruptState[any](fermata.AppendAddressSegment(ctx, "part", "a")); was {
			s.A = "went on without looking"
			return s, nil
		}
		return s, fermata.CompositeInterrupt(ctx, nil, nil,
			fermata.Interrupt(fermata.AppendAddressSegment(ctx, "part", "a"), "a?"),
			fermata.Interrupt(fermata.AppendAddressSegment(ctx, "part", "b"), "b?"))
	}))
	_, err := h.start(notes{})
	_, err = h.answer(h.waits(err), "b?", "yes")
	wantErr(t, err, graph.ErrUnanswered)
}

func TestLegacy_InterruptAndRerun(t *testing.T) {
	entered := 0
	legacyTool := func() error {
		if entered++; entered < 3 {
			return fermata.NewInterruptAndRerunErr("need approval")
		}
		return nil
	}
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		err := legacyTool()
		if err != nil {
			return s, fermata.WrapInterruptAndRerunIfNeeded(ctx, fermata.Segment{Type: "tool", ID: "legacy"}, err)
		}
		s.A = "done"
		return s, nil
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	if open[0].Address.String() != "runnable:one;node:node;tool:legacy" || open[0].Info != "need approval" {
		t.Fatalf("got %+v", open[0])
	}
	_, err = h.resume(graph.Answer(open[0].ID, nil))
	open = h.waits(err) // it asks a second time, which is a new interrupt
	out, err := h.resume(graph.Answer(open[0].ID, nil))
	if err != nil || out.A != "done" {
		t.Fatalf("got %+v, %v", out, err)
	}
	plain := errors.New("plain")
	if got := fermata.WrapInterruptAndRerunIfNeeded(t.Context(), fermata.Segment{}, plain); got != plain {
		t.Fatalf("a plain error must be returned unchanged, got %v", got)
	}
}

func TestLegacy_UnwrappedInterruptWaitsAtItsNode(t *testing.T) {
	entered := 0
	h := newHarness(t, oneNode(func(_ context.Context, s notes) (notes, error) {
		if entered++; entered == 1 {
			return s, fermata.InterruptAndRerun
		}
		s.N = entered
		return s, nil
	}))
	_, err := h.start(notes{})
	open := h.waits(err)
	if open[0].Address.String() != "runnable:one;node:node" {
		t.Fatalf("got %v", open[0].Address)
	}
	out, err := h.resume(graph.Answer(open[0].ID, nil))
	if err != nil || out.N != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestInfo_IsTheSameInAnotherProcess(t *testing.T) {
	type offer struct {
		Item  string
		Cents int64
	}
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		return s, fermata.Interrupt(ctx, offer{"book", 9007199254740993})
	}))
	_, err := h.start(notes{})
	here := h.waits(err)[0]
	snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
	if err != nil {
		t.Fatal(err)
	}
	there := snapshot.Interrupts[0]
	for _, ic := range []*fermata.InterruptCtx{here, there} {
		got, err := fermata.InfoAs[offer](ic)
		if err != nil || got != (offer{"book", 9007199254740993}) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	generic := there.Info.(map[string]any)
	if generic["Cents"] != json.Number("9007199254740993") {
		t.Fatalf("numbers must keep their spelling: %v", generic)
	}
}

func TestAsk_OutsideOfARunIsAnError(t *testing.T) {
	_, err := question.Ask(context.Background(), "anyone?")
	wantErr(t, err, fermata.ErrNoRun)
	wantErr(t, fermata.Interrupt(context.Background(), nil), fermata.ErrNoRun)
	_, err = fermata.Do(context.Background(), "x", func(context.Context) (int, error) { return 1, nil })
	wantErr(t, err, fermata.ErrNoRun)
}

func TestAsk_AfterTheNodeHasReturnedIsRefused(t *testing.T) {
	var leaked context.Context
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		leaked = ctx
		return s, nil
	}))
	if _, err := h.start(notes{}); err != nil {
		t.Fatal(err)
	}
	_, err := question.Ask(leaked, "late?")
	wantErr(t, err, fermata.ErrEnded)
	_, err = fermata.Do(leaked, "late", func(context.Context) (int, error) { return 1, nil })
	wantErr(t, err, fermata.ErrEnded)
}

func TestInterrupt_LaterChangesToTheDataHaveNoEffect(t *testing.T) {
	var c counter
	h := newHarness(t, oneNode(ask(&c, "node", fieldA)))
	_, err := h.start(notes{})
	inspect := func() *fermata.InterruptCtx {
		snapshot, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Interrupts[0]
	}
	copy(h.waits(err)[0].Data, "XXXXXXX")
	copy(inspect().Data, "XXXXXXX") // the store may return its own bytes
	if got := string(inspect().Data); got != `"node?"` {
		t.Fatalf("the stored question is now %s", got)
	}
}

// Regression: combining the results of finished parts raised an empty interrupt.
func TestCompositeInterrupt_WithOnlyFinishedPartsReturnsNil(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, n notes) (notes, error) {
		part := fermata.AppendAddressSegment(ctx, "part", "one")
		var err error
		if target, _, answer := fermata.GetResumeContext[string](part); target {
			n.A = answer
		} else {
			err = fermata.Interrupt(part, "one?")
		}
		return n, fermata.CompositeInterrupt(ctx, "the parts", nil, err, nil)
	}))
	_, err := h.start(notes{})
	if s, err := h.resume(graph.Answer(h.waits(err)[0].ID, "done")); err != nil || s.A != "done" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// Regression: the error reported that the run waits, but not why.
func TestInterruptError_SaysThatAnAnswerWasNotUsed(t *testing.T) {
	h := newHarness(t, oneNode(func(ctx context.Context, n notes) (notes, error) {
		if target, _, answer := fermata.GetResumeContext[string](ctx); target {
			n.A = answer
			return n, nil
		}
		return n, fermata.Interrupt(ctx, "who?")
	}))
	_, err := h.start(notes{})
	id := h.waits(err)[0].ID
	_, err = h.resume(graph.Answer(id, 7))
	if h.waits(err)[0].ID != id || !strings.Contains(err.Error(), "rejected: fermata: answer to "+id) {
		t.Errorf("got %v", err)
	}
}

func TestRun_FormattedInterruptSaysToWrapIt(t *testing.T) {
	kind := fermata.NewKind[string, bool]("formatted-question")
	g := graph.New[string]("formatted")
	g.Node("ask", func(ctx context.Context, s string) (string, error) {
		_, err := kind.Ask(ctx, "Go?")
		return s, fmt.Errorf("asking: %v", err)
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	_, err = flow.Run(t.Context(), "", graph.WithStore(memory.New()))
	if _, waits := fermata.ExtractInterruptInfo(err); waits || !strings.Contains(fmt.Sprint(err), "wrap the error of the call with %w") {
		t.Errorf("got %v", err)
	}
}
