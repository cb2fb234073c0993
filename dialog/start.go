package dialog

// Assistant is an agent or a graph that end users talk to. A server may have several.
type Assistant struct {
	// ID names it in the API; "" for the one of a program that has only one.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Description tells people what it is for.
	Description string `json:"description,omitempty"`
	// Graph is what a message of a user starts, such as "inproc:assistant".
	Graph string `json:"-"`
}

// Start is a run to start.
type Start struct {
	Run string // the state key
	// Assistant is that of the conversation; "" for the default one.
	Assistant string
	User      string
	// Via is the channel of the message for audit records; "" for the usual one.
	Via string
	// Lines is the conversation so far; its last line is the message that the run is about.
	Lines []Line
	// Question is the question that a person has to answer for the user; nil for a run of an agent.
	Question *Asking
	// NoWait returns at once, without waiting for the run.
	NoWait bool
}
