package providertest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// play is a run from its start to its end: after each execution but the last comes a move.
type play struct {
	graph string
	input json.RawMessage
	moves []func(*driver)
}

// maxCalls is more than any execution calls the store.
const maxCalls = 500

// crashes has a play cut off from the store at each call of each of its executions, and looks how it ends.
func (p play) crashes(t *testing.T, s Subject, check func(*driver, provider.Rest)) {
	t.Helper()
	for stage := range len(p.moves) + 1 {
		for _, kind := range []struct{ late, once bool }{{}, {late: true}, {once: true}} {
			for at := range maxCalls {
				f := &faults{at: at, late: kind.late, once: kind.once}
				t.Run(fmt.Sprintf("execution %d, %s", stage+1, f), func(t *testing.T) { p.crash(t, s, stage, f, check) })
				if !f.hit {
					break
				}
			}
		}
	}
}

// crash plays once.
func (p play) crash(t *testing.T, s Subject, stage int, f *faults, check func(*driver, provider.Rest)) {
	d := begin(t, s, p.graph, p.input)
	var rest provider.Rest
	for i := range len(p.moves) + 1 {
		if i == stage {
			rest = d.survives(t, f)
		} else {
			rest = d.mustExecute()
		}
		if i < len(p.moves) {
			if len(d.open) == 0 {
				t.Fatalf("it does not wait: %#v", rest)
			}
			p.moves[i](d)
		}
	}
	check(d, rest)
}

// survives executes until the store is gone, and then again in another process. Whoever cannot write has come to nothing; only if a single call
// failed may the provider have got over it, and even then the run is not at fault.
func (d *driver) survives(t *testing.T, f *faults) provider.Rest {
	t.Helper()
	d.faults = f
	result, err := d.execute(t.Context())
	if !f.hit && err != nil {
		t.Fatal(err)
	}
	if err == nil {
		_, failed := result.Rest.(provider.Failed)
		if f.hit && (failed || !f.once) {
			t.Errorf("it could not write, and came to %#v", result.Rest)
		}
		if !f.hit || f.once && !failed {
			d.faults = nil
			d.rest(result)
			return result.Rest
		}
	}
	d.takeOver(t)
	return d.mustExecute()
}

func (s Subject) reviewPlay() play {
	p := play{graph: s.Review.Graph, input: s.Review.Input}
	if !s.Review.Once {
		p.moves = append(p.moves, func(d *driver) { d.decide(s.Review.Revise, d.open[0]) })
	}
	p.moves = append(p.moves, func(d *driver) { d.decide(s.Review.Approve, d.open[0]) })
	return p
}

// testCrash: what was done and written down is not done again. What was under way when the store was gone may be, once.
func testCrash(t *testing.T, s Subject) {
	s.reviewPlay().crashes(t, s, func(d *driver, rest provider.Rest) {
		d.t.Helper()
		if _, ok := rest.(provider.Completed); !ok {
			d.t.Errorf("it came to %#v", rest)
		}
		if n := d.world.repeated(); n > 1 {
			d.t.Errorf("%d pieces of work were done again", n)
		}
		if d.world.count(workPublish) == 0 {
			d.t.Error("it was not published")
		}
	})
}

func testPairCrash(t *testing.T, s Subject) {
	answer := func(d *driver) { d.decide(s.Pair.Answer, d.open[0]) }
	p := play{graph: s.Pair.Graph, input: s.Pair.Input, moves: []func(*driver){answer, answer}}
	p.crashes(t, s, func(d *driver, rest provider.Rest) {
		d.t.Helper()
		if _, ok := rest.(provider.Completed); !ok {
			d.t.Errorf("it came to %#v", rest)
		}
		if n := d.world.repeated(); n > 1 {
			d.t.Errorf("%d pieces of work were done again", n)
		}
	})
}

func dropped(t *testing.T, s Subject) (*driver, provider.Question) {
	t.Helper()
	d := begin(t, s, s.Drop.Graph, s.Drop.Input)
	q := d.waits(1)[0]
	if q.Kind != fermata.Approval.Name() {
		t.Fatalf("it does not ask for an approval: %+v", q)
	}
	d.didNot(workDrop)
	return d, q
}

// ledger is what is known of the effects of the run.
func (d *driver) ledger() []store.Effect {
	d.t.Helper()
	history, err := d.store.History(d.t.Context(), d.account, d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	return history.Effects
}

func testEffect(t *testing.T, s Subject) {
	d, q := dropped(t, s)
	d.decide(s.Drop.Approve, q)
	d.completes()
	d.didOnce(workDrop)
	lines := d.ledger()
	if len(lines) != 1 || lines[0].Interrupt != q.ID || lines[0].State != store.Succeeded {
		t.Errorf("the ledger has %+v", lines)
	}
}

func testEffectRejected(t *testing.T, s Subject) {
	d, q := dropped(t, s)
	d.decide(s.Drop.Reject, q)
	d.mustExecute()
	d.didNot(workDrop)
	if lines := d.ledger(); len(lines) != 0 {
		t.Errorf("the ledger has %+v", lines)
	}
}

// tell answers whoever asks whether the effect happened, and goes on.
func (d *driver) tell(rest provider.Rest) provider.Rest {
	d.t.Helper()
	for len(d.open) == 1 && d.open[0].Kind == fermata.InDoubt.Name() {
		answer := fermata.WhatHappened{Happened: d.world.count(workDrop) > 0}
		if answer.Happened {
			answer.Receipt = d.subject.Drop.Receipt
		}
		said, err := json.Marshal(answer)
		if err != nil {
			d.t.Fatal(err)
		}
		d.decide(said, d.open[0])
		rest = d.mustExecute()
	}
	return rest
}

// testEffectCrash: an effect is never done twice. If nobody can know whether it was, a person is asked.
func testEffectCrash(t *testing.T, s Subject) {
	p := play{graph: s.Drop.Graph, input: s.Drop.Input, moves: []func(*driver){func(d *driver) { d.decide(s.Drop.Approve, d.open[0]) }}}
	p.crashes(t, s, func(d *driver, rest provider.Rest) {
		d.t.Helper()
		if rest = d.tell(rest); len(d.open) > 0 {
			d.t.Fatalf("it asks %+v", d.open)
		}
		if _, ok := rest.(provider.Completed); !ok {
			d.t.Errorf("it came to %#v", rest)
		}
		d.didOnce(workDrop)
	})
}
