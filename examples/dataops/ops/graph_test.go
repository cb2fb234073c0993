package ops

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

// operation is a run that holds before an irreversible operation.
type operation struct {
	t         *testing.T
	flow      *graph.Flow[State]
	warehouse *Warehouse
	kept      graph.Option
}

func begin(t *testing.T, request string) *operation {
	t.Helper()
	o := &operation{t: t, warehouse: NewWarehouse(), kept: graph.WithStore(memory.New())}
	var err error
	if o.flow, err = New(o.warehouse); err != nil {
		t.Fatal(err)
	}
	_, err = o.flow.Run(t.Context(), State{Request: request}, o.kept, graph.WithRun("r"))
	if _, waits := fermata.ExtractInterruptInfo(err); !waits {
		t.Fatalf("the run does not hold: %v", err)
	}
	return o
}

// held returns the only open hold, and the state that it shows.
func (o *operation) held() (*fermata.InterruptCtx, State) {
	o.t.Helper()
	saved, err := o.flow.Inspect(o.t.Context(), "r", o.kept)
	if err != nil || len(saved.Interrupts) != 1 {
		o.t.Fatalf("%v, want one hold: %+v", err, saved)
	}
	state, err := fermata.InfoAs[State](saved.Interrupts[0])
	if err != nil {
		o.t.Fatal(err)
	}
	return saved.Interrupts[0], state
}

func (o *operation) answer(by string, answer any) (State, error) {
	o.t.Helper()
	hold, _ := o.held()
	return o.flow.Resume(o.t.Context(), "r", o.kept, graph.Answer(hold.ID, fermata.AttestedAnswer{Answer: answer, Attestation: fermata.Attestation{By: by}}))
}

// ran fails the test unless exactly these statements reached the warehouse.
func (o *operation) ran(want ...string) {
	o.t.Helper()
	if got := o.warehouse.Statements(); !slices.Equal(got, want) {
		o.t.Errorf("ran %q, want %q", got, want)
	}
}

func TestHold_EachDangerousOperationIsHeldAndRunsOnceWhenGranted(t *testing.T) {
	for request, test := range map[string]struct{ node, statement string }{
		"forget customer 42":       {destructive, "DELETE FROM orders WHERE customer = 42"},
		"drop column phone":        {mutation, "ALTER TABLE orders DROP COLUMN phone"},
		"export orders to us-east": {export, "COPY orders TO us-east"},
	} {
		t.Run(request, func(t *testing.T) {
			o := begin(t, request)
			hold, state := o.held()
			if want := "runnable:dataops;hold:before#" + test.node; hold.Address.String() != want || state.Operation != test.node {
				t.Errorf("holds at %s with %+v, want %s", hold.Address, state, want)
			}
			o.ran()
			out, err := o.answer("ann", nil)
			if err != nil || !strings.Contains(out.Report, "granted by ann") || out.Approval != "granted" || out.Approver != "ann" {
				t.Errorf("got %+v, %v", out, err)
			}
			o.ran(test.statement)
			if _, err := o.flow.Resume(t.Context(), "r", o.kept, graph.Answer(hold.ID, nil)); !errors.Is(err, graph.ErrFinished) {
				t.Errorf("the second grant: %v", err)
			}
			o.ran(test.statement)
		})
	}
}

func refusal(verb fermata.Verb, reason string) fermata.Refusal {
	return fermata.Refusal{Decision: fermata.Decision{Verb: verb, Reason: reason}}
}

func TestHold_DeniedOperationIsNotDone(t *testing.T) {
	o := begin(t, "forget customer 42")
	out, err := o.answer("ann", refusal(fermata.VerbReject, "they have an open order"))
	if err != nil || out.Report != "transform_destructive: denied by ann: they have an open order" || out.Approval != "" {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran()
}

func TestHold_TheApproverCannotNameSomebodyElse(t *testing.T) {
	for name, edit := range map[string]func(*State){
		"another person": func(s *State) { s.Approver = "eve" },
		"a grant":        func(s *State) { s.Approval = granted },
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, "forget customer 42")
			_, state := o.held()
			edit(&state)
			if _, err := o.answer("bob", state); !errors.Is(err, fermata.ErrForgedIdentity) {
				t.Errorf("got %v", err)
			}
			o.ran()
		})
	}
}

func TestHold_AGrantInTheInputIsRejected(t *testing.T) {
	w := NewWarehouse()
	flow, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	_, err = flow.Run(t.Context(), State{Request: "forget customer 42", Approval: granted, Approver: "ann"}, graph.WithStore(memory.New()), graph.WithRun("r"))
	if !errors.Is(err, fermata.ErrForgedIdentity) || len(w.Statements()) > 0 {
		t.Errorf("got %v, %q", err, w.Statements())
	}
}

func TestHold_ReleasedWithoutApprovalIsNotDone(t *testing.T) {
	o := begin(t, "forget customer 42")
	hold, _ := o.held()
	out, err := o.flow.Resume(fermata.Resume(t.Context(), hold.ID), "r", o.kept)
	if err != nil || !strings.Contains(out.Report, "nobody granted it") {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran()
}

func TestHold_ResumedWithoutAnAnswerHolds(t *testing.T) {
	o := begin(t, "forget customer 42")
	grant := graph.WithStateModifier(func(_ fermata.Address, state any) error {
		s := state.(*State)
		s.Approval, s.Approver = granted, "nobody"
		return nil
	})
	_, err := o.flow.Resume(t.Context(), "r", o.kept, grant)
	if _, waits := fermata.ExtractInterruptInfo(err); !waits {
		t.Errorf("got %v, want the run to hold", err)
	}
	o.ran()
}

func TestHold_EditedPlanIsWhatRuns(t *testing.T) {
	o := begin(t, "forget customer 42")
	_, state := o.held()
	state.Where["archived"] = "yes"
	out, err := o.answer("ann", state)
	if err != nil || !strings.Contains(out.Report, "deleted 2 orders") {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran("DELETE FROM orders WHERE archived = yes AND customer = 42")
}

func TestHold_TheEditedStateMayComeAsJSONButNotInPart(t *testing.T) {
	o := begin(t, "forget customer 42")
	_, err := o.answer("ann", json.RawMessage(`{"where":{"customer":"42"}}`))
	if _, refused := errors.AsType[*fermata.AnswerError](err); !refused {
		t.Errorf("a part of the state: %v, want an AnswerError", err)
	}
	o.ran()
	_, state := o.held()
	whole, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.answer("ann", json.RawMessage(whole)); err != nil {
		t.Error(err)
	}
	o.ran("DELETE FROM orders WHERE customer = 42")
}

func TestEscalate_NewPlanIsHeldAgain(t *testing.T) {
	o := begin(t, "forget customer 42")
	first, _ := o.held()
	if _, err := o.answer("ann", refusal(fermata.VerbReturn, "keep what is not archived")); err == nil {
		t.Fatal("the run continued to its end")
	}
	second, state := o.held()
	if first.ID == second.ID || state.Where.String() != "archived = yes AND customer = 42" || state.Approval != "" {
		t.Errorf("holds at %s with %+v, want a narrower plan without a grant", second.ID, state)
	}
	o.ran()
	if _, err := o.answer("bob", nil); err != nil {
		t.Error(err)
	}
	o.ran("DELETE FROM orders WHERE archived = yes AND customer = 42")
}

func TestEscalate_WithoutAMoreCarefulWayEnds(t *testing.T) {
	o := begin(t, "drop column phone")
	out, err := o.answer("ann", refusal(fermata.VerbReturn, "the app reads it"))
	if err != nil || !strings.Contains(out.Report, "no more careful way") {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran()
}

func TestPlan_UnknownRequestIsReported(t *testing.T) {
	w := NewWarehouse()
	flow, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"", "forget", "please delete everything"} {
		out, err := flow.Run(t.Context(), State{Request: request})
		if err != nil || !strings.Contains(out.Report, "not understood") || len(w.Statements()) > 0 {
			t.Errorf("%q: %+v, %v, %q", request, out, err, w.Statements())
		}
	}
}

func TestWarehouse_WithoutAConditionDeletesNothing(t *testing.T) {
	if got := NewWarehouse().Delete(nil); got != "deleted 0 orders where " {
		t.Errorf("got %q", got)
	}
}
