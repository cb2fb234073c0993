package tool_test

import (
	"context"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/tool"
)

// A tool may interrupt, keep a state and read its answer with the functions of this package alone.
func TestInterrupt_FunctionsOfThisPackageDoWhatThoseOfTheRootPackageDo(t *testing.T) {
	type progress struct{ Rows int }
	tl := tool.New("import", "Imports rows.", func(ctx context.Context, _ ticket) (string, error) {
		was, hasState, state := tool.GetInterruptState[progress](ctx)
		if !was {
			return "", tool.StatefulInterrupt(ctx, "continue?", progress{Rows: 42})
		}
		target, hasData, answer := tool.GetResumeContext[string](ctx)
		if !target {
			return "", tool.Interrupt(ctx, "continue?")
		}
		if !hasState || state.Rows != 42 || !hasData {
			t.Errorf("entered with state %t %+v, data %t", hasState, state, hasData)
		}
		return "imported, " + answer, nil
	})
	r := newRun(t, tl, `{"to":"PAR"}`)
	_, err := r.start()
	if ic := waitsFor(t, err); ic.Info != "continue?" || ic.Address.String() != "runnable:g;node:n;tool:import#c1" {
		t.Errorf("waits with %v at %s", ic.Info, ic.Address)
	}
	result, err := r.answer(err, "thanks")
	wantDone(t, result, err, "imported, thanks")
}

func TestCompositeInterrupt_PartsOfAToolAreAnsweredSeparately(t *testing.T) {
	tl := tool.New("pair", "Asks twice.", func(ctx context.Context, _ ticket) (string, error) {
		var errs []error
		text := ""
		for _, part := range []string{"a", "b"} {
			ctx := fermata.AppendAddressSegment(ctx, "part", part)
			if target, _, answer := tool.GetResumeContext[string](ctx); target {
				text += answer
				continue
			}
			errs = append(errs, tool.Interrupt(ctx, part+"?"))
		}
		if len(errs) > 0 {
			return "", tool.CompositeInterrupt(ctx, "both are needed", nil, errs...)
		}
		return text, nil
	})
	r := newRun(t, tl, `{"to":"PAR"}`)
	_, err := r.start()
	info, _ := fermata.ExtractInterruptInfo(err)
	if info == nil || len(info.Interrupts) != 2 || info.Interrupts[0].Parent != info.Interrupts[1].Parent || info.Interrupts[0].Parent.Info != "both are needed" {
		t.Fatalf("got %v", err)
	}
	_, err = r.resume(graph.Answer(info.Interrupts[1].ID, "2"))
	if ic := waitsFor(t, err); ic.ID != info.Interrupts[0].ID {
		t.Errorf("waits for %s", ic.Address)
	}
	result, err := r.answer(err, "1")
	wantDone(t, result, err, "12")
}
