package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
)

// refund is the state of a graph that asks one thing.
type refund struct {
	Order string `json:"order"`
	Said  string `json:"said,omitempty"`
}

var askRefund = fermata.NewKind[string, string]("askback-refund")

// explaining is a provider whose graph says what explain does.
func explaining(t *testing.T, explain func(context.Context, refund, provider.Back) (string, error)) provider.Provider {
	t.Helper()
	return single(t, "refund", inproc.FlowConfig[refund]{Explain: explain}, func(ctx context.Context, s refund) (refund, error) {
		said, err := askRefund.Ask(ctx, "refund "+s.Order+"?")
		s.Said = said
		return s, err
	})
}

// looking is an executor that looks for work.
func looking(t *testing.T, s store.Store, p provider.Provider) *executor.Executor {
	t.Helper()
	e := executorOf(t, s, p, nil)
	e.Start()
	return e
}

// wondering starts a run, and has somebody ask it something before they decide.
func wondering(t *testing.T, e *executor.Executor, text string) (request string) {
	t.Helper()
	request = waits(t, began(t, e, "refund-1", "inproc:refund", `{"order":"o-17"}`)).Interrupts[0].ID
	if _, err := e.Act(t.Context(), "acme", request, desk.AskBack{From: desk.From{Actor: desk.Person("ann", "")}, Question: text}); err != nil {
		t.Fatal(err)
	}
	return request
}

// replied waits until a question was answered, and returns the answer.
func replied(t *testing.T, e *executor.Executor, request string, number int) desk.Note {
	t.Helper()
	var answer desk.Note
	eventually(t, func() bool {
		doc, err := e.Request(t.Context(), "acme", request)
		if err != nil {
			t.Fatal(err)
		}
		if got := doc.Questions[number-1].Answer; got != nil {
			answer = *got
		}
		return answer.Text != ""
	})
	return answer
}

func TestAskBack_TheRunAnswersAndTheRequestStaysOpen(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := looking(t, s, explaining(t, func(_ context.Context, state refund, back provider.Back) (string, error) {
			return back.By + " asks about " + string(back.Data) + " of " + state.Order + " from " + string(back.Input) + ": " + back.Text, nil
		}))
		request := wondering(t, e, "was it damaged?")
		want := `ann asks about "refund o-17?" of o-17 from {"order":"o-17"}: was it damaged?`
		if got := replied(t, e, request, 1); got.Text != want || got.By != "agent:run" {
			t.Errorf("%s said %q, not %q", got.By, got.Text, want)
		}
		doc, err := e.Request(t.Context(), "acme", request)
		if err != nil {
			t.Fatal(err)
		}
		decide := executor.Request{Account: "acme", StateKey: "refund-1", ResumeID: "r1", Actor: "ann"}
		decide.Targets = map[string]executor.Answer{request: {Value: json.RawMessage(`"yes"`), Shown: doc.Digest()}}
		if done := completed(t, mustRun(t, e, decide)); !strings.Contains(string(done.Output), `"said":"yes"`) {
			t.Errorf("it went on with %s", done.Output)
		}
	})
}

// Of several processes one asks the run; and one that fails is not the last word.
func TestAskBack_OnceAndUntilTheRunAnswers(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var asked atomic.Int64
		p := explaining(t, func(context.Context, refund, provider.Back) (string, error) {
			if asked.Add(1) == 1 {
				return "", &provider.RetryError{Err: errors.New("the model is busy")}
			}
			return "it was", nil
		})
		e := looking(t, s, p)
		looking(t, s, p)
		looking(t, s, p)
		if got := replied(t, e, wondering(t, e, "was it?"), 1); got.Text != "it was" {
			t.Errorf("it said %q", got.Text)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// A run that breaks at a question goes on to wait, as if nobody had asked; and a very long answer is cut.
func TestAskBack_WhatARunSaysCannotHarmIt(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := explaining(t, func(_ context.Context, _ refund, back provider.Back) (string, error) {
			if back.Number == 1 {
				panic("no idea")
			}
			return strings.Repeat("é", 2*desk.MaxText) + "\xff", nil
		})
		e := looking(t, s, p)
		request := wondering(t, e, "why?")
		if _, err := e.Act(t.Context(), "acme", request, desk.AskBack{From: desk.From{Actor: desk.Person("ann", "")}, Question: "really?"}); err != nil {
			t.Fatal(err)
		}
		if got := []rune(replied(t, e, request, 2).Text); len(got) != desk.MaxText || got[len(got)-1] != '…' {
			t.Errorf("it said %d characters", len(got))
		}
		doc, err := e.Request(t.Context(), "acme", request)
		if err != nil || doc.State != desk.Open || doc.Questions[0].Answer != nil {
			t.Errorf("%v %v", doc.Questions, err)
		}
	})
}
