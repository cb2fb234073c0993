package crashpoint

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// answer is what somebody was told, so that it can be compared.
type answer struct {
	outcome fermata.Outcome
	text    string // the same for the same answer
	refused store.DecisionResult
}

func answered(t *testing.T, outcome fermata.Outcome, err error) answer {
	t.Helper()
	if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
		return answer{refused: refused.Result, text: refused.Error()}
	}
	if err != nil {
		t.Fatalf("an answer that nobody expects: %v", err)
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		t.Fatal(err)
	}
	return answer{outcome: outcome, text: string(data)}
}

// verdict is what people say about the payment.
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

// scenario is one order, from the start to the end, with a death in the middle.
type scenario struct {
	site *environment
	*processHost
	account string
	verdict verdict
	told    []reply
	doubts  int // how many people said whether it happened
	// refusals is how many lines the audit log has of words that were not taken.
	refusals int
}

// reply is what was said, and what the first answer to it was.
type reply struct {
	request executor.RunRequest
	answer  answer
	// steady says that the answer is the same for ever. That of a word which was only counted says how far the run has come.
	steady bool
}

// say says something.
func (s *scenario) send(steady bool, request executor.RunRequest) answer {
	s.t.Helper()
	first := s.do(request)
	s.told = append(s.told, reply{request, first, steady})
	return first
}

// word is somebody's word on a question.
func (s *scenario) newSubmission(who, id, question, value string) executor.RunRequest {
	return executor.RunRequest{
		Account: s.account, StateKey: "order", ResumeID: id, Actor: who,
		Targets: map[string]executor.Answer{question: {Value: json.RawMessage(value)}},
	}
}

// open is the one question that the run waits for, and what it is about.
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

// tell tells the story.
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
		s.t.Fatal("nobody is asked whether to ship")
	}
	end := s.send(true, s.newSubmission("eve", "eve-ship", shipping, `{"verb":"reject","reason":"out of stock"}`))
	if _, done := end.outcome.(fermata.Completed); !done {
		s.t.Errorf("I17: in the end it is %s", end.text)
	}
	s.first.arrive()
}

// decide has people decide on the payment, and one of them too late.
func (s *scenario) decide() {
	s.t.Helper()
	paying := s.open(fermata.Approval.Name(), pay)
	if paying == "" {
		s.t.Fatal("nobody is asked whether to pay")
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
		yes.Targets[paying] = executor.Answer{Value: yes.Targets[paying].Value, Shown: doc.Digest()} // to what it is by now
		s.send(true, yes)
	case rejects:
		s.send(true, s.newSubmission("ann", "ann-pay", paying, `{"verb":"reject","reason":"too much"}`))
		against = `{"verb":"approve"}`
	}
	if too := s.send(true, s.newSubmission("eve", "eve-pay", paying, against)); too.refused != store.ResultAlreadyDecided {
		s.t.Errorf("I1: a word against what is decided is told %s", too.text)
	}
}

// clear has people say whether the payment happened, if they are asked: as many as had to approve it.
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

// truth is what somebody says who was asked whether the payment happened, and has looked.
func (s *scenario) truth() string {
	for _, d := range s.outside.done(pay) {
		if receipt, known := s.outside.receipt(d.key); known {
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
