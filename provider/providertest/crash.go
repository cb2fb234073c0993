package providertest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// scenario is a run from its start to its end: after each execution but the last comes an action.
type scenario struct {
	graph   string
	input   json.RawMessage
	actions []func(*driver)
}

// maxCalls is more than the store calls of any execution.
const maxCalls = 500

// runWithCrashes repeats a scenario with a store outage at each store call of each execution, and
// checks how it ends.
func (p scenario) runWithCrashes(t *testing.T, s Subject, check func(*driver, provider.Outcome)) {
	t.Helper()
	if s.sampled() {
		p.runWithSomeCrashes(t, s, check)
		return
	}
	for stage := range len(p.actions) + 1 {
		for _, kind := range []struct{ late, once bool }{{}, {late: true}, {once: true}} {
			for at := range maxCalls {
				f := &faults{at: at, late: kind.late, once: kind.once}
				t.Run(fmt.Sprintf("execution %d, %s", stage+1, f), func(t *testing.T) { p.runWithCrash(t, s, stage, f, check) })
				if !f.hit {
					break
				}
			}
		}
	}
}

// runWithSomeCrashes repeats a scenario twice, with an outage in the first and the last execution.
func (p scenario) runWithSomeCrashes(t *testing.T, s Subject, check func(*driver, provider.Outcome)) {
	t.Helper()
	for n, stage := range []int{0, len(p.actions)} {
		f := &faults{at: 1 + n, late: n == 1}
		t.Run(fmt.Sprintf("execution %d, %s", stage+1, f), func(t *testing.T) {
			t.Parallel()
			p.runWithCrash(t, s, stage, f, check)
		})
	}
}

// runWithCrash runs the scenario once.
func (p scenario) runWithCrash(t *testing.T, s Subject, stage int, f *faults, check func(*driver, provider.Outcome)) {
	d := begin(t, s, p.graph, p.input)
	var outcome provider.Outcome
	for i := range len(p.actions) + 1 {
		if i == stage {
			outcome = d.executeThroughOutage(t, f)
		} else {
			outcome = d.mustExecute()
		}
		if i < len(p.actions) {
			if len(d.open) == 0 {
				t.Fatalf("it does not wait: %#v", outcome)
			}
			p.actions[i](d)
		}
	}
	check(d, outcome)
}

// executeThroughOutage executes until the store is gone, and then again in another process. An
// execution that cannot write must return an error. Only if a single call failed may the provider
// have recovered, and then the run must not fail either.
func (d *driver) executeThroughOutage(t *testing.T, f *faults) provider.Outcome {
	t.Helper()
	d.faults = f
	result, err := d.execute(t.Context())
	if !f.hit && err != nil {
		t.Fatal(err)
	}
	if err == nil {
		_, failed := result.Outcome.(provider.Failed)
		if f.hit && (failed || !f.once) {
			t.Errorf("it could not write, but returned %#v", result.Outcome)
		}
		if !f.hit || f.once && !failed {
			d.faults = nil
			d.endExecution(result)
			return result.Outcome
		}
	}
	d.takeOver(t)
	return d.mustExecute()
}

func (s Subject) reviewScenario() scenario {
	p := scenario{graph: s.Review.Graph, input: s.Review.Input}
	if !s.Review.SingleQuestion {
		p.actions = append(p.actions, func(d *driver) { d.decide(s.Review.Revise, d.open[0]) })
	}
	p.actions = append(p.actions, func(d *driver) { d.decide(s.Review.Approve, d.open[0]) })
	return p
}

// testCrash: saved work is not repeated. Work that was in progress during the outage may be
// repeated once.
func testCrash(t *testing.T, s Subject) {
	s.reviewScenario().runWithCrashes(t, s, func(d *driver, outcome provider.Outcome) {
		d.t.Helper()
		if _, ok := outcome.(provider.Completed); !ok {
			d.t.Errorf("it returned %#v", outcome)
		}
		if n := d.world.repeated(); n > 1 {
			d.t.Errorf("%d pieces of work were repeated", n)
		}
		if d.world.count(workPublish) == 0 {
			d.t.Error("it was not published")
		}
	})
}

func testPairCrash(t *testing.T, s Subject) {
	answer := func(d *driver) { d.decide(s.Pair.Answer, d.open[0]) }
	p := scenario{graph: s.Pair.Graph, input: s.Pair.Input, actions: []func(*driver){answer, answer}}
	if !s.New(t, newWorld()).Capabilities().PartialResume { // the executor has collected both
		p.actions = []func(*driver){func(d *driver) { d.decide(s.Pair.Answer, d.open...) }}
	}
	p.runWithCrashes(t, s, func(d *driver, outcome provider.Outcome) {
		d.t.Helper()
		if _, ok := outcome.(provider.Completed); !ok {
			d.t.Errorf("it returned %#v", outcome)
		}
		if n := d.world.repeated(); n > 1 {
			d.t.Errorf("%d pieces of work were repeated", n)
		}
	})
}

func startDrop(t *testing.T, s Subject) (*driver, provider.Interrupt) {
	t.Helper()
	d := begin(t, s, s.Drop.Graph, s.Drop.Input)
	q := d.waits(1)[0]
	if q.Kind != fermata.Approval.Name() {
		t.Fatalf("it does not request an approval: %+v", q)
	}
	d.wantNotDone(workDrop)
	return d, q
}

// ledger returns the recorded effects of the run.
func (d *driver) ledger() []store.Effect {
	d.t.Helper()
	history, err := d.store.History(d.t.Context(), d.account, d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	return history.Effects
}

func testEffect(t *testing.T, s Subject) {
	d, q := startDrop(t, s)
	d.decide(s.Drop.Approve, q)
	d.completes()
	d.wantOnce(workDrop)
	lines := d.ledger()
	if len(lines) != 1 || lines[0].Interrupt != q.ID || lines[0].State != store.EffectSucceeded {
		t.Errorf("the ledger has %+v", lines)
	}
}

func testEffectRejected(t *testing.T, s Subject) {
	d, q := startDrop(t, s)
	d.decide(s.Drop.Reject, q)
	d.mustExecute()
	d.wantNotDone(workDrop)
	if lines := d.ledger(); len(lines) != 0 {
		t.Errorf("the ledger has %+v", lines)
	}
}

// answerInDoubt answers an interrupt about an effect in doubt, and continues.
func (d *driver) answerInDoubt(outcome provider.Outcome) provider.Outcome {
	d.t.Helper()
	for len(d.open) == 1 && d.open[0].Kind == fermata.EffectInDoubt.Name() {
		answer := fermata.EffectResolution{Happened: d.world.count(workDrop) > 0}
		if answer.Happened {
			answer.Receipt = d.subject.Drop.Receipt
		}
		resolution, err := json.Marshal(answer)
		if err != nil {
			d.t.Fatal(err)
		}
		d.decide(resolution, d.open[0])
		outcome = d.mustExecute()
	}
	return outcome
}

// testEffectCrash: an effect is never performed twice. If its outcome is unknown, a person is
// asked.
func testEffectCrash(t *testing.T, s Subject) {
	p := scenario{graph: s.Drop.Graph, input: s.Drop.Input, actions: []func(*driver){func(d *driver) { d.decide(s.Drop.Approve, d.open[0]) }}}
	p.runWithCrashes(t, s, func(d *driver, outcome provider.Outcome) {
		d.t.Helper()
		if outcome = d.answerInDoubt(outcome); len(d.open) > 0 {
			d.t.Fatalf("it asks %+v", d.open)
		}
		if _, ok := outcome.(provider.Completed); !ok {
			d.t.Errorf("it returned %#v", outcome)
		}
		d.wantOnce(workDrop)
	})
}
