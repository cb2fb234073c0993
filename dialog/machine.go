package dialog

// NewIntent says what happens to the open question when the user asks for something else.
type NewIntent string

// The policies for open questions after a new intent. The zero value is AskAgain.
const (
	AskAgain NewIntent = "ask_again"
	Drop     NewIntent = "drop"
)

// Machine configures how replies are read and questions are worded. The zero value works.
type Machine struct {
	Wording Wording
	// MinScore is the score that a model's judgement needs; 0 is 0.8. MinMargin is the distance to
	// the next best option; 0 is 0.15.
	MinScore, MinMargin float64
	// MinRecognition is the confidence of the speech recognition below which answers are read
	// back; 0 is 0.75.
	MinRecognition float64
	// MaxUnclear is the number of unclear replies after which choices are shown or the question is
	// handed over; 0 is 3.
	MaxUnclear int
	// HandOver has unclear questions answered by a person.
	HandOver bool
	// AfterNewIntent says what happens to the open question when the user asks for something else.
	AfterNewIntent NewIntent
}

// Wording is the set of templates. The zero value uses the built-in templates.
type Wording struct {
	// Templates replace built-in templates. The key is a template name, such as "confirmation" or
	// "confirmation.voice", with the channel in front for one channel: "phone/confirmation.voice".
	// A template has one text or several variants; a conversation uses one of them.
	Templates map[Language]map[string][]string
	// Variant selects a variant; the default is a hash of the conversation and the template, so
	// that a user sees one variant only.
	Variant func(conversation, template string, variants int) int
}
