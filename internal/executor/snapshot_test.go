package executor_test

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A decision checks the answer against the state of the run, and then executes the run from that
// state. If another worker owned the run since, or at the time of the check, that state must not be
// used.
func TestI16_StateReadBeforeAnotherOwnerIsNotUsed(t *testing.T) {
	for name, whileExecuted := range map[string]bool{"read before the other owner": false, "read during the other execution": true} {
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
					t.Errorf("output %s", got.Output)
				}
			})
		})
	}
}
