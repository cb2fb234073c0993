package inproc

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
)

// FailureFunc is told the error that ended an execution: what a node or an agent returned, a [*graph.PanicError] with its stack, a program that is not one for the
// run. Nobody else is: such an error may hold anything that the run works on, so outcomes and logs have no more than its place. After some of them the run is
// executed again, and so it may be told the same again; an execution that was only asked to stop is told, too. Executions wait for it.
type FailureFunc func(ctx context.Context, account, stateKey string, err error)

// reportEvent calls it, if there is one, and something has failed. What it does wrong is not the run's.
func (f FailureFunc) call(ctx context.Context, e provider.Execution, err error) {
	if _, waits := fermata.ExtractInterruptInfo(err); f == nil || err == nil || waits {
		return
	}
	var own error
	defer recovery.Recover(&own)
	f(ctx, e.Run.Account, e.Run.StateKey, err)
}
