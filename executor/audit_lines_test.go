package executor_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store/memory"
)

// In a year somebody shows a comment, a question or a reason, and says that it is the one of then. The log had the same digest for all of them.
func TestI12_TheLogKnowsWhatPeopleWrote(t *testing.T) {
	s := memory.NewStore(nil)
	e := office(t, s, new(dropper), nil)
	asked := startAs(t, e, "req").Interrupts[0].ID
	run := desk.From{Actor: desk.Actor{ID: "agent:run", Kind: desk.ActorAgent}}
	acts(t, e, asked,
		desk.Comment{From: by("bob"), Text: "looks wrong"}, desk.Comment{From: by("bob"), Text: "looks right"}, desk.Comment{From: by("bob"), Text: "looks wrong"},
		desk.AskClarification{From: by("bob"), Question: "why"}, desk.AskClarification{From: by("bob"), Question: "what for"},
		desk.AnswerClarification{From: run, Number: 2, Answer: "looks right"},
		desk.Delegate{From: by("bob"), To: "eve", Reason: "why"},
		desk.Escalate{From: by("bob"), Reason: "why"},
	)
	said := recorded[audit.RequestCommented](t, s)
	if len(said) != 4 || said[0] == said[1] || said[0] != said[2] || said[3] != said[1] {
		t.Errorf("comments: %+v", said)
	}
	words := recorded[audit.RequestDecided](t, s)
	if len(words) != 2 || words[0].Reason == words[1].Reason {
		t.Fatalf("questions: %+v", words)
	}
	why := words[0].Reason
	if d := recorded[audit.RequestDelegated](t, s); len(d) != 1 || d[0].Reason != why {
		t.Errorf("why it was delegated: %+v", d)
	}
	if d := recorded[audit.RequestEscalated](t, s); len(d) != 1 || d[0].Reason != why {
		t.Errorf("why it was escalated: %+v", d)
	}
}

// An answer settles what a run does next. The log said that somebody answered, and not what.
func TestI12_TheLogKnowsWhatWasAnswered(t *testing.T) {
	type review struct {
		Text string `json:"text"`
	}
	kind := fermata.NewKind[review, review]("log-review")
	p := single(t, "ask", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		said, err := kind.Ask(ctx, review{o.Table})
		o.Receipt = said.Text
		return o, err
	})
	s := memory.NewStore(nil)
	e := executorOf(t, s, p, nil)
	asked := waits(t, began(t, e, "a", "inproc:ask", `{"table":"users"}`)).Interrupts[0].ID
	completed(t, mustRun(t, e, word("ann", "a", "r1", asked, `{"text":"keep it"}`)))
	words := recorded[audit.RequestDecided](t, s)
	if len(words) != 1 || words[0].Answer == (audit.Digest{}) {
		t.Fatalf("%+v", words)
	}
}

// Who may decide by now, and that the use of a grant is the effect which follows, could not be told from the log.
func TestI12_TheLogKnowsWhoWasLetInAndWhatAGrantWasUsedFor(t *testing.T) {
	s, d := memory.NewStore(nil), new(dropper)
	e := office(t, s, d, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, strings.Replace(oneDBA, `{from: ["group:dba"]}`, `{from: ["group:dba"], widen: ["group:owners"]}`, 1))
		route := desk.DefaultRoute()
		route.Steps = slices.Insert(route.Steps, 1, desk.Step{At: desk.Duration(time.Minute), Widen: []string{"group:owners"}})
		c.Desk.Routes = map[string]desk.Route{"default": route}
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	acts(t, e, asked, desk.Escalate{From: by("bob")})
	if let := recorded[audit.RequestEscalated](t, s); len(let) != 2 || !slices.Equal(let[1].To, []string{"group:owners"}) {
		t.Errorf("who was let in: %+v", let)
	}
	mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
	if words := recorded[audit.RequestDecided](t, s); len(words) != 1 || !slices.Equal(words[0].Groups, []string{"dba or owners"}) {
		t.Errorf("for whom bob spoke: %+v", words)
	}
	if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", Auth: desk.AuthMFA, TTL: time.Hour, MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	completed(t, mustRun(t, e, dropAs("req", "again")))
	used, begun := recorded[audit.GrantUsed](t, s), recorded[audit.EffectBegun](t, s)
	if len(used) != 1 || len(begun) != 2 || used[0].Action.Args != begun[1].Action.Args {
		t.Errorf("the grant was used for %+v, and what was begun is %+v", used, begun)
	}
	if begun[1].Ruling.Digest != e.CurrentPolicy().Digest() {
		t.Errorf("by which policy nobody was asked: %+v", begun[1].Ruling)
	}
}

// A digest whose payload is gone was erased by order, or somebody made it disappear. Only the log could tell, and did not.
func TestI12_TheLogKnowsWhatWasErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Poll, c.Retention, c.RequestTimeout = 6*time.Hour, 24*time.Hour, -1 })
		startSpy(t, e, "over")
		over := known(t, s, "over").Run.ID
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.StartWorkers()
		time.Sleep(48 * time.Hour)
		startSpy(t, e, "open")
		open := known(t, s, "open").Run.ID
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		want := []audit.PayloadsErased{{Payloads: []string{over}, Order: "retention"}, {Payloads: []string{open}, Order: "erasure"}}
		if got := recorded[audit.PayloadsErased](t, s); !reflect.DeepEqual(got, want) {
			t.Errorf("the log says %+v, want %+v", got, want)
		}
	})
}

// A deadline that somebody moves is in the log.
func TestI12_MovingADeadlineIsInTheLog(t *testing.T) {
	s := memory.NewStore(nil)
	e := executorOf(t, s, asking([]string{"a"}, nil), nil)
	waits(t, mustRun(t, e, scriptedStart()))
	before := lines(t, s)
	doc, err := e.Act(t.Context(), "acme", "a", desk.Extend{From: by("ann"), Until: time.Now().Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if after := lines(t, s); len(after) == len(before) {
		t.Errorf("I12: ann moved the deadline to %v, and the log says only %q", doc.Deadline, after)
	}
}

// Whether people were reminded and paged is asked when nobody has answered. The log tells a step that told somebody from one that did not, and why it did not.
func TestI12_TheLogTellsStepsThatNobodyHeardOf(t *testing.T) {
	route := desk.DefaultRoute()
	route.Steps[1].At, route.Steps[2].At = desk.Duration(10*time.Minute), desk.Duration(20*time.Minute) // the reminder and the page
	for name, test := range map[string]struct {
		before func(t *testing.T, e *executor.Executor, asked string)
		steps  []string
	}{
		"nobody looks": {func(*testing.T, *executor.Executor, string) {}, []string{"step", "step"}},
		"somebody has seen it": {func(t *testing.T, e *executor.Executor, asked string) {
			acts(t, e, asked, desk.View{From: by("bob")})
		}, []string{"step_skipped", "step"}},
		"no server was there when it was time": {func(*testing.T, *executor.Executor, string) { time.Sleep(30 * time.Minute) }, []string{"step_missed", "step"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				e := office(t, s, new(dropper), func(c *executor.Config) {
					c.Poll, c.Desk.Routes = time.Minute, map[string]desk.Route{"default": route}
				})
				test.before(t, e, startAs(t, e, "req").Interrupts[0].ID)
				e.StartWorkers()
				time.Sleep(25 * time.Minute)
				var steps []string
				for _, change := range recorded[audit.RequestChanged](t, s) {
					if strings.HasPrefix(change.What, "step") {
						steps = append(steps, change.What)
					}
				}
				if !slices.Equal(steps, test.steps) {
					t.Errorf("the log says %q, want %q", steps, test.steps)
				}
			})
		})
	}
}
