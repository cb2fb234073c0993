package api

import "encoding/json"

// Presentation is a request in words: what every surface shows of it, and what people can do with
// it. All texts are plain: characters that are invisible or change the direction of text are shown
// as codes.
type Presentation struct {
	Shape    string     `json:"shape" enum:"approval,gate,hold,question,choice,form,review,doubt" doc:"What people are asked for."`
	Title    string     `json:"title" doc:"The request in a few words, for lists."`
	Sentence string     `json:"sentence" doc:"Who wants what."`
	Facts    []Fact     `json:"facts,omitempty" doc:"What the decision is about: the arguments as they would be executed, the state of a held run, or the values of a question."`
	Evidence []Evidence `json:"evidence,omitempty" doc:"What the decision can be based on."`
	Said     []Quote    `json:"said,omitempty" doc:"Texts of the agent that are not verified."`
	Actions  []Action   `json:"actions,omitempty" doc:"What people can do, the main action first. Omitted if the request is not open."`
}

// Fact is one value.
type Fact struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Was     string `json:"was,omitempty" doc:"The requested value if it was edited."`
	Flagged bool   `json:"flagged,omitempty" doc:"Characters are shown as codes: the value may imitate another one."`
	Masked  bool   `json:"masked,omitempty"`
}

// Evidence is something that a decision can be based on.
type Evidence struct {
	Title  string `json:"title"`
	Source string `json:"source,omitempty"`
	Text   string `json:"text"`
	Was    string `json:"was,omitempty" doc:"The text at the last approval."`
	URL    string `json:"url,omitempty" doc:"An https link to more."`
}

// Quote is a text and who wrote it.
type Quote struct {
	By   string `json:"by"`
	Text string `json:"text"`
}

// Action is something that people can do with a request.
type Action struct {
	Name     string          `json:"name" enum:"approve,edit,reject,respond,return,escalate,ask" doc:"The decisions approve, edit, reject, respond and return are sent with their answer. escalate and ask are other calls."`
	Label    string          `json:"label"`
	Detail   string          `json:"detail,omitempty" doc:"What the action does, or more about the option."`
	Style    string          `json:"style,omitempty" enum:"primary,danger"`
	Answer   json.RawMessage `json:"answer,omitempty" doc:"The answer that the action sends. If form is set, the values of the form are added to it."`
	Form     json.RawMessage `json:"form,omitempty" doc:"The JSON Schema of the values that the person gives. Without one, a button is enough."`
	At       string          `json:"at,omitempty" doc:"The member of the answer that gets the values of the form. If it is omitted, they are members of the answer, or the answer itself."`
	Value    json.RawMessage `json:"value,omitempty" doc:"The values that the form begins with."`
	Optional bool            `json:"optional,omitempty" doc:"The answer is complete without the values of the form."`
	Editable []string        `json:"editable,omitempty" doc:"JSON pointers of the values in the form that may be changed; an empty pointer is everything. Omitted if all may be."`
}
