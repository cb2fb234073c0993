package dialog

// Start is a run to start.
type Start struct {
	Run string // the state key
	// Assistant is that of the conversation; "" for the default one.
	Assistant string
	User      string
	// Lines is the conversation so far; its last line is the message that the run is about.
	Lines []Line
	// Question is the question that a person has to answer for the user; nil for a run of an agent.
	Question *Asking
	// NoWait returns at once, without waiting for the run.
	NoWait bool
}
