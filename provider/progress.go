package provider

// Progress is an event of a running execution: one of [Step] and [Token]. It is for live observers.
// It is not stored, and a slow observer misses events.
//
//sumtype:decl
type Progress interface{ progress() }

// Step reports that a place in the run was entered or left.
type Step struct {
	// Address is the address of the place.
	Address string
	State   StepState
}

// StepState is the state of a place in a [Step].
type StepState string

// The states of a place. A finished place may be saved slightly later.
const (
	StepStarted  StepState = "started"
	StepFinished StepState = "finished"
	StepWaiting  StepState = "waits" // for people
	StepFailed   StepState = "failed"
)

// Token is a part of a model's message, or of the output of a node.
type Token struct {
	// Address is the address of the agent or node. Agent is the agent's name; "" for a node.
	Address, Agent string
	Text           string
}

func (Step) progress()  {}
func (Token) progress() {}

// ReportProgress calls Report, if it is set.
func (e Execution) ReportProgress(p Progress) {
	if e.Report != nil {
		e.Report(p)
	}
}
