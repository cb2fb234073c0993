package executor_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// asking is a provider that asks what a list says, one after the other.
func asking(data map[string]string, rounds ...[]string) *scripted {
	seen := make(map[time.Time]bool)
	return &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var result provider.Result
		for _, a := range e.Answers {
			result.Applied, seen[a.At] = append(result.Applied, a.Interrupt), true
		}
		n := len(seen) + 1 // the same again if it is tried again
		var questions []provider.Question
		for _, id := range rounds[n-1] {
			questions = append(questions, provider.Question{ID: id, Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`"` + id + data[id] + `"`)}})
		}
		if questions == nil {
			result.Rest = provider.Completed{Content: "done"}
			return result, nil
		}
		result.Rest = provider.Waiting{Questions: questions}
		return result, nil
	}}
}

func answerTo(id, resume string) executor.Request {
	r := word("ann", "x-1", resume, id, `1`)
	r.Wait = 2 * time.Second
	return r
}

// BUG 9: what is withdrawn and asked again begins its notices anew, under keys that are taken.
func TestAttack_AQuestionCanBeWithdrawnAndAskedAgainWhenPeopleAreTold(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := asking(nil, []string{"a", "b"}, []string{"c"}, []string{"a"}, nil)
		e := executorOf(t, s, p, func(c *executor.Config) {
			c.Desk.Notify = func(context.Context, string, desk.Notice) error { return nil }
		})
		e.Start()
		waits(t, mustRun(t, e, scriptedStart()))
		waits(t, mustRun(t, e, answerTo("b", "r1")))
		outcome, err := e.Run(t.Context(), answerTo("c", "r2"))
		if err != nil {
			run, _ := s.Get(t.Context(), "acme", "x-1")
			t.Fatalf("asking again: %#v, %v; the run is %s after %d attempts", outcome, err, run.Status, run.Attempts)
		}
		completed(t, mustRun(t, e, answerTo("a", "r3")))
	})
}

// BUG 10: an id that was answered before the last rest is asked again.
func TestAttack_AnIDThatWasAnsweredLongAgoCanBeAskedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := asking(nil, []string{"a"}, []string{"b"}, []string{"a"}, nil)
		e := executorOf(t, s, p, nil)
		e.Start()
		waits(t, mustRun(t, e, scriptedStart()))
		waits(t, mustRun(t, e, answerTo("a", "r1")))
		outcome, err := e.Run(t.Context(), answerTo("b", "r2"))
		if err != nil {
			t.Fatal(err)
		}
		open := waits(t, outcome).Interrupts[0].ID
		for _, i := range known(t, s, "x-1").Interrupts {
			t.Logf("%s is %s, applied %v", i.ID, i.State, i.Applied)
		}
		if _, err := e.Run(t.Context(), answerTo(open, "r3")); err != nil {
			t.Errorf("the run waits for %s, which nobody can answer: %v", open, err)
		}
	})
}

// BUG 11: what is asked again under an old id is another action; people see the old one, and approve the new one.
func TestAttack_I6_WhatIsAskedAgainIsShownAsItIs(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		round := 0
		approval := func(args string) provider.Question {
			digest, _ := fermata.ApprovalRequest{Action: "drop"}.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(args)})
			data, _ := json.Marshal(fermata.ApprovalRequest{Action: "drop", Args: json.RawMessage(args), Digest: digest})
			return provider.Question{ID: "a", Envelope: fermata.Envelope{Kind: fermata.Approval.Name(), Data: data}}
		}
		other := func(id string) provider.Question {
			return provider.Question{ID: id, Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}}
		}
		p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
			var result provider.Result
			for _, a := range e.Answers {
				result.Applied = append(result.Applied, a.Interrupt)
			}
			round++
			switch round {
			case 1:
				result.Rest = provider.Waiting{Questions: []provider.Question{approval(`"harmless"`), other("b")}}
			case 2:
				result.Rest = provider.Waiting{Questions: []provider.Question{other("c")}}
			case 3:
				result.Rest = provider.Waiting{Questions: []provider.Question{approval(`"everything"`)}}
			default:
				result.Rest = provider.Completed{Content: "done"}
			}
			return result, nil
		}}
		e := executorOf(t, s, p, nil)
		waits(t, mustRun(t, e, scriptedStart()))
		waits(t, mustRun(t, e, answerTo("b", "r1")))
		waits(t, mustRun(t, e, answerTo("c", "r2")))
		question, err := e.Question(t.Context(), "acme", "a")
		if err != nil {
			t.Fatal(err)
		}
		var shown fermata.ApprovalRequest
		if err := json.Unmarshal(question.Data, &shown); err != nil {
			t.Fatal(err)
		}
		request := word("ann", "x-1", "r3", "a", yes)
		if _, err := e.Run(t.Context(), request); err != nil {
			t.Logf("it cannot be approved at all: %v", err)
		}
		for _, i := range known(t, s, "x-1").Interrupts {
			if i.ID == "a" && i.Final != "" && i.Final != shown.Digest {
				t.Errorf("I6: the inbox shows %s (%s), and what is approved is %s", shown.Args, shown.Digest, i.Final)
			}
		}
	})
}
