package executor_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store/memory"
)

// Whoever decides has seen the state of the run when the answer was checked, and executes the run next. If somebody else had the run in between, or
// when it was looked at, that state is not the one to go on from.
func TestI16_AStateThatWasSeenBeforeAnotherOwnerIsNotGoneOnFrom(t *testing.T) {
	for name, whileExecuted := range map[string]bool{"looked at before the other had it": false, "looked at while the other had it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := memory.NewRuns(nil), pair(t)
				anns, bobs := bar(s, "Decide"), bar(s, "Rest")
				ann, bob := executorOf(t, anns, p, nil), executorOf(t, bobs, p, nil)
				open := waits(t, began(t, executorOf(t, s, p, nil), "p-1", "inproc:pair", `{"left":"","right":""}`)).Interrupts
				var all sync.WaitGroup
				outcomes := make([]fermata.Outcome, 2)
				says := func(n int, e *executor.Executor, who string) {
					request := executor.Request{Account: "acme", StateKey: "p-1", ResumeID: who, Actor: who, Targets: map[string]executor.Answer{
						open[n].ID: {Value: json.RawMessage(`"` + who + `"`)},
					}}
					all.Go(func() {
						var err error
						if outcomes[n], err = e.Run(t.Context(), request); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				if whileExecuted {
					says(1, bob, "bob")
					says(0, ann, "ann")
					close(bobs.open)
				} else {
					close(bobs.open)
					says(0, ann, "ann")
					says(1, bob, "bob")
				}
				synctest.Wait()
				waits(t, outcomes[1])
				close(anns.open)
				all.Wait()
				if got := completed(t, outcomes[0]); string(got.Output) != `{"left":"ann","right":"bob"}` {
					t.Errorf("it came to %s", got.Output)
				}
			})
		})
	}
}

// Somebody starts another run under the same state key a moment earlier, and it is over by now. That one's outcome is no answer to this start.
func TestStart_WhoeverWasFasterWithSomethingElseIsNotTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewRuns(nil)
		held := bar(s, "Create")
		p := single(t, "echo", inproc.FlowConfig[note]{Content: func(n note) string { return n.Text }}, func(_ context.Context, n note) (note, error) { return n, nil })
		slow, quick := executorOf(t, held, p, nil), executorOf(t, s, p, nil)
		start := func(text string) executor.Request {
			return executor.Request{Account: "acme", StateKey: "k", Graph: "inproc:echo", Input: json.RawMessage(`{"text":"` + text + `"}`)}
		}
		var all sync.WaitGroup
		var outcome fermata.Outcome
		all.Go(func() {
			var err error
			if outcome, err = slow.Run(t.Context(), start("mine")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		completed(t, mustRun(t, quick, start("theirs")))
		close(held.open)
		all.Wait()
		if got := completed(t, outcome); got.Content != "mine" {
			t.Errorf("it is told of %q", got.Content)
		}
	})
}
