package graph

import "github.com/fermata-go/fermata/internal/visit"

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
	StepWaits    StepState = "waits"
	StepFailed   StepState = "failed"
)

// WithSteps has fn told when nodes are entered and left, those of inner graphs too: for whoever watches the run. Several goroutines may
// call fn at once, and nodes wait for it.
func WithSteps(fn func(Step)) Option { return func(o *options) { o.steps = fn } }

// tell reports a node to whoever watches.
func (s *session) tell(v *visit.Visit, state StepState) {
	if s.steps != nil {
		s.steps(Step{Address: v.Address(), State: state})
	}
}
