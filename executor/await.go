package executor

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor/internal/await"
)

// Await waits for the outcome of a request that [Executor.Run] took before, and begins nothing. A start that is sent again would begin another run if its state key
// was taken and is free again. run is the id of the run that was started or resumed, whichever run has its state key now.
func (e *Executor) Await(ctx context.Context, request RunRequest, run string) (fermata.Outcome, error) {
	return e.waiter.AwaitOutcome(ctx, await.AwaitTarget{Account: request.Account, Run: run, StateKey: request.StateKey, Actor: request.Actor, ResumeID: request.ResumeID, Wait: request.Wait})
}
