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
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The digests in the log distinguish comments, questions and reasons. Regression: the log had the
// same digest for all of them.
func TestI12_LogHasDigestsOfTexts(t *testing.T) {
	s := memory.NewStore(nil)
	e := office(t, s, new(dropper), func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": desk.DefaultRoute(desk.DefaultPage)}
	})
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
		t.Errorf("digests of comments: %+v", said)
	}
	words := recorded[audit.RequestDecided](t, s)
	if len(words) != 2 || words[0].Reason == words[1].Reason {
		t.Fatalf("digests of questions: %+v", words)
	}
	why := words[0].Reason
	if d := recorded[audit.RequestDelegated](t, s); len(d) != 1 || d[0].Reason != why {
		t.Errorf("digest of the delegation reason: %+v", d)
	}
	if d := recorded[audit.RequestEscalated](t, s); len(d) != 1 || d[0].Reason != why {
		t.Errorf("digest of the escalation reason: %+v", d)
	}
}

// An answer determines what a run does next. Regression: the log recorded that a person answered,
// but not the answer.
func TestI12_LogHasDigestOfTheAnswer(t *testing.T) {
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
		t.Fatalf("decisions in the log: %+v", words)
	}
}

// The log records which groups may decide by now, and for which effect a grant was used.
func TestI12_LogHasWidenedGroupsAndGrantUse(t *testing.T) {
	s, d := memory.NewStore(nil), new(dropper)
	e := office(t, s, d, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, strings.Replace(oneDBA, `{from: ["group:dba"]}`, `{from: ["group:dba"], widen: ["group:owners"]}`, 1))
		route := desk.DefaultRoute(desk.DefaultPage)
		route.Steps = slices.Insert(route.Steps, 1, desk.Step{At: timespan.Duration(time.Minute), Widen: []string{"group:owners"}})
		c.Desk.Routes = map[string]desk.Route{"default": route}
	})
	asked := startAs(t, e, "req").Interrupts[0].ID
	acts(t, e, asked, desk.Escalate{From: by("bob")})
	if let := recorded[audit.RequestEscalated](t, s); len(let) != 2 || !slices.Equal(let[1].To, []string{"group:owners"}) {
		t.Errorf("widened groups: %+v", let)
	}
	mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))
	if words := recorded[audit.RequestDecided](t, s); len(words) != 1 || !slices.Equal(words[0].Groups, []string{"dba or owners"}) {
		t.Errorf("groups of bob's vote: %+v", words)
	}
	if _, err := e.CreateGrant(t.Context(), "acme", asked, executor.GrantRequest{By: "bob", Auth: requirement.AuthMFA, TTL: time.Hour, MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	completed(t, mustRun(t, e, dropAs("req", "again")))
	used, begun := recorded[audit.GrantUsed](t, s), recorded[audit.EffectBegun](t, s)
	if len(used) != 1 || len(begun) != 2 || used[0].Action.Args != begun[1].Action.Args {
		t.Errorf("the grant was used for %+v, but the begun effect is %+v", used, begun)
	}
	if begun[1].Ruling.Digest != e.CurrentPolicy().Digest() {
		t.Errorf("ruling of the effect without approval: %+v", begun[1].Ruling)
	}
}

// A digest whose payload is missing was erased by order, or someone removed it. Only the log can
// tell these cases apart.
func TestI12_LogHasErasedPayloads(t *testing.T) {
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
			t.Errorf("erasures in the log: %+v, want %+v", got, want)
		}
	})
}

// Moving a deadline is recorded in the log.
func TestI12_DeadlineExtensionIsInTheLog(t *testing.T) {
	s := memory.NewStore(nil)
	e := executorOf(t, s, asking([]string{"a"}, nil), nil)
	waits(t, mustRun(t, e, scriptedStart()))
	before := lines(t, s)
	doc, err := e.Act(t.Context(), "acme", "a", desk.Extend{From: by("ann"), Until: time.Now().Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if after := lines(t, s); len(after) == len(before) {
		t.Errorf("I12: ann moved the deadline to %v, but the log has only %q", doc.Deadline, after)
	}
}

// The log distinguishes a route step that notified people from a step that did not, and records the
// reason.
func TestI12_LogHasMissedSteps(t *testing.T) {
	route := desk.DefaultRoute(desk.DefaultPage)
	// the reminder and the page
	route.Steps[1].At, route.Steps[2].At = timespan.Duration(10*time.Minute), timespan.Duration(20*time.Minute)
	for name, test := range map[string]struct {
		before func(t *testing.T, e *executor.Executor, asked string)
		steps  []string
	}{
		"not viewed": {func(*testing.T, *executor.Executor, string) {}, []string{"step", "step"}},
		"viewed": {func(t *testing.T, e *executor.Executor, asked string) {
			acts(t, e, asked, desk.View{From: by("bob")})
		}, []string{"step_skipped", "step"}},
		"no server was running": {func(*testing.T, *executor.Executor, string) { time.Sleep(30 * time.Minute) }, []string{"step_missed", "step"}},
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
					t.Errorf("steps in the log: %q, want %q", steps, test.steps)
				}
			})
		})
	}
}

// The log tells what was proposed, what people made of it, what was approved and what ran.
// Regression: a decision about edited arguments had the edited digest as the proposed one, and an
// effect had no name.
func TestI12_LogTellsProposedEditedApprovedAndExecuted(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, strings.Replace(oneDBA, "deadline: 1h", `editable: [""], deadline: 1h`, 1))
		})
		asked := startAs(t, e, "req").Interrupts[0].ID
		completed(t, mustRun(t, e, word("bob", "drop-1", "r1", asked, `{"verb":"approve","args":"old_users"}`)))

		proposal, votes := recorded[audit.RequestAsked](t, s), recorded[audit.RequestDecided](t, s)
		begun, ended := recorded[audit.EffectBegun](t, s), recorded[audit.EffectEnded](t, s)
		if len(proposal) != 1 || len(votes) != 2 || len(begun) != 1 || len(ended) != 1 {
			t.Fatalf("lines: %+v %+v %+v %+v", proposal, votes, begun, ended)
		}
		proposed, approved := proposal[0].Action, votes[1].Approved
		for _, vote := range votes {
			if vote.Action.Name != "drop-table" || vote.Action.Args != proposed.Args || vote.Edited != approved || vote.Edited == proposed.Args {
				t.Errorf("vote %+v, proposed %+v", vote, proposed)
			}
		}
		if votes[0].Verb != audit.VerbApproveWithEdits || votes[0].Settles || votes[0].Approved != (audit.Digest{}) || !votes[1].Settles {
			t.Errorf("votes: %+v", votes)
		}
		for _, ran := range []audit.Action{begun[0].Action, ended[0].Action} {
			if ran.Name != "drop-table" || ran.Args != approved {
				t.Errorf("ran %+v, approved %+v", ran, approved)
			}
		}
		trails, err := audit.Trails(audit.RecordsAbout(t.Context(), audit.NewStoreLog(s), "acme", asked))
		if err != nil || len(trails) != 1 {
			t.Fatal(trails, err)
		}
		trail := trails[0]
		if trail.Action != "drop-table" || trail.Proposed.Digest != proposed.Args || trail.Edited[0].Digest != approved || trail.Approved.Digest != approved ||
			trail.Approved.By != "bob" || trail.Executed[0].Digest != approved || trail.Executed[0].State != audit.EffectStateSucceeded || !trail.AsApproved() {
			t.Errorf("trail: %+v", trail)
		}
	})
}
