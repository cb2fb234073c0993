package inproc

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
)

// FailureFunc receives the error that ended an execution: the error of a node or agent, a
// [*graph.PanicError] with its stack, or a program that does not match the run. The error may
// contain any data of the run, so outcomes and logs contain only its address. The run may be
// executed again after some errors, so the function may receive the same error again. It is also
// called for an execution that was asked to stop. Executions wait for it.
type FailureFunc func(ctx context.Context, account, stateKey string, err error)

// call calls the function, if it is set and there is an error. A panic of the function does not
// affect the run.
func (f FailureFunc) call(ctx context.Context, e provider.Execution, err error) {
	if _, waits := fermata.ExtractInterruptInfo(err); f == nil || err == nil || waits {
		return
	}
	var own error
	defer recovery.Recover(&own)
	f(ctx, e.Run.Account, e.Run.StateKey, err)
}
