package graph

import "github.com/fermata-go/fermata/internal/activation"

// Step reports that a node was entered or left.
type Step struct {
	// Address is the address of the node.
	Address string
	State   StepState
}

// StepState is the state of a node in a [Step].
type StepState string

// The states of a node. A finished node is saved with its step, which may be slightly later.
const (
	StepStarted  StepState = "started"
	StepFinished StepState = "finished"
	StepWaiting  StepState = "waits"
	StepFailed   StepState = "failed"
)

// OnStep calls fn when nodes are entered and left, including those of inner graphs. fn may be
// called concurrently, and nodes wait for it.
func OnStep(fn func(Step)) Option { return func(o *options) { o.onStep = fn } }

// reportStep calls the observer, if any.
func (exec *execution) reportStep(v *activation.Activation, state StepState) {
	if exec.onStep != nil {
		exec.onStep(Step{Address: v.Address(), State: state})
	}
}
