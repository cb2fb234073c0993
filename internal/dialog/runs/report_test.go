package runs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store/memory"
)

func TestReport_CountsQuestionsPerAgentAndWording(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.say("c", dialog.Message{Text: "hello"})
	w.say("c", dialog.Message{Text: "mail anna"})
	w.say("c", dialog.Message{Text: "blue"})
	w.say("c", dialog.Message{Text: "legal"})
	w.say("c", dialog.Message{Question: "q1", Choice: "anna-s"}) // corrects it
	w.say("c", dialog.Message{Text: "mail anna"})
	w.say("c", dialog.Message{Text: "cancel"})
	report, err := w.handler.Report(t.Context(), account, time.Time{}, time.Time{})
	if err != nil || report.Conversations != 1 || report.Runs != 3 || report.RunsWithQuestions != 2 || len(report.Rows) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	row := report.Rows[0]
	row.Template = ""
	want := dialog.Row{Agent: "assistant", Questions: 2, Answered: 1, Escaped: 1, ReAsks: 1, Unclear: 1, Corrections: 1, Waited: 2 * time.Minute}
	if row != want {
		t.Errorf("%+v, want %+v", row, want)
	}
}

type transfer struct {
	Cents int         `json:"cents"`
	Risk  dialog.Risk `json:"risk,omitempty"`
	Done  string      `json:"done,omitempty"`
}

// Thresholds for transfers are rules of a policy file.
func TestConfirm_PolicyFileDecidesWhichActionsNeedAConfirmation(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte(`
default: ask
defaults: {ask: {groups: [{from: ["group:users"]}], deadline: 24h}}
rules:
- id: small
  when: req.tool == "transfer" && args.cents <= 5000
  then: allow
- id: large
  when: req.tool == "transfer" && args.cents > 5000 && args.cents < 10000000
  then: ask
  reason: more than 50 €
- id: huge
  when: req.tool == "transfer" && args.cents >= 10000000
  then: deny
  reason: over the limit
`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules := fermata.PolicyFunc(func(ctx context.Context, action fermata.ActionRequest) (fermata.Ruling, error) {
		decision, err := set.DecideContext(ctx, policy.InputOf(action))
		return decision.Ruling(), err
	})
	g := graph.New[transfer]("transfer")
	g.Node("pay", func(ctx context.Context, s transfer) (transfer, error) {
		answer, err := dialog.Confirm(ctx, rules, "transfer", s, dialog.Question{Text: "Transfer it?", Risk: s.Risk})
		if err != nil {
			return s, err
		}
		if s.Done = "no"; answer.Yes {
			s.Done = "by " + string(answer.Method)
		}
		return s, nil
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := flow.Run(t.Context(), transfer{Cents: 100}); err != nil || s.Done != "by policy" {
		t.Errorf("a small transfer: %+v, %v", s, err)
	}
	for risk, want := range map[dialog.Risk]dialog.Risk{0: dialog.RiskHigh, dialog.RiskLow: dialog.RiskLow, dialog.RiskCritical: dialog.RiskCritical} {
		_, err = flow.Run(t.Context(), transfer{Cents: 9000, Risk: risk}, graph.WithStore(memory.New()))
		info, waits := fermata.ExtractInterruptInfo(err)
		if !waits {
			t.Fatalf("a large transfer: %v", err)
		}
		q, err := dialog.Request.Question(info.Interrupts[0])
		if err != nil || q.Rule != "large" || q.Why != "more than 50 €" || q.Kind != dialog.Confirmation || q.Risk != want {
			t.Errorf("%+v, %v, want the risk %d", q, err, want)
		}
	}
	_, err = flow.Run(t.Context(), transfer{Cents: 10_000_000})
	if rejected, ok := errors.AsType[*fermata.RejectedError](err); !ok || rejected.Reason != "over the limit" {
		t.Errorf("a huge transfer: %v", err)
	}
}

// Variants of a wording are compared: each conversation sees one, and each has its own row.
func TestReport_ComparesVariantsOfAWording(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.machine.Wording.Variant = func(conversation, _ string, _ int) int {
		if conversation == "c1" {
			return 0
		}
		return 1
	}
	w.model = judge(func(string) dialog.Judgement {
		return dialog.Judgement{Verdict: dialog.IsAnswer, Score: 0.9, Option: "anna-m", OptionScore: 0.9}
	})
	w.restart()
	w.say("c1", dialog.Message{Text: "mail anna"})
	w.say("c1", dialog.Message{Text: "the lawyer we met in March"})
	w.say("c1", dialog.Message{Question: "q1", Choice: "anna-s"})
	w.say("c2", dialog.Message{Text: "mail anna"})
	w.say("c2", dialog.Message{Text: "cancel"})
	w.say("c3", dialog.Message{Text: "mail anna"})
	w.say("c3", dialog.Message{Text: "legal"})
	w.say("c4", dialog.Message{Text: "mail anna"}) // is open and does not count
	report, err := w.handler.Report(t.Context(), account, time.Time{}, time.Time{})
	if err != nil || report.Conversations != 4 || len(report.Rows) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	for i, want := range []dialog.Row{
		{Agent: "assistant", Template: "disambiguation.A", Questions: 1, Answered: 1, Semantic: 1, Corrections: 1, SemanticCorrections: 1, Waited: time.Minute},
		{Agent: "assistant", Template: "disambiguation.B", Questions: 2, Answered: 1, Escaped: 1, Waited: time.Minute},
	} {
		if report.Rows[i] != want {
			t.Errorf("%+v, want %+v", report.Rows[i], want)
		}
	}
}
