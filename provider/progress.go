package provider

// Progress is something that happens while a run is executed: one of [Step] and [Token]. It is for those who watch the run at that moment.
// Nothing depends on it, it is not kept, and a slow watcher misses some of it.
//
//sumtype:decl
type Progress interface{ progress() }

// Step is a place in the run that was entered or left.
type Step struct {
	// Address is the place.
	Address string
	State   StepState
}

// StepState is what happened to a place.
type StepState string

// What can happen to a place. What is finished may be saved only a moment later.
const (
	StepStarted  StepState = "started"
	StepFinished StepState = "finished"
	StepWaiting  StepState = "waits" // for people
	StepFailed   StepState = "failed"
)

// Token is a piece of what a model is saying.
type Token struct {
	// Address is the place of the agent that has it say so, Agent its name.
	Address, Agent string
	Text           string
}

func (Step) progress()  {}
func (Token) progress() {}

// Tell reports progress, if anybody wants to hear of it.
func (e Execution) ReportProgress(p Progress) {
	if e.Report != nil {
		e.Report(p)
	}
}
