package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
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

// What is withdrawn and asked again begins its notices anew, under keys that are taken.
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

// An id that was answered before the last rest is asked again.
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

// What is asked again under an old id is another action; people see the old one, and approve the new one.
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

// A hundred requests that cannot be read keep the clock from all others.
func TestAttack_PapersThatCannotBeReadDoNotStarveOthers(t *testing.T) {
	s := memory.NewRuns(nil)
	told := make(chan desk.Notice, 10)
	route := map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{
		{At: desk.Duration(100 * time.Millisecond), Remind: []string{"inbox"}}, {At: desk.Duration(time.Hour), Expire: "stale"},
	}}}
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var questions []provider.Question
		for n := range 100 {
			questions = append(questions, provider.Question{ID: fmt.Sprint(e.Run.StateKey, "-", n), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}})
		}
		if e.Run.StateKey == "good" {
			questions = questions[:1]
		}
		return provider.Result{Rest: provider.Waiting{Questions: questions}}, nil
	}}
	e := executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Routes = route
		c.Desk.Notify = func(_ context.Context, _ string, n desk.Notice) error { told <- n; return nil }
	})
	bad := scriptedStart()
	bad.StateKey = "bad"
	waits(t, mustRun(t, e, bad))
	for n := range 100 { // a newer version of the program has written them, say
		id := fmt.Sprint("bad-", n)
		paper, err := s.Paper(t.Context(), "acme", store.RequestPaper, id)
		if err == nil {
			err = s.Amend(t.Context(), "acme", store.Beside{Papers: []store.PaperChange{{Kind: store.RequestPaper, ID: id, Base: paper.Revision, Body: []byte("?"), Facts: paper.Facts, Next: paper.Next}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	good := scriptedStart()
	good.StateKey = "good"
	waits(t, mustRun(t, e, good))
	e.Start()
	select {
	case <-told:
	case <-time.After(3 * time.Second):
		t.Error("nobody is reminded of the one that can be read")
	}
}

func crowd(n int) *scripted {
	return &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var questions []provider.Question
		for n := range n {
			questions = append(questions, provider.Question{ID: fmt.Sprint(e.Run.ID, "-", n), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}})
		}
		return provider.Result{Rest: provider.Waiting{Questions: questions}}, nil
	}}
}

func TestAttack_ADeadChannelDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan time.Duration, 1)
		begin := time.Now()
		p := crowd(40)
		e := executorOf(t, memory.NewRuns(nil), p, func(c *executor.Config) {
			c.Timeout = -1
			c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
			c.Desk.Notify = func(ctx context.Context, account string, n desk.Notice) error {
				if account == "other" {
					select {
					case told <- time.Since(begin):
					default:
					}
					return nil
				}
				<-ctx.Done() // the channel of this account is dead
				return ctx.Err()
			}
		})
		waits(t, mustRun(t, e, scriptedStart()))
		r := scriptedStart()
		r.Account = "other"
		waits(t, mustRun(t, e, r))
		e.Start()
		if d := <-told; d > time.Minute {
			t.Errorf("another account is told after %v", d)
		}
		stop := time.Now()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(stop); d > time.Minute {
			t.Errorf("stopping took %v", d)
		}
	})
}

type full struct {
	store.Store
	on    atomic.Bool
	looks atomic.Int64
}

func (f *full) Due(ctx context.Context, kind store.PaperKind, limit int) ([]store.Paper, error) {
	if kind == "notice" {
		f.looks.Add(1)
	}
	return f.Store.Due(ctx, kind, limit)
}

func (f *full) Amend(ctx context.Context, account string, b store.Beside) error {
	if f.on.Load() {
		return errors.New("the disk is full")
	}
	return f.Store.Amend(ctx, account, b)
}

func TestAttack_TheOutboxDoesNotSpinWhenNothingCanBeWritten(t *testing.T) {
	s := &full{Store: memory.NewRuns(nil)}
	e := executorOf(t, s, crowd(100), func(c *executor.Config) {
		c.Poll = time.Hour
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
		c.Desk.Notify = func(context.Context, string, desk.Notice) error { return nil }
	})
	waits(t, mustRun(t, e, scriptedStart()))
	s.on.Store(true)
	e.Start()
	time.Sleep(300 * time.Millisecond)
	if n := s.looks.Load(); n > 3 {
		t.Errorf("it looked %d times in 300 ms, with an hour between two looks", n)
	}
}

func TestAttack_I6_TheInboxShowsWhatTheRunAsksNow(t *testing.T) {
	s := memory.NewRuns(nil)
	round := 0
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		round++
		var r provider.Result
		for _, a := range e.Answers {
			r.Applied = append(r.Applied, a.Interrupt)
		}
		data := json.RawMessage(`"harmless"`)
		qs := []provider.Question{{ID: "b", Envelope: fermata.Envelope{Kind: "k", Data: data}}}
		if round == 2 {
			data, qs = json.RawMessage(`"everything"`), nil
		}
		r.Rest = provider.Waiting{Questions: append(qs, provider.Question{ID: "a", Envelope: fermata.Envelope{Kind: "k", Data: data}})}
		return r, nil
	}}
	e := executorOf(t, s, p, nil)
	waits(t, mustRun(t, e, scriptedStart()))
	out := waits(t, mustRun(t, e, answerTo("b", "r")))
	q, _ := e.Question(t.Context(), "acme", out.Interrupts[0].ID)
	if string(q.Data) != string(out.Interrupts[0].Data) {
		t.Errorf("the run's outcome shows %s, the inbox %s", out.Interrupts[0].Data, q.Data)
	}
}
