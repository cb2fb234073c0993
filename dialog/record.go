package dialog

import (
	"slices"
	"time"
)

// Speaker says who a line is by.
type Speaker string

// The speakers.
const (
	ByUser    Speaker = "user"
	ByAgent   Speaker = "agent"
	ByHandler Speaker = "handler" // questions and remarks
)

// Line is one line of the transcript.
type Line struct {
	N        int       `json:"n"` // from 1
	From     Speaker   `json:"from"`
	Text     string    `json:"text"`
	Prompt   *Prompt   `json:"prompt,omitempty"`  // of a question
	Run      string    `json:"run,omitempty"`     // of an agent's output
	Message  string    `json:"message,omitempty"` // the id of the user's message
	Modality Modality  `json:"modality,omitempty"`
	Actor    string    `json:"actor,omitempty"`
	By       string    `json:"by,omitempty"` // the program that sent the message for the user
	At       time.Time `json:"at"`
}

// RunLink is a run of the conversation.
type RunLink struct {
	Run string `json:"run"` // the state key
	// Line is the number of the line that the run is about.
	Line int `json:"line"`
	// Question is the question that was handed over to a person in this run; "" for other runs.
	Question string `json:"question,omitempty"`
	// Again is the run that this one does again; "" for other runs.
	Again   string `json:"again,omitempty"`
	Settled bool   `json:"settled,omitempty"` // ended, and its output is a line
	Asked   bool   `json:"asked,omitempty"`   // it has asked the user something
	Waiting bool   `json:"waiting,omitempty"` // for the user
	Held    bool   `json:"held,omitempty"`    // waits for an approver
}

// Record is a conversation with its transcript and its runs: the newest part, or the whole after
// [Handler.Get].
type Record struct {
	Conversation
	Lines []Line    `json:"lines"`
	Runs  []RunLink `json:"runs"`
	// Earlier is the number of lines before those in Lines. Questions and runs of that time that
	// have ended are not in the newest part either.
	Earlier int `json:"earlier,omitempty"`
	// Working means that a run executes or that an answer is not yet delivered. More lines follow.
	Working bool `json:"working,omitempty"`
	// Revision grows with each change.
	Revision int64 `json:"-"`
}

// Since returns the lines after a number. complete means that none between are in earlier parts.
func (r *Record) Since(n int) (lines []Line, complete bool) {
	return r.Lines[min(max(0, n-r.Earlier), len(r.Lines)):], n >= r.Earlier
}

// Open returns the open questions in the order in which they are asked: blocking ones first, then
// by risk, then by age.
func (c *Conversation) Open() []*Asking {
	var open []*Asking
	for _, a := range c.Questions {
		if a.Status.Open() {
			open = append(open, a)
		}
	}
	slices.SortStableFunc(open, func(a, b *Asking) int {
		if x, y := a.Question.Relevance == NonBlocking, b.Question.Relevance == NonBlocking; x != y {
			if x {
				return 1
			}
			return -1
		}
		return int(b.Question.Risk) - int(a.Question.Risk)
	})
	return open
}

// Choice is a button or a spoken option of a prompt.
type Choice struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Number is what the user can say or press instead; 0 for none.
	Number int `json:"number,omitempty"`
}

// Prompt is a question or remark in the words for the user.
type Prompt struct {
	// Question is the id of the question; "" for a remark.
	Question string `json:"question,omitempty"`
	Text     string `json:"text"`
	// Template is the name of the template and its variant, such as "confirmation.voice.B".
	Template string            `json:"template"`
	Choices  []Choice          `json:"choices,omitempty"`
	Fields   []Field           `json:"fields,omitempty"`
	Values   map[string]string `json:"values,omitempty"` // what the form begins with
	Modality Modality          `json:"modality"`
}
