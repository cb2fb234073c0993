package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

// held wraps fn in a tool twice, without and with approval: a tool may do the same in both cases.
func held(t *testing.T, fn func(ctx context.Context, in ticket) (string, error), test func(t *testing.T, call *run, start func() error)) {
	plain := tool.New("work", "", fn)
	for name, tl := range map[string]*tool.Tool{"plain": plain, "approved": tool.Approve(plain), "repeatable": tool.Approve(tool.New("work", "", fn, tool.Repeatable()))} {
		t.Run(name, func(t *testing.T) {
			call := newRun(t, tl, `{"to":"ORY"}`)
			test(t, call, func() error {
				_, err := call.start()
				if name != "plain" {
					_, err = call.answer(err, yes())
				}
				return err
			})
		})
	}
}

func TestTool_MayAskSeveralTimesAndRemember(t *testing.T) {
	var looked int
	held(t, func(ctx context.Context, in ticket) (string, error) {
		seen, err := fermata.Do(ctx, "look", func(context.Context) (int, error) { looked++; return looked, nil })
		if err != nil {
			return "", err
		}
		first, err := question.Ask(ctx, "first?")
		if err != nil {
			return "", err
		}
		second, err := question.Ask(ctx, "second, after "+first+"?")
		return fmt.Sprint(seen, first, second), err
	}, func(t *testing.T, call *run, start func() error) {
		looked = 0
		_, err := call.answer(start(), "a")
		if ic := waitsFor(t, err); ic.Info != "second, after a?" || !strings.HasPrefix(ic.Address.String(), "runnable:g;node:n;tool:work#c1") {
			t.Errorf("got %v at %s", ic.Info, ic.Address)
		}
		got, err := call.answer(err, "b")
		wantDone(t, got, err, "1ab")
		if looked != 1 {
			t.Errorf("it looked %d times", looked)
		}
	})
}

func TestTool_MayApproveAndDoAnEffectOfItsOwn(t *testing.T) {
	var r railway
	held(t, func(ctx context.Context, in ticket) (string, error) {
		ok, err := fermata.Approve(ctx, fermata.Action[ticket]{Name: "pay", Args: in})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, ok, func(ctx context.Context, in ticket, key string) (string, error) {
			if key == "" {
				t.Error("an effect without a key")
			}
			return r.book(ctx, in)
		})
	}, func(t *testing.T, call *run, start func() error) {
		r.booked = nil
		err := start()
		if asked := approval(t, err); asked.Action != "pay" || asked.Fixed {
			t.Errorf("got %+v", asked)
		}
		got, err := call.answer(err, edit(`{"to":"NCE"}`))
		wantDone(t, got, err, "booked -NCE")
		if len(r.booked) != 1 {
			t.Errorf("called %d times", len(r.booked))
		}
	})
}

func TestTool_ARefusalOfItsOwnActionReachesTheModel(t *testing.T) {
	held(t, func(ctx context.Context, in ticket) (string, error) {
		_, err := fermata.Approve(ctx, fermata.Action[ticket]{Name: "pay", Args: in})
		return "", err
	}, func(t *testing.T, call *run, start func() error) {
		got, err := call.answer(start(), fermata.Decision{Verb: fermata.VerbReject, Reason: "too dear", By: "bob"})
		wantFailed(t, got, err, "pay was refused by bob: too dear")
	})
}

// Regression: the answer to the outer approval made the tool a resume target, and the tool's own
// interrupt was bypassed.
func TestI5_AToolDoesNotTakeTheAnswerToItsWrapperForItsOwn(t *testing.T) {
	tl := tool.New("work", "", func(ctx context.Context, in ticket) (string, error) {
		was, _, _ := fermata.GetInterruptState[string](ctx)
		target, _, _ := fermata.GetResumeContext[string](ctx)
		return fmt.Sprint("interrupted: ", was, ", target: ", target), nil
	})
	for name, wrapped := range map[string]*tool.Tool{
		"approve": tool.Approve(tl), "review": tool.Review(tl), "follow up": tool.FollowUp(tl, tool.Needs[ticket](from)),
		"both": tool.FollowUp(tool.Approve(tl), tool.Needs[ticket](from)),
	} {
		t.Run(name, func(t *testing.T) {
			call := newRun(t, wrapped, `{"to":"ORY"}`)
			got, err := call.start()
			for err != nil {
				var answer any = yes()
				if waitsFor(t, err).Kind == tool.Completion.Name() {
					answer = fields("from", `"CDG"`)
				}
				got, err = call.answer(err, answer)
			}
			wantDone(t, got, err, "interrupted: false, target: false")
		})
	}
}

func TestTool_MayInterruptWithAState(t *testing.T) {
	held(t, func(ctx context.Context, in ticket) (string, error) {
		target, _, said := fermata.GetResumeContext[string](ctx)
		if !target {
			return "", fermata.StatefulInterrupt(ctx, "go on?", []string{"kept"})
		}
		_, has, state := fermata.GetInterruptState[[]string](ctx)
		return fmt.Sprint(has, state, said), nil
	}, func(t *testing.T, call *run, start func() error) {
		err := start()
		if ic := waitsFor(t, err); ic.Info != "go on?" || ic.Kind != "" {
			t.Errorf("got %+v", ic)
		}
		got, err := call.answer(err, "yes")
		wantDone(t, got, err, "true [kept]yes")
	})
}

func TestTool_MayInterruptWithoutAState(t *testing.T) {
	held(t, func(ctx context.Context, in ticket) (string, error) {
		if target, hasData, _ := fermata.GetResumeContext[string](ctx); target {
			return fmt.Sprint("resumed with data: ", hasData), nil
		}
		return "", fermata.Interrupt(ctx, "wait")
	}, func(t *testing.T, call *run, start func() error) {
		got, err := call.answer(start(), nil)
		wantDone(t, got, err, "resumed with data: false")
	})
}

func TestTool_MayBundleTheInterruptsOfItsParts(t *testing.T) {
	held(t, func(ctx context.Context, in ticket) (string, error) {
		var said [2]string
		var errs [2]error
		for i := range said {
			part := fermata.AppendAddressSegment(ctx, "part", fmt.Sprint(i))
			said[i], errs[i] = question.Ask(part, fmt.Sprintf("part %d?", i))
		}
		if errs[0] != nil || errs[1] != nil {
			return "", fermata.CompositeInterrupt(ctx, "parts wait", nil, errs[0], errs[1])
		}
		return said[0] + said[1], nil
	}, func(t *testing.T, call *run, start func() error) {
		info, ok := fermata.ExtractInterruptInfo(start())
		if !ok || len(info.Interrupts) != 2 {
			t.Fatalf("got %+v", info)
		}
		parent := info.Interrupts[0].Parent
		if parent == nil || parent != info.Interrupts[1].Parent || parent.Info != "parts wait" || parent.IsRootCause {
			t.Errorf("got %+v", parent)
		}
		_, err := call.resume(graph.Answer(info.Interrupts[0].ID, "a"))
		if ic := waitsFor(t, err); ic.ID != info.Interrupts[1].ID {
			t.Errorf("got %s", ic.ID)
		}
		got, err := call.answer(err, "b")
		wantDone(t, got, err, "ab")
	})
}

func TestTool_MayRunAGraphThatWaits(t *testing.T) {
	var began int
	g := graph.New[[]string]("inner")
	g.Node("begin", func(_ context.Context, s []string) ([]string, error) { began++; return append(s, "begun"), nil })
	g.Node("ask", func(ctx context.Context, s []string) ([]string, error) {
		said, err := question.Ask(ctx, "inside?")
		return append(s, said), err
	})
	g.Edge(graph.Start, "begin")
	g.Edge("begin", "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	held(t, func(ctx context.Context, in ticket) (string, error) {
		out, err := flow.Run(ctx, []string{in.To})
		return strings.Join(out, " "), err
	}, func(t *testing.T, call *run, start func() error) {
		began = 0
		err := start()
		if ic := waitsFor(t, err); !strings.HasPrefix(ic.Address.String(), "runnable:g;node:n;tool:work#c1;") || !strings.HasSuffix(ic.Address.String(), ";runnable:inner;node:ask") {
			t.Errorf("got %s", ic.Address)
		}
		got, err := call.answer(err, "said")
		wantDone(t, got, err, "ORY begun said")
		if began != 1 {
			t.Errorf("the graph started %d times", began)
		}
	})
}

func TestI5_AToolThatPassesItsQuestionByFails(t *testing.T) {
	held(t, func(ctx context.Context, in ticket) (string, error) {
		_, _ = question.Ask(ctx, "may I?")
		return "done anyway", nil
	}, func(t *testing.T, call *run, start func() error) {
		if err := start(); !errors.Is(err, fermata.ErrSwallowed) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestTool_TwoInterruptsMayBeAnsweredInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{"ann?", "bob?"}, {"bob?", "ann?"}} {
		entered := 0
		tl := tool.New("work", "", func(ctx context.Context, in ticket) (string, error) {
			entered++
			a, errA := question.Ask(ctx, "ann?")
			b, errB := question.Ask(ctx, "bob?")
			return a + b, errors.Join(errA, errB)
		})
		call := newRun(t, tl, `{"to":"ORY"}`)
		_, err := call.start()
		info, _ := fermata.ExtractInterruptInfo(err)
		at := slices.IndexFunc(info.Interrupts, func(ic *fermata.InterruptCtx) bool { return ic.Info == order[0] })
		_, err = call.resume(graph.Answer(info.Interrupts[at].ID, "x"))
		if ic := waitsFor(t, err); ic.Info != order[1] {
			t.Errorf("got %v", ic.Info)
		}
		got, err := call.answer(err, "x")
		wantDone(t, got, err, "xx")
		if entered != 3 {
			t.Errorf("entered %d times", entered)
		}
	}
}
