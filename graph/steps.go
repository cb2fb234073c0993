package graph

import "github.com/fermata-go/fermata/internal/activation"

// Step is a node that was entered or left.
type Step struct {
	// Address is the place of the node.
	Address string
	State   StepState
}

// StepState is what happened to a node.
type StepState string

// What can happen to a node. One that is finished is saved with the step that it is part of, which may be a moment later.
const (
	StepStarted  StepState = "started"
	StepFinished StepState = "finished"
	StepWaiting  StepState = "waits"
	StepFailed   StepState = "failed"
)

// OnStep has fn told when nodes are entered and left, those of inner graphs too: for whoever watches the run. Several goroutines may
// call fn at once, and nodes wait for it.
func OnStep(fn func(Step)) Option { return func(o *options) { o.onStep = fn } }

// tell reports a node to whoever watches.
func (s *execution) reportStep(v *activation.Activation, state StepState) {
	if s.onStep != nil {
		s.onStep(Step{Address: v.Address(), State: state})
	}
}
