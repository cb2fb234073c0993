package crashpoint

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// answer is a reply in a comparable form.
type answer struct {
	outcome fermata.Outcome
	text    string // equal for equal replies
	refused store.DecisionResult
}

func answered(t *testing.T, outcome fermata.Outcome, err error) answer {
	t.Helper()
	if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
		return answer{refused: refused.Result, text: refused.Error()}
	}
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		t.Fatal(err)
	}
	return answer{outcome: outcome, text: string(data)}
}

// verdict is the decision on the payment.
type verdict string

const (
	approves verdict = "approve"
	edits    verdict = "approve with edits"
	rejects  verdict = "reject"
)

const (
	asked   = 4200 // cents
	changed = 2100
)

// scenario is one order, from start to end, with a crash in between.
type scenario struct {
	site *environment
	*processHost
	account string
	verdict verdict
	told    []reply
	doubts  int // how many people resolved the effect in doubt
	// refusals is the number of audit records of refused submissions.
	refusals int
}

// reply is a submission and its first reply.
type reply struct {
	request executor.RunRequest
	answer  answer
	// steady reports that the reply never changes. The reply to a vote that only counted depends on
	// the progress of the run.
	steady bool
}

// send sends a submission.
func (s *scenario) send(steady bool, request executor.RunRequest) answer {
	s.t.Helper()
	first := s.do(request)
	s.told = append(s.told, reply{request, first, steady})
	return first
}

// newSubmission returns a person's answer to an interrupt.
func (s *scenario) newSubmission(who, id, question, value string) executor.RunRequest {
	return executor.RunRequest{
		Account: s.account, StateKey: "order", ResumeID: id, Actor: who,
		Targets: map[string]executor.Answer{question: {Value: json.RawMessage(value)}},
	}
}

// open returns the one open interrupt of the run.
func (s *scenario) open(kind, action string) string {
	s.t.Helper()
	view, err := s.observer().GetRun(s.t.Context(), s.account, "order")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range view.Interrupts {
		var about struct {
			Action string `json:"action"`
		}
		if err := json.Unmarshal(i.Data, &about); err != nil {
			s.t.Fatal(err)
		}
		if i.State == store.InterruptPending && i.Kind == kind && about.Action == action {
			return i.ID
		}
	}
	return ""
}

// run runs the scenario.
func (s *scenario) run(death point) {
	s.t.Helper()
	s.processHost.open(death)
	input, err := json.Marshal(order{Key: s.account, Cents: asked})
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(false, executor.RunRequest{Account: s.account, StateKey: "order", Graph: "inproc:" + string(s.target), Input: input, Actor: "req"})
	s.decide()
	s.clear()
	shipping := s.open(fermata.Approval.Name(), ship)
	if shipping == "" {
		s.t.Fatal("no request to ship")
	}
	end := s.send(true, s.newSubmission("eve", "eve-ship", shipping, `{"verb":"reject","reason":"out of stock"}`))
	if _, done := end.outcome.(fermata.Completed); !done {
		s.t.Errorf("I17: in the end it is %s", end.text)
	}
	s.first.arrive()
}

// decide lets people decide on the payment, one of them too late.
func (s *scenario) decide() {
	s.t.Helper()
	paying := s.open(fermata.Approval.Name(), pay)
	if paying == "" {
		s.t.Fatal("no request to pay")
	}
	against := `{"verb":"reject","reason":"I would not"}`
	switch s.verdict {
	case approves:
		s.send(false, s.newSubmission("ann", "ann-pay", paying, `{"verb":"approve"}`))
		s.send(true, s.newSubmission("bob", "bob-pay", paying, `{"verb":"approve"}`))
	case edits:
		args, err := json.Marshal(payment{s.account, changed})
		if err != nil {
			s.t.Fatal(err)
		}
		s.send(false, s.newSubmission("ann", "ann-pay", paying, `{"verb":"approve","args":`+string(args)+`}`))
		doc, err := s.observer().RequestDocument(s.t.Context(), s.account, paying)
		if err != nil {
			s.t.Fatal(err)
		}
		yes := s.newSubmission("bob", "bob-pay", paying, `{"verb":"approve"}`)
		// about the current request
		yes.Targets[paying] = executor.Answer{Value: yes.Targets[paying].Value, Shown: doc.Digest()}
		s.send(true, yes)
	case rejects:
		s.send(true, s.newSubmission("ann", "ann-pay", paying, `{"verb":"reject","reason":"too much"}`))
		against = `{"verb":"approve"}`
	}
	if too := s.send(true, s.newSubmission("eve", "eve-pay", paying, against)); too.refused != store.ResultAlreadyDecided {
		s.t.Errorf("I1: a vote against the decision gets %s", too.text)
	}
}

// clear lets people resolve the effect in doubt, if they are asked: as many as had to approve it.
func (s *scenario) clear() {
	s.t.Helper()
	for _, who := range []string{"bob", "ann"} {
		if doubt := s.open(fermata.EffectInDoubt.Name(), pay); doubt != "" {
			s.doubts++
			s.send(false, s.newSubmission(who, who+"-doubt", doubt, s.truth()))
			s.told[len(s.told)-1].steady = s.open(fermata.EffectInDoubt.Name(), pay) == ""
		}
	}
}

// truth returns whether the payment happened, for a person who has checked.
func (s *scenario) truth() string {
	for _, d := range executed(s.outside, pay) {
		if receipt, known := s.outside.Receipt(d.Key); known {
			said, err := json.Marshal(fermata.EffectResolution{Happened: true, Receipt: mustJSON(s.t, receipt)})
			if err != nil {
				s.t.Fatal(err)
			}
			return string(said)
		}
	}
	return `{"happened":false}`
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
