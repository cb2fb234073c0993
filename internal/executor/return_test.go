package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
)

// dropRules are the rules for dropping a table, with more keys under ask.
func dropRules(more string) string {
	return `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask:
    groups: [{from: ["group:dba"]}]
    editable: [""]
    deadline: 1h
    ` + more + "\n"
}

func dropOffice(t *testing.T, s store.Store, d *dropper, more string) *executor.Executor {
	t.Helper()
	return d.executor(t, s, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, dropRules(more))
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
		c.Poll = 10 * time.Second
	})
}

// outcomeOf returns the outcome of the run drop-1.
func outcomeOf(t *testing.T, e *executor.Executor, s store.Store) (fermata.Outcome, error) {
	t.Helper()
	run, err := s.Get(t.Context(), "acme", "drop-1")
	if err != nil {
		t.Fatal(err)
	}
	return e.Await(t.Context(), executor.RunRequest{Account: "acme", StateKey: "drop-1", Wait: time.Minute}, run.ID)
}

// verbsOf returns the verbs of the decisions in the audit log.
func verbsOf(t *testing.T, s store.Store) (verbs []string) {
	t.Helper()
	kept, err := s.AuditLines(t.Context(), "acme", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range kept {
		var record struct {
			Kind string `json:"kind"`
			Body struct {
				Verb string `json:"verb"`
			} `json:"body"`
		}
		if err := json.Unmarshal(line.Raw, &record); err != nil {
			t.Fatal(err)
		}
		if record.Body.Verb != "" {
			verbs = append(verbs, record.Body.Verb)
		}
	}
	return verbs
}

func TestReturn_EscalationSendsTheReasonToTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := dropOffice(t, s, d, "on_escalate: return")
		e.StartWorkers()
		id := startAs(t, e, "req").Interrupts[0].ID
		from := desk.From{Actor: desk.PersonActor("eve", requirement.AuthSSO), Via: "web"}
		_, err := e.Act(t.Context(), "acme", id, desk.Escalate{From: from, Reason: "use the archive"})
		if !errors.Is(err, desk.ErrNotMember) {
			t.Errorf("a person in no group: %v, want ErrNotMember", err)
		}
		from.Actor.ID = "ann"
		if _, err := e.Act(t.Context(), "acme", id, desk.Escalate{From: from}); err == nil {
			t.Error("returned without a reason")
		}
		from.IdempotencyKey = desk.IdempotencyKey{Key: "k", Digest: "d"}
		for range 2 {
			doc, err := e.Act(t.Context(), "acme", id, desk.Escalate{From: from, Reason: "use the archive"})
			if err != nil || doc.Decision == nil || doc.Decision.Outcome != desk.OutcomeReturned || !slices.Equal(doc.Decision.By, []string{"ann"}) {
				t.Fatalf("request %+v, %v", doc.Decision, err)
			}
		}
		outcome, err := outcomeOf(t, e, s)
		if failed, ok := outcome.(fermata.Failed); err != nil || !ok || failed.Code != "returned" || !strings.Contains(failed.Message, "use the archive") {
			t.Errorf("outcome %#v, %v", outcome, err)
		}
		if d.dropped.Load() > 0 {
			t.Error("a returned action was performed")
		}
		if verbs := verbsOf(t, s); !slices.Contains(verbs, string(audit.VerbReturn)) || slices.Contains(verbs, string(audit.VerbApprove)) {
			t.Errorf("verbs in the audit log: %v", verbs)
		}
		agree(t, e)
	})
}

func TestReturn_DecisionNeedsTheRule(t *testing.T) {
	for _, tt := range []struct {
		more string
		ok   bool
	}{{"on_escalate: return", true}, {"on_escalate: next_step", false}} {
		t.Run(tt.more, func(t *testing.T) {
			s, d := memory.NewStore(nil), new(dropper)
			e := dropOffice(t, s, d, tt.more)
			id := startAs(t, e, "req").Interrupts[0].ID
			outcome, err := says(t, e, "ann", "r1", `{"verb":"return","reason":"use the archive"}`)
			if !tt.ok {
				if _, bad := errors.AsType[*fermata.AnswerError](err); !bad {
					t.Errorf("%#v, %v, want an AnswerError", outcome, err)
				}
				doc, err := e.RequestDocument(t.Context(), "acme", id)
				if err != nil || doc.State != desk.StateOpen || doc.Rev != 1 {
					t.Errorf("the request has changed: %s, %v", doc.State, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			failedWith(t, outcome, "returned")
			agree(t, e)
		})
	}
}

func TestTimeout_RuleRejectsAndNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		e := dropOffice(t, s, d, "on_timeout: reject")
		id := startAs(t, e, "req").Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		if got := statusOf(t, s, "drop-1"); got != store.StatusFailed {
			t.Fatalf("the run is %s", got)
		}
		outcome, err := outcomeOf(t, e, s)
		if err != nil {
			t.Fatal(err)
		}
		failedWith(t, outcome, "rejected")
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.Decision.Outcome != desk.OutcomeRejected || !slices.Equal(doc.Decision.By, []string{desk.ClockName}) {
			t.Errorf("decision %+v, %v", doc.Decision, err)
		}
		if d.dropped.Load() > 0 {
			t.Error("I11: the action was performed")
		}
		agree(t, e)
	})
}

func TestEditReasons_ReachTheRunAndTheRequest(t *testing.T) {
	s, d := memory.NewStore(nil), new(dropper)
	e := dropOffice(t, s, d, "edit_reasons: [scope, cost]")
	startAs(t, e, "req")
	_, err := says(t, e, "ann", "r1", `{"verb":"approve","args":"users_copy"}`)
	if bad, ok := errors.AsType[*fermata.AnswerError](err); !ok || !strings.Contains(bad.Error(), "scope, cost") {
		t.Fatalf("edit without a code: %v", err)
	}
	outcome, err := says(t, e, "ann", "r2", `{"verb":"approve","args":"users_copy","codes":["scope"]}`)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, outcome)
	answers, _, err := e.ListSettled(t.Context(), "acme", "", 10)
	var said fermata.Decision
	if err != nil || len(answers) != 1 || json.Unmarshal(answers[0].Answer, &said) != nil || !slices.Equal(said.Codes, []string{"scope"}) {
		t.Errorf("the run gets %+v, %v", answers, err)
	}
	agree(t, e)
}

type held struct {
	Plans  int    `json:"plans"`
	Reason string `json:"reason"`
	Done   bool   `json:"done"`
}

var sizeOf = fermata.NewKind[string, int]("size-of", fermata.DefaultAnswer(7))

// heldAndAsked is a graph with a hold after which it asks a question.
func heldAndAsked(t *testing.T, s store.Store, ask string) *executor.Executor {
	t.Helper()
	g := graph.New[held]("held")
	g.Node("plan", func(_ context.Context, h held) (held, error) { h.Plans++; return h, nil })
	g.Node("act", func(ctx context.Context, h held) (held, error) {
		n, err := sizeOf.Ask(ctx, "how big?")
		h.Done = err == nil
		h.Plans += n
		return h, err
	})
	g.Edge(graph.Start, "plan")
	g.Edge("plan", "act")
	g.Edge("act", graph.End)
	g.HoldBefore("act")
	g.ReturnTo("plan", func(h *held, back fermata.Refusal) { h.Reason = back.By + ": " + back.Reason })
	return executorOf(t, s, providing(t, g), func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, `
default: deny
rules:
- id: people
  when: req.kind in ["hold", "size-of"]
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, `+ask+`}
`)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
		c.Poll = 10 * time.Second
	})
}

func answerOf(id, resume, value string) executor.DecideRequest {
	return executor.DecideRequest{Account: "acme", ResumeID: resume, Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value)}}}
}

func TestReturn_HoldContinuesAtItsNodeAndAQuestionFails(t *testing.T) {
	s := memory.NewStore(nil)
	e := heldAndAsked(t, s, "on_escalate: return")
	first := waits(t, began(t, e, "held-1", "inproc:held", `{"plans":0,"reason":"","done":false}`)).Interrupts[0]
	outcome, err := e.Decide(t.Context(), answerOf(first.ID, "1", `{"verb":"return","reason":"smaller"}`))
	if err != nil {
		t.Fatal(err)
	}
	second := waits(t, outcome).Interrupts[0]
	var state held
	if err := json.Unmarshal(second.Data, &state); err != nil || state != (held{Plans: 2, Reason: "ann: smaller"}) || second.ID == first.ID {
		t.Fatalf("state %+v, %v", state, err)
	}
	if outcome, err = e.Decide(t.Context(), answerOf(second.ID, "2", `null`)); err != nil {
		t.Fatal(err)
	}
	question := waits(t, outcome).Interrupts[0]
	if outcome, err = e.Decide(t.Context(), answerOf(question.ID, "3", `{"verb":"return","reason":"ask less"}`)); err != nil {
		t.Fatal(err)
	}
	failedWith(t, outcome, "returned")
	answers, _, err := e.ListSettled(t.Context(), "acme", "", 10)
	if err != nil || len(answers) != 3 {
		t.Fatalf("%+v, %v", answers, err)
	}
	if last := answers[2]; last.Answer != nil || last.Refusal == nil || last.Refusal.Verb != fermata.VerbReturn || last.Refusal.Reason != "ask less" || last.Refusal.By != "ann" {
		t.Errorf("the settled question: %+v", last)
	}
	agree(t, e)
}

func TestTimeout_DefaultAnswersTheQuestionAndNotTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		e := heldAndAsked(t, s, "on_timeout: reject")
		e.StartWorkers()
		began(t, e, "held-0", "inproc:held", `{"plans":0,"reason":"","done":false}`)
		time.Sleep(2 * time.Hour)
		if got := statusOf(t, s, "held-0"); got != store.StatusFailed {
			t.Errorf("a hold that was rejected by the clock: the run is %s", got)
		}
		answers, _, err := e.ListSettled(t.Context(), "acme", "", 10)
		if err != nil || len(answers) != 1 || answers[0].Expired || answers[0].Refusal == nil || answers[0].Refusal.Verb != fermata.VerbReject || answers[0].By != desk.ClockName {
			t.Errorf("the settled hold: %+v, %v", answers, err)
		}
		agree(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		p := single(t, "ask", inproc.FlowConfig[held]{}, func(ctx context.Context, h held) (held, error) {
			n, err := sizeOf.Ask(ctx, "how big?")
			h.Plans = n
			return h, err
		})
		e := executorOf(t, s, p, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, "default: deny\nrules:\n- id: ask\n  when: req.kind == \"size-of\"\n  then: ask\n  ask: {groups: [{from: [\"group:dba\"]}], deadline: 1h, on_timeout: default}\n")
			c.Poll = 10 * time.Second
		})
		e.StartWorkers()
		id := waits(t, began(t, e, "ask-1", "inproc:ask", `{"plans":0,"reason":"","done":false}`)).Interrupts[0].ID
		time.Sleep(2 * time.Hour)
		if got := statusOf(t, s, "ask-1"); got != store.StatusCompleted {
			t.Fatalf("the run is %s", got)
		}
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.Decision.Outcome != desk.OutcomeAnswered || string(doc.Decision.Value) != "7" || !slices.Equal(doc.Decision.By, []string{desk.ClockName}) {
			t.Errorf("decision %+v, %v", doc.Decision, err)
		}
		answers, _, err := e.ListSettled(t.Context(), "acme", "", 10)
		if err != nil || len(answers) != 1 || answers[0].Expired || string(answers[0].Answer) != "7" {
			t.Errorf("the settled question: %+v, %v", answers, err)
		}
		agree(t, e)
	})
}
