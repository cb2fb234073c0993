package main

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
	// A grant in the input must not count.
	input := State{Request: request, Approval: Granted}
	_, err = o.flow.Run(t.Context(), input, o.kept, graph.WithRun("r"))
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
			state.Approval = Granted
			out, err := o.answer("ann", state)
			if err != nil || !strings.Contains(out.Report, "granted by ann") {
				t.Errorf("got %+v, %v", out, err)
			}
			o.ran(test.statement)
			if _, err := o.flow.Resume(t.Context(), "r", o.kept, graph.Answer(hold.ID, state)); !errors.Is(err, graph.ErrFinished) {
				t.Errorf("the second grant: %v", err)
			}
			o.ran(test.statement)
		})
	}
}

func TestHold_DeniedOperationIsNotDone(t *testing.T) {
	for name, test := range map[string]struct {
		edit       func(*State)
		by, report string
	}{
		"denied":                         {func(s *State) { s.Approval = Denied }, "ann", "denied by ann"},
		"returned unchanged":             {func(*State) {}, "", "not granted"},
		"an approver without a decision": {func(*State) {}, "ann", "not granted"},
		"an unknown decision":            {func(s *State) { s.Approval = "Granted" }, "ann", "not granted"},
		"granted without a name":         {func(s *State) { s.Approval = Granted }, "", "names no person"},
		"denied with another where":      {func(s *State) { s.Approval, s.Where = Denied, Where{"customer": "7"} }, "ann", "denied by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, "forget customer 42")
			_, state := o.held()
			test.edit(&state)
			out, err := o.answer(test.by, state)
			if err != nil || !strings.Contains(out.Report, test.report) {
				t.Errorf("got %+v, %v; want a report with %q", out, err, test.report)
			}
			o.ran()
		})
	}
}

func TestHold_TheApproverCannotNameSomebodyElse(t *testing.T) {
	o := begin(t, "forget customer 42")
	_, state := o.held()
	state.Approval, state.Releases = Granted, []graph.HoldRecord{{Node: destructive, When: "before", By: "eve"}}
	if _, err := o.answer("bob", state); !errors.Is(err, fermata.ErrForgedIdentity) {
		t.Errorf("got %v", err)
	}
	o.ran()
}

func TestHold_ReleasedWithoutApprovalIsNotDone(t *testing.T) {
	o := begin(t, "forget customer 42")
	hold, _ := o.held()
	out, err := o.flow.Resume(fermata.Resume(t.Context(), hold.ID), "r", o.kept)
	if err != nil || !strings.Contains(out.Report, "not granted") {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran()
}

func TestHold_ResumedWithoutAnAnswerHolds(t *testing.T) {
	o := begin(t, "forget customer 42")
	grant := graph.WithStateModifier(func(_ fermata.Address, state any) error {
		s := state.(*State)
		s.Approval, s.Releases = Granted, []graph.HoldRecord{{By: "nobody"}}
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
	state.Approval = Granted
	out, err := o.answer("ann", state)
	if err != nil || !strings.Contains(out.Report, "deleted 2 orders") {
		t.Errorf("got %+v, %v", out, err)
	}
	o.ran("DELETE FROM orders WHERE archived = yes AND customer = 42")
}

func TestHold_TheEditedStateMayComeAsJSONButNotInPart(t *testing.T) {
	o := begin(t, "forget customer 42")
	_, err := o.answer("ann", json.RawMessage(`{"approval":"granted"}`))
	if _, refused := errors.AsType[*fermata.AnswerError](err); !refused {
		t.Errorf("a part of the state: %v, want an AnswerError", err)
	}
	o.ran()
	_, state := o.held()
	state.Approval = Granted
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
	first, state := o.held()
	// the grant with it must not count
	state.Escalated, state.Approval = true, Granted
	if _, err := o.answer("ann", state); err == nil {
		t.Fatal("the run continued to its end")
	}
	second, state := o.held()
	if first.ID == second.ID || state.Where.String() != "archived = yes AND customer = 42" || state.Approval != "" || state.Escalated {
		t.Errorf("holds at %s with %+v, want a narrower plan without a grant", second.ID, state)
	}
	o.ran()
	state.Approval = Granted
	if _, err := o.answer("bob", state); err != nil {
		t.Error(err)
	}
	o.ran("DELETE FROM orders WHERE archived = yes AND customer = 42")
}

func TestEscalate_WithoutAMoreCarefulWayEnds(t *testing.T) {
	o := begin(t, "drop column phone")
	_, state := o.held()
	state.Escalated = true
	out, err := o.answer("ann", state)
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
