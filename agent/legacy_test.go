package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
)

type oldInfo struct {
	Question string `json:"question"`
	Step     int    `json:"step"`
}

// oldForm is an agent that builds its interrupt itself, with Data and nothing else, and reads it
// back when it is resumed.
func oldForm(c *counter, name string) agent.Agent {
	r := &resumer{player: player{name: name}}
	r.perform = func(_ context.Context, _ *agent.Input, yield yield) {
		c.add("run " + name)
		yield(&agent.Event{Body: agent.Interrupted{Info: &fermata.InterruptInfo{Data: &oldInfo{Question: name + "?", Step: 7}}}}, nil)
	}
	r.resume = func(_ context.Context, info *agent.ResumeInfo, yield yield) {
		c.add("resume " + name)
		var old oldInfo
		data, _ := info.InterruptInfo.Data.(json.RawMessage)
		if err := json.Unmarshal(data, &old); err != nil {
			yield(nil, err)
			return
		}
		yield(says(name+" asked "+old.Question+" and goes on"), nil)
	}
	return r
}

func TestLegacy_AnAgentThatBuildsItsInterruptItselfWaitsAndIsResumed(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent { return oldForm(&c, "old") }
		open := p.query("go")
		body := open.interrupted(t)
		if data, ok := body.Info.Data.(*oldInfo); !ok || data.Step != 7 {
			t.Errorf("the event has the data %#v", body.Info.Data)
		}
		ic := one(t, body.Interrupts)
		if asked, err := fermata.InfoAs[oldInfo](ic); err != nil || asked.Question != "old?" || ic.Address.String() != "agent:old" {
			t.Errorf("waits with %+v, %v at %s", asked, err, ic.Address)
		}
		p.answer(ic, nil).wantLog(t, "old says old asked old? and goes on", "old finished")
		c.want(t, map[string]int{"run old": 1, "resume old": 1})
	})
}

func TestLegacy_AnInterruptWithoutDataIsAnError(t *testing.T) {
	r := newRunner(t, &player{"a", func(_ context.Context, _ *agent.Input, yield yield) {
		yield(&agent.Event{Body: agent.Interrupted{Info: &fermata.InterruptInfo{}}}, nil)
	}})
	if p := record(r.Query(t.Context(), "go")); p.err == nil || !strings.Contains(p.err.Error(), "agent.Interrupt") {
		t.Errorf("got %q, %v", p.log(), p.err)
	}
}

// Data is there for agents of the newer form, too.
func TestLegacy_DataIsTheInfoOfTheInterrupt(t *testing.T) {
	for name, test := range map[string]struct {
		perform func(ctx context.Context, yield yield)
		want    any
	}{
		"of one": {func(ctx context.Context, yield yield) { yield(agent.Interrupt(ctx, "well?"), nil) }, "well?"},
		"of a composite": {func(ctx context.Context, yield yield) {
			one, two := fermata.AppendAddressSegment(ctx, "part", "1"), fermata.AppendAddressSegment(ctx, "part", "2")
			yield(agent.CompositeInterrupt(ctx, "both?", nil, agent.Interrupt(one, "1?"), agent.Interrupt(two, "2?")), nil)
		}, "both?"},
		"of several": {func(ctx context.Context, yield yield) {
			one, two := fermata.AppendAddressSegment(ctx, "part", "1"), fermata.AppendAddressSegment(ctx, "part", "2")
			yield(nil, errors.Join(fermata.Interrupt(one, "1?"), fermata.Interrupt(two, "2?")))
		}, []any{"1?", "2?"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, &player{"a", func(ctx context.Context, _ *agent.Input, yield yield) { test.perform(ctx, yield) }})
			got := record(r.Query(t.Context(), "go")).interrupted(t).Info.Data
			if a, b := must(json.Marshal(got)), must(json.Marshal(test.want)); string(a) != string(b) {
				t.Errorf("got %s, want %s", a, b)
			}
		})
	}
}

func TestLegacy_ResumeInfoEmbedsTheInterrupt(t *testing.T) {
	a := &resumer{player: player{name: "a", perform: func(ctx context.Context, _ *agent.Input, yield yield) {
		yield(agent.StatefulInterrupt(ctx, oldInfo{Question: "well?"}, 3), nil)
	}}}
	var id string
	a.resume = func(_ context.Context, info *agent.ResumeInfo, yield yield) {
		if info.Run != "run" || len(info.Interrupts) != 1 || info.Interrupts[0].ID != id || string(info.Data.(json.RawMessage)) != `{"question":"well?","step":0}` {
			t.Errorf("got %+v", info.InterruptInfo)
		}
		yield(says("done"), nil)
	}
	r := newRunner(t, a)
	open := one(t, record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t))
	id = open.ID
	record(r.ResumeWithParams(t.Context(), "run", answer(open, "yes"))).finished(t)
}

// Resume without answers is the answer to all interrupts that need no data.
func TestResume_WithoutAnswersContinuesEveryPlainInterrupt(t *testing.T) {
	inEveryStore(t, func(t *testing.T, p *processStory) {
		var c counter
		p.build = func() agent.Agent {
			return must(agent.NewParallel("all", "", holder(&c, "a", 1), oldForm(&c, "b")))
		}
		if open := p.query("go").waits(t); len(open) != 2 {
			t.Fatalf("waits for %q", infos(open))
		}
		p.resume().finished(t)
		c.want(t, map[string]int{"run a": 1, "run b": 1, "resume a": 1, "resume b": 1})
	})
}

// I5: a question of a kind is not passed by a resume without an answer, whatever else waits.
func TestI5_ResumeWithoutAnswersLeavesQuestionsOpen(t *testing.T) {
	var c counter
	r := newRunner(t, must(agent.NewParallel("all", "", holder(&c, "a", 1), asker(&c, "b"), chat(&c, "clerk", tools(booking(&c)), script.Say("Done.")))))
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	again := record(r.Resume(t.Context(), "run")).waits(t)
	if left := one(t, again); left.ID != find(t, open, "b?").ID {
		t.Errorf("waits for %q", infos(again))
	}
	if third := record(r.Resume(t.Context(), "run")).waits(t); one(t, third).ID != one(t, again).ID || c.of("enter b") != 1 {
		t.Errorf("waits for %q; b was entered %d times", infos(third), c.of("enter b"))
	}
}

// With one answer in the context, the other interrupts stay open.
func TestResume_WithAnAnswerInTheContextContinuesOnlyItsTarget(t *testing.T) {
	var c counter
	r := newRunner(t, must(agent.NewParallel("all", "", holder(&c, "a", 1), holder(&c, "b", 1))))
	open := record(r.Query(t.Context(), "go", agent.WithRun("run"))).waits(t)
	ctx := fermata.ResumeWithData(t.Context(), find(t, open, "a 1?").ID, "A")
	if left := record(r.Resume(ctx, "run")).waits(t); one(t, left).ID != find(t, open, "b 1?").ID {
		t.Errorf("waits for %q", infos(left))
	}
}

// After a failure, a resume repeats the failed work and answers nothing: the interrupts next to it
// may not have been shown.
func TestResume_AfterAFailureAnswersNothing(t *testing.T) {
	var c counter
	fail := true
	failing := &player{"b", func(_ context.Context, _ *agent.Input, yield yield) {
		if fail {
			yield(nil, errors.New("no connection"))
			return
		}
		yield(says("fine"), nil)
	}}
	r := newRunner(t, must(agent.NewParallel("all", "", holder(&c, "a", 1), failing)))
	if p := record(r.Query(t.Context(), "go", agent.WithRun("run"))); p.err == nil {
		t.Fatal("it did not fail")
	}
	fail = false
	open := record(r.Resume(t.Context(), "run")).waits(t)
	if ic := one(t, open); ic.Info != "a 1?" {
		t.Errorf("waits for %q", infos(open))
	}
	if saved := must(r.Inspect(t.Context(), "run")); saved.Status != graph.StatusWaiting {
		t.Errorf("status %s", saved.Status)
	}
}
