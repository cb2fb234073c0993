package graph_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// A node must return an interrupt. Continuing without returning it is an error, regardless of how
// the node received it.
func TestI5_NoOneCanSwallowAQuestion(t *testing.T) {
	inner := compile(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "inner?")
		s.A = answer
		return s, err
	}))
	gate := func(ctx context.Context) (string, error) { return question.Ask(ctx, "gate?") }
	for name, node := range map[string]fn{
		"of a graph in the node": func(ctx context.Context, s notes) (notes, error) {
			_, _ = inner.Run(ctx, notes{})
			return s, nil
		},
		"of work that waits since an earlier entry": func(ctx context.Context, s notes) (notes, error) {
			_, errA := fermata.Do(ctx, "a", gate)
			if _, errB := question.Ask(ctx, "other?"); errB != nil {
				return s, errors.Join(errA, errB)
			}
			return s, nil
		},
		"inside work that is done once": func(ctx context.Context, s notes) (notes, error) {
			_, err := fermata.Do(ctx, "w", func(ctx context.Context) (string, error) { _, _ = gate(ctx); return "done", nil })
			return s, err
		},
		"without a kind": func(ctx context.Context, s notes) (notes, error) {
			_, err := fermata.Do(ctx, "w", func(ctx context.Context) (string, error) { _ = fermata.Interrupt(ctx, "gate?"); return "done", nil })
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, oneNode(node))
			_, err := h.start(notes{})
			if info, waits := fermata.ExtractInterruptInfo(err); waits {
				_, err = h.answer(info.Interrupts, "other?", "yes")
			}
			wantErr(t, err, fermata.ErrSwallowed)
			_, err = h.resume() // trying again does not help
			wantErr(t, err, fermata.ErrSwallowed)
		})
	}
}

func TestI5_GetResumeContextDoesNotGoOnWhileItsOwnQuestionIsOpen(t *testing.T) {
	for name, node := range map[string]func(paid *int) fn{
		"another interrupt of the node was answered": func(paid *int) fn {
			return func(ctx context.Context, s notes) (notes, error) {
				_, errB := question.Ask(ctx, "colour?")
				if target, _, _ := fermata.GetResumeContext[any](ctx); target {
					*paid++
					return s, errB
				}
				return s, errors.Join(fermata.Interrupt(ctx, "pay?"), errB)
			}
		},
		"an earlier interrupt of the node was answered": func(paid *int) fn {
			return func(ctx context.Context, s notes) (notes, error) {
				if _, err := question.Ask(ctx, "colour?"); err != nil {
					return s, err
				}
				if target, _, _ := fermata.GetResumeContext[any](ctx); target {
					*paid++
					return s, nil
				}
				return s, fermata.Interrupt(ctx, "pay?")
			}
		},
		"its answer was just rejected": func(paid *int) fn {
			return func(ctx context.Context, s notes) (notes, error) {
				if target, _, _ := fermata.GetResumeContext[int](ctx); target {
					return s, nil
				}
				if target, _, _ := fermata.GetResumeContext[bool](ctx); target {
					*paid++
					return s, nil
				}
				return s, fermata.Interrupt(ctx, "colour?")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			paid := 0
			h := newHarness(t, oneNode(node(&paid)))
			_, err := h.start(notes{})
			_, err = h.answer(h.waits(err), "colour?", "no")
			h.waits(err)
			if paid > 0 {
				t.Error("it continued without an answer")
			}
		})
	}
}

func TestI5_GetResumeContextDoesNotGoOnBecauseAnActionWasApproved(t *testing.T) {
	paid := 0
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		if _, err := fermata.Approve(ctx, fermata.Action[string]{Name: "look", Args: "a"}); err != nil {
			return s, err
		}
		if target, _, _ := fermata.GetResumeContext[any](ctx); target {
			paid++
			return s, nil
		}
		return s, fermata.Interrupt(ctx, "pay?")
	}))
	_, err := h.start(notes{})
	_, err = h.resume(graph.Answer(h.waits(err)[0].ID, fermata.Decision{Verb: fermata.VerbApprove}))
	open := h.waits(err)
	if paid > 0 {
		t.Error("it continued without an answer")
	}
	if _, err := h.answer(open, "pay?", "yes"); err != nil || paid != 1 {
		t.Errorf("paid %d times, %v", paid, err)
	}
}

// A place above an answered one is a target.
func TestGetResumeContext_AComponentAroundTheAnsweredOneIsATarget(t *testing.T) {
	var targets []bool
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		target, _, _ := fermata.GetResumeContext[any](ctx)
		targets = append(targets, target)
		_, err := question.Ask(fermata.AppendAddressSegment(ctx, "part", "a"), "colour?")
		return s, err
	}))
	_, err := h.start(notes{})
	if _, err = h.answer(h.waits(err), "colour?", "red"); err != nil || !slices.Equal(targets, []bool{false, true}) {
		t.Errorf("got %v, %v", targets, err)
	}
}

// fallible is an inner graph in which one node asks and the other fails.
func fallible(t testing.TB) *graph.Flow[notes] {
	g := graph.New[notes]("fallible")
	work := func(context.Context) (int, error) { return 1, nil }
	g.Node("asks", func(ctx context.Context, s notes) (notes, error) {
		_, err := fermata.Do(ctx, "work", work)
		_, asked := question.Ask(ctx, "inner?")
		return s, errors.Join(err, asked)
	})
	g.Node("fails", func(ctx context.Context, s notes) (notes, error) {
		_, _ = fermata.Do(ctx, "work", work)
		return s, errors.New("out of order")
	})
	for _, name := range []string{"asks", "fails"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return compile(t, g)
}

func TestSub_AGraphThatIsGivenUpTakesItsQuestionsAlong(t *testing.T) {
	inner := fallible(t)
	g := graph.New[notes]("outer")
	g.Node("tries", func(ctx context.Context, s notes) (notes, error) {
		if _, err := inner.Run(ctx, notes{}); err != nil {
			s.B = "fallback"
		}
		return s, nil
	})
	g.Node("asks", func(ctx context.Context, s notes) (notes, error) {
		answer, err := question.Ask(ctx, "outer?")
		s.C = answer
		return s, err
	})
	g.Edge(graph.Start, "tries")
	g.Edge("tries", "asks")
	g.Edge("asks", graph.End)
	h := newHarness(t, g)
	_, err := h.start(notes{})
	open := h.waits(err)
	if len(open) != 1 {
		t.Fatalf("an unknown interrupt is open: %v", infos(open))
	}
	out, err := h.answer(open, "outer?", "yes")
	if err != nil || out.B != "fallback" {
		t.Fatalf("got %+v, %v", out, err)
	}
	for part := range h.parts() {
		if part != "run" && part != "frame " && part[:9] != "interrupt" {
			t.Errorf("%q is left", part)
		}
	}
}

func TestSub_AbandonedGraphWithdrawsItsInterrupts(t *testing.T) {
	inner := compile(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		_, err := question.Ask(ctx, "inner?")
		return s, err
	}))
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		skip, errA := question.Ask(ctx, "skip inner?")
		if errA == nil && skip == "yes" {
			_, err := question.Ask(ctx, "sure?")
			return s, err
		}
		_, errB := inner.Run(ctx, notes{})
		return s, errors.Join(errA, errB)
	}))
	_, err := h.start(notes{})
	first := h.waits(err)
	_, err = h.answer(first, "skip inner?", "yes")
	open := h.waits(err)
	if got := infos(open); len(got) != 1 || got[0] != "sure?" {
		t.Fatalf("got %v", got)
	}
	_, err = h.resume(graph.Answer(find(t, first, "inner?").ID, "x"))
	wantErr(t, err, graph.ErrWithdrawn)
	if _, err := h.answer(open, "sure?", "yes"); err != nil {
		t.Fatal(err)
	}
}

func TestAsk_WithTheContextOfAnotherNodeIsRefused(t *testing.T) {
	var outer context.Context
	inner := compile(t, oneNode(func(_ context.Context, s notes) (notes, error) {
		_, err := question.Ask(outer, "whose?")
		return s, err
	}))
	h := newHarness(t, oneNode(func(ctx context.Context, s notes) (notes, error) {
		outer = ctx
		return inner.Run(ctx, s)
	}))
	_, err := h.start(notes{})
	if _, failed := errors.AsType[*graph.NodeError](err); !failed {
		t.Fatalf("got %v", err)
	}
}

// parts returns the stored parts of the run, each separately.
func (h *harness[S]) parts() map[string][]byte {
	h.t.Helper()
	saved, err := h.st.Load(h.t.Context(), storeKey(h.run))
	if err != nil {
		h.t.Fatal(err)
	}
	return unpack(h.t, saved.Parts)
}
