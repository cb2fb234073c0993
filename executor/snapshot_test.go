package executor_test

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// Whoever decides has seen the state of the run when the answer was checked, and executes the run next. If somebody else had the run in between, or
// when it was looked at, that state is not the one to go on from.
func TestI16_AStateThatWasSeenBeforeAnotherOwnerIsNotGoneOnFrom(t *testing.T) {
	for name, whileExecuted := range map[string]bool{"looked at before the other had it": false, "looked at while the other had it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := memory.NewStore(nil), pair(t)
				anns, bobs := bar(s, "Decide"), bar(s, "Rest")
				ann, bob := executorOf(t, anns, p, nil), executorOf(t, bobs, p, nil)
				open := waits(t, began(t, executorOf(t, s, p, nil), "p-1", "inproc:pair", `{"left":"","right":""}`)).Interrupts
				var all sync.WaitGroup
				outcomes := make([]fermata.Outcome, 2)
				says := func(n int, e *executor.Executor, who string) {
					request := executor.RunRequest{Account: "acme", StateKey: "p-1", ResumeID: who, Actor: who, Targets: map[string]executor.Answer{
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
