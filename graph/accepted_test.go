package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

func TestI2_ANodeThatNoLongerAsksWhatWasAnsweredIsAnError(t *testing.T) {
	asks := func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "drop?")
		s.A = answer
		return s, err
	}
	interrupts := func(ctx context.Context, s notes) (notes, error) {
		ctx = fermata.AppendAddressSegment(ctx, "part", "1")
		target, _, answer := fermata.GetResumeContext[string](ctx)
		if !target {
			return s, fermata.Interrupt(ctx, "drop?")
		}
		s.A = answer
		return s, nil
	}
	innerFlow := compile(t, oneNode(asks))
	runs := func(ctx context.Context, s notes) (notes, error) { return innerFlow.Run(ctx, s) }
	silent := func(_ context.Context, s notes) (notes, error) { return s, nil }
	for name, was := range map[string]fn{"ask": asks, "interrupt": interrupts, "graph in a node": runs} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, oneNode(was))
			_, err := h.start(notes{})
			open := h.waits(err)
			h.flow = compile(t, oneNode(silent))
			_, err = h.answer(open, "drop?", "no")
			if changed, ok := errors.AsType[*graph.ProgramChangedError](err); !ok || !strings.Contains(changed.Error(), "answer") {
				t.Fatalf("got %v", err)
			}
			h.flow = compile(t, oneNode(was)) // the answer was kept
			if out, err := h.resume(); err != nil || out.A != "no" {
				t.Errorf("restored: got %+v, %v", out, err)
			}
		})
	}
}

func TestI13_AStateModifierThatFailsLeavesTheQuestionOpen(t *testing.T) {
	var c counter
	inner := compile(t, oneNode(ask(&c, "node", fieldA)))
	forms := map[string]*graph.Graph[notes]{"outermost": oneNode(ask(&c, "node", fieldA))}
	sub := graph.New[notes]("outer")
	graph.Sub(sub, "n", inner, func(s notes) notes { return s }, func(_, in notes) notes { return in })
	each := graph.New[notes]("outer")
	graph.EachFlow(each, "n", func(s notes) []notes { return []notes{s} }, inner, func(_ notes, all []notes) notes { return all[0] })
	own := graph.New[notes]("outer")
	own.Node("n", func(ctx context.Context, s notes) (notes, error) { return inner.Run(ctx, s) })
	for name, g := range map[string]*graph.Graph[notes]{"sub": sub, "each": each, "own code": own} {
		g.Edge(graph.Start, "n")
		g.Edge("n", graph.End)
		forms[name] = g
	}
	for name, g := range forms {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, g)
			_, err := h.start(notes{})
			open := h.waits(err)
			version := h.version()
			_, err = h.resume(graph.Answer(open[0].ID, "yes"), graph.WithStateModifier(func(at fermata.Address, _ any) error {
				if name != "outermost" && len(at) == 1 {
					return nil
				}
				return errors.New("cannot modify")
			}))
			if err == nil || !strings.Contains(err.Error(), "cannot modify") {
				t.Fatalf("got %v", err)
			}
			if name != "own code" && h.version() != version {
				t.Error("the run was changed")
			}
			seen, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
			if err != nil || len(seen.Interrupts) != 1 || seen.Interrupts[0].ID != open[0].ID {
				t.Fatalf("the question is not open: %+v, %v", seen, err)
			}
			var calls int
			out, err := h.resume(graph.Answer(open[0].ID, "yes"), graph.WithStateModifier(func(at fermata.Address, state any) error {
				calls++
				if name == "each" && len(at) == 1 {
					return nil // it is processing the list
				}
				state.(*notes).B = "modified"
				return nil
			}))
			want := 2
			if name == "outermost" {
				want = 1
			}
			if err != nil || out.A != "yes" || out.B != "modified" || calls != want {
				t.Errorf("got %+v after %d calls, %v", out, calls, err)
			}
		})
	}
}

func TestRefuseAnswer_TheQuestionStaysOpenWithTheReason(t *testing.T) {
	asks := func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "how much?")
		if err == nil && answer == "200" {
			err = fermata.RefuseAnswer(ctx, "at most 100")
		}
		s.A = answer
		return s, err
	}
	interrupts := func(ctx context.Context, s notes) (notes, error) {
		target, _, answer := fermata.GetResumeContext[string](ctx)
		switch {
		case !target:
			return s, fermata.Interrupt(ctx, "how much?")
		case answer == "200":
			return s, fermata.RefuseAnswer(ctx, "at most 100")
		}
		s.A = answer
		return s, nil
	}
	for name, node := range map[string]fn{"ask": asks, "interrupt": interrupts} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, oneNode(node))
			_, err := h.start(notes{})
			id := h.waits(err)[0].ID
			_, err = h.resume(graph.Answer(id, "200"))
			again := h.waits(err)
			bad, ok := errors.AsType[*fermata.AnswerError](err)
			if len(again) != 1 || again[0].ID != id || again[0].Refused != "at most 100" || !ok || bad.ID != id || bad.Err.Error() != "at most 100" {
				t.Fatalf("got %+v, %v", again[0], err)
			}
			seen, err := h.flow.Inspect(t.Context(), h.run, graph.WithStore(h.st))
			if err != nil || seen.Interrupts[0].Refused != "at most 100" {
				t.Fatalf("inspected: %+v, %v", seen, err)
			}
			if out, err := h.resume(graph.Answer(id, "50")); err != nil || out.A != "50" {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) { return s, fermata.RefuseAnswer(ctx, "why") }))
	if _, err := h.start(notes{}); err == nil || !strings.Contains(err.Error(), "has read none") {
		t.Errorf("without an answer: %v", err)
	}
}

func TestFailedError_CarriesTheQuestionsNextToAFailure(t *testing.T) {
	var c counter
	fails := true
	g := graph.New[notes]("failing")
	g.Node("asks", ask(&c, "asks", fieldA))
	g.Node("fails", func(_ context.Context, s notes) (notes, error) {
		if fails {
			return s, errors.New("boom")
		}
		s.B = "done"
		return s, nil
	})
	for _, name := range []string{"asks", "fails"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	_, err := h.start(notes{})
	failed, ok := errors.AsType[*fermata.FailedError](err)
	_, isNode := errors.AsType[*graph.NodeError](err)
	if !ok || !isNode || len(failed.Info.Interrupts) != 1 || failed.Info.Run != h.run || len(fermata.OpenInterrupts(err)) != 1 {
		t.Fatalf("got %v", err)
	}
	if _, waits := fermata.ExtractInterruptInfo(err); waits {
		t.Error("a failed run seems to wait")
	}
	fails = false
	out, err := h.answer(failed.Info.Interrupts, "asks?", "yes")
	if err != nil || out.A != "yes" || out.B != "done" {
		t.Errorf("got %+v, %v", out, err)
	}
}
