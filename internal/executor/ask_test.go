package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// even is a number whose Go validation is stricter than its schema.
type even int

func (e *even) UnmarshalJSON(data []byte) error {
	var n int
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	if n%2 != 0 {
		return fmt.Errorf("%d is odd", n)
	}
	*e = even(n)
	return nil
}

type transfer struct {
	Amount even `json:"amount"`
}

// transferring moves an amount after a person approves it.
func transferring(t *testing.T, moved *atomic.Int64) provider.Provider {
	return single(t, "transfer", inproc.FlowConfig[transfer]{}, func(ctx context.Context, s transfer) (transfer, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[transfer]{Name: "transfer", Args: s, ArgsSchema: json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			return s, err
		}
		_, err = fermata.Effect(ctx, yes, func(_ context.Context, args transfer, _ string) (string, error) {
			moved.Add(int64(args.Amount))
			return "moved", nil
		})
		return yes.Args(), err
	})
}

func approveWith(id, interrupt, value string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: "t-1", ResumeID: id, Actor: "ann", Targets: map[string]executor.Answer{interrupt: {Value: json.RawMessage(value)}}}
}

// The answer was accepted, but the asking code rejects it. A decision is final, so the run asks a
// new request.
func TestAsk_AnswerThatTheAskingCodeRejectsIsAskedAgain(t *testing.T) {
	runs := memory.NewStore(nil)
	var moved atomic.Int64
	e := executorOf(t, runs, transferring(t, &moved), nil)
	first := waits(t, began(t, e, "t-1", "inproc:transfer", `{"amount":2}`)).Interrupts[0]
	for n, want := range []string{first.ID + "~2", first.ID + "~3"} {
		odd := approveWith(want, strings.TrimSuffix(fmt.Sprintf("%s~%d", first.ID, n+1), "~1"), `{"verb":"approve","args":{"amount":3}}`)
		again := waits(t, mustRun(t, e, odd)).Interrupts
		if len(again) != 1 || again[0].ID != want || string(again[0].Data) != string(first.Data) {
			t.Fatalf("the run asks %+v, want the next request", again)
		}
	}
	_, err := e.Run(t.Context(), approveWith("late", first.ID, `{"verb":"reject"}`))
	if refused, ok := errors.AsType[*executor.RefusedError](err); !ok || refused.Result != store.ResultAlreadyDecided {
		t.Errorf("an answer to the first request: %v", err)
	}
	outcome := mustRun(t, e, approveWith("good", first.ID+"~3", `{"verb":"approve","args":{"amount":4}}`))
	if done := completed(t, outcome); string(done.Output) != `{"amount":4}` || moved.Load() != 4 {
		t.Errorf("output %s, moved %d", done.Output, moved.Load())
	}
	effects := known(t, runs, "t-1").Effects
	if len(effects) != 1 || effects[0].Interrupt != first.ID+"~3" || effects[0].State != store.EffectSucceeded {
		t.Errorf("the ledger has %+v", effects)
	}
}

func TestAsk_PersonCannotExpireARequestOrActForAnother(t *testing.T) {
	runs := memory.NewStore(nil)
	var moved atomic.Int64
	e := executorOf(t, runs, transferring(t, &moved), nil)
	first := waits(t, began(t, e, "t-1", "inproc:transfer", `{"amount":2}`)).Interrupts[0]
	_, err := e.Run(t.Context(), approveWith("1", first.ID, `{"verb":"expire"}`))
	if _, bad := errors.AsType[*fermata.AnswerError](err); !bad {
		t.Errorf("the verb expire: %v", err)
	}
	if _, err := e.Run(t.Context(), approveWith("2", first.ID, `{"verb":"reject","by":"bob"}`)); !errors.Is(err, desk.ErrForgedIdentity) {
		t.Errorf("a rejection in the name of bob: %v", err)
	}
	failedWith(t, mustRun(t, e, approveWith("3", first.ID, `{"verb":"reject","by":"ann"}`)), "rejected")
	if i := known(t, runs, "t-1").Interrupts[0]; i.DecidedBy != "ann" || i.Verdict != store.VerdictReject {
		t.Errorf("the interrupt was decided as %+v", i)
	}
}

func TestI4_PolicyDecisionIsInTheLedger(t *testing.T) {
	runs := memory.NewStore(nil)
	var done atomic.Int64
	policy := fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
		return fermata.Ruling{Verdict: fermata.Allow, Rule: "small"}, nil
	})
	p := single(t, "spend", inproc.FlowConfig[note]{Policy: policy}, func(ctx context.Context, n note) (note, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[note]{Name: "spend", Args: n})
		if err != nil {
			return n, err
		}
		_, err = fermata.Effect(ctx, yes, func(context.Context, note, string) (string, error) {
			done.Add(1)
			return "ok", nil
		})
		return n, err
	})
	completed(t, began(t, executorOf(t, runs, p, nil), "s-1", "inproc:spend", `{"text":"tea"}`))
	history := known(t, runs, "s-1")
	if done.Load() != 1 || len(history.Effects) != 1 || len(history.Interrupts) != 1 {
		t.Fatalf("done %d times, want 1; history %+v", done.Load(), history)
	}
	i, f := history.Interrupts[0], history.Effects[0]
	if i.Source != store.SourcePolicy || i.DecidedBy != "policy small" || i.Verdict != store.VerdictApprove || i.ApprovedDigest != f.ActionDigest || f.Interrupt != i.ID || f.State != store.EffectSucceeded {
		t.Errorf("interrupt %+v\neffect %+v", i, f)
	}
}

type words struct {
	Left  string `json:"left"`
	Right string `json:"right"`
}

// pair asks two people for one answer each.
func pair(t *testing.T) provider.Provider {
	t.Helper()
	word := fermata.NewKind[string, string]("word-of-" + t.Name())
	ask := func(name string, field func(*words) *string) graph.Func[words] {
		return func(ctx context.Context, s words) (words, error) {
			said, err := word.Ask(ctx, "what says "+name+"?")
			*field(&s) = said
			return s, err
		}
	}
	g := graph.New[words]("pair")
	g.Node("left", ask("left", func(s *words) *string { return &s.Left }))
	g.Node("right", ask("right", func(s *words) *string { return &s.Right }))
	for _, name := range []string{"left", "right"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	return providing(t, g)
}

func TestAsk_PeopleAnswerAtDifferentTimes(t *testing.T) {
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, pair(t), nil)
	open := waits(t, began(t, e, "p-1", "inproc:pair", `{"left":"","right":""}`)).Interrupts
	if len(open) != 2 {
		t.Fatalf("the run asks %+v, want two requests", open)
	}
	said := func(who string, i fermata.OpenInterrupt) executor.RunRequest {
		return executor.RunRequest{Account: "acme", StateKey: "p-1", ResumeID: "of " + who, Actor: who, Targets: map[string]executor.Answer{
			i.ID: {Value: json.RawMessage(`"` + who + `"`), Shown: executor.EnvelopeDigest(i.Envelope)},
		}}
	}
	one := executor.RunRequest{Account: "acme", StateKey: "p-1", ResumeID: "which", Actor: "ann", Value: json.RawMessage(`"ann"`)}
	if _, err := e.Run(t.Context(), one); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("one value for two open requests: %v", err)
	}
	left := waits(t, mustRun(t, e, said("ann", open[1]))).Interrupts
	if len(left) != 1 || left[0].ID != open[0].ID {
		t.Fatalf("the run then asks %+v, want one request", left)
	}
	wrong := said("bob", open[0])
	wrong.Targets[open[0].ID] = executor.Answer{Value: json.RawMessage(`"bob"`), Shown: "something else"}
	_, err := e.Run(t.Context(), wrong)
	if refused, ok := errors.AsType[*executor.RefusedError](err); !ok || refused.Result != store.ResultDigestMismatch {
		t.Errorf("an answer with another shown digest: %v", err)
	}
	seen := said("bob", open[0])
	seen.ResumeID = "of bob, with the current digest"
	if done := completed(t, mustRun(t, e, seen)); string(done.Output) != `{"left":"bob","right":"ann"}` && string(done.Output) != `{"left":"ann","right":"bob"}` {
		t.Errorf("output %s", done.Output)
	}
}

// A gate is a decision. A second click on the first gate must not pass the second gate, which has
// not been viewed. A decision cannot be signed with the name of another person.
func TestI5_ClickOnAGateDoesNotPassTheNextOne(t *testing.T) {
	var signed []string
	p := single(t, "gates", inproc.FlowConfig[order]{}, func(ctx context.Context, o order) (order, error) {
		signed = nil
		for _, name := range []string{"draft", "publish"} {
			said, err := gate.Kind.Ask(fermata.AppendAddressSegment(ctx, "gate", name), gate.Question{Gate: name})
			if err != nil {
				return o, err
			}
			signed = append(signed, said.ApprovedBy)
		}
		return o, nil
	})
	e := executorOf(t, memory.NewStore(nil), p, nil)
	// ann and bob view the draft
	draft := waits(t, began(t, e, "g", "inproc:gates", `{"table":"users"}`)).Interrupts[0].ID
	click := func(who string) (fermata.Outcome, error) {
		return e.Run(t.Context(), executor.RunRequest{
			Account: "acme", StateKey: "g", ResumeID: "of " + who, Actor: who, Value: json.RawMessage(`{"approved":true,"approvedAt":"2026-01-01T00:00:00Z","approvedBy":"the boss"}`),
		})
	}
	if _, err := click("carl"); err == nil {
		t.Error("an answer that names no request was accepted")
	}
	boss := word("ann", "g", "as the boss", draft, `{"approved":true,"approvedAt":"2026-01-01T00:00:00Z","approvedBy":"the boss"}`)
	if _, err := e.Run(t.Context(), boss); !errors.Is(err, desk.ErrForgedIdentity) {
		t.Errorf("ann signs as the boss: %v", err)
	}
	looked := word("ann", "g", "of ann", draft, `{"approved":true,"approvedAt":"2026-01-01T00:00:00Z"}`)
	waits(t, mustRun(t, e, looked))
	if outcome, err := e.Run(t.Context(), word("bob", "g", "of bob", draft, `{"approved":true,"approvedAt":"2026-01-01T00:00:00Z"}`)); err == nil {
		t.Errorf("bob's answer to the first gate passed the second: %T", outcome)
	}
	for _, who := range signed {
		if who != "ann" {
			t.Errorf("ann's decision is signed as %s", who)
		}
	}
}

// An id that was answered in an earlier execution can be asked and answered again.
func TestAsk_AnsweredIDCanBeAskedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := asking([]string{"a"}, []string{"b"}, []string{"a"}, nil)
		e := executorOf(t, s, p, nil)
		e.StartWorkers()
		waits(t, mustRun(t, e, scriptedStart()))
		waits(t, mustRun(t, e, answerTo("a", "r1")))
		open := waits(t, mustRun(t, e, answerTo("b", "r2"))).Interrupts[0].ID
		if _, err := e.Run(t.Context(), answerTo(open, "r3")); err != nil {
			t.Errorf("the run waits for %s, which cannot be answered: %v", open, err)
		}
	})
}

// A request that is asked again under an old id may be another action. Approvers see the action
// that they approve.
func TestI6_RequestAskedAgainShowsTheNewAction(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		round := 0
		approval := func(args string) provider.Interrupt {
			digest, _ := fermata.ApprovalRequest{Action: "drop"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(args)})
			data, _ := json.Marshal(fermata.ApprovalRequest{Action: "drop", Args: json.RawMessage(args), Digest: digest})
			return provider.Interrupt{ID: "a", Envelope: fermata.Envelope{Kind: fermata.Approval.Name(), Data: data}}
		}
		other := func(id string) provider.Interrupt {
			return provider.Interrupt{ID: id, Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}}
		}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			var result provider.Result
			for _, a := range e.Answers {
				result.Applied = append(result.Applied, a.InterruptID)
			}
			round++
			switch round {
			case 1:
				result.Outcome = provider.Waiting{Interrupts: []provider.Interrupt{approval(`"harmless"`), other("b")}}
			case 2:
				result.Outcome = provider.Waiting{Interrupts: []provider.Interrupt{other("c")}}
			case 3:
				result.Outcome = provider.Waiting{Interrupts: []provider.Interrupt{approval(`"everything"`)}}
			default:
				result.Outcome = provider.Completed{Content: "done"}
			}
			return result, nil
		}}
		e := executorOf(t, s, p, nil)
		waits(t, mustRun(t, e, scriptedStart()))
		waits(t, mustRun(t, e, answerTo("b", "r1")))
		waits(t, mustRun(t, e, answerTo("c", "r2")))
		question, err := e.GetRequest(t.Context(), "acme", "a")
		if err != nil {
			t.Fatal(err)
		}
		var shown fermata.ApprovalRequest
		if err := json.Unmarshal(question.Data, &shown); err != nil {
			t.Fatal(err)
		}
		request := word("ann", "x-1", "r3", "a", yes)
		if _, err := e.Run(t.Context(), request); err != nil {
			t.Logf("the request cannot be approved: %v", err)
		}
		for _, i := range known(t, s, "x-1").Interrupts {
			if i.ID == "a" && i.ApprovedDigest != "" && i.ApprovedDigest != shown.Digest {
				t.Errorf("I6: the inbox shows %s (%s), but the approved digest is %s", shown.Args, shown.Digest, i.ApprovedDigest)
			}
		}
	})
}

func TestI6_InboxShowsWhatTheRunAsksNow(t *testing.T) {
	s := memory.NewStore(nil)
	round := 0
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		round++
		var r provider.Result
		for _, a := range e.Answers {
			r.Applied = append(r.Applied, a.InterruptID)
		}
		data := json.RawMessage(`"harmless"`)
		qs := []provider.Interrupt{{ID: "b", Envelope: fermata.Envelope{Kind: "k", Data: data}}}
		if round == 2 {
			data, qs = json.RawMessage(`"everything"`), nil
		}
		r.Outcome = provider.Waiting{Interrupts: append(qs, provider.Interrupt{ID: "a", Envelope: fermata.Envelope{Kind: "k", Data: data}})}
		return r, nil
	}}
	e := executorOf(t, s, p, nil)
	waits(t, mustRun(t, e, scriptedStart()))
	out := waits(t, mustRun(t, e, answerTo("b", "r")))
	q, _ := e.GetRequest(t.Context(), "acme", out.Interrupts[0].ID)
	if string(q.Data) != string(out.Interrupts[0].Data) {
		t.Errorf("the outcome of the run shows %s, the inbox shows %s", out.Interrupts[0].Data, q.Data)
	}
}
