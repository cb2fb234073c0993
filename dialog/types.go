package dialog

import (
	"time"
)

// Kind is the type of a question.
type Kind string

// The kinds of questions.
const (
	Clarification  Kind = "clarification"  // information is missing; the answer is free text or an option
	Confirmation   Kind = "confirmation"   // an action needs a yes or no
	Disambiguation Kind = "disambiguation" // a name fits several entities
	Form           Kind = "form"           // several fields at once
)

// Relevance says whether the answer to the user depends on the question. An agent asks a
// non-blocking question after its work is done, with the result in Say: if it gets another answer
// than the default, it corrects its work.
type Relevance string

// The relevances. The zero value is Blocking.
const (
	Blocking    Relevance = "blocking"
	NonBlocking Relevance = "non_blocking"
)

// Modality is how the user and the handler exchange messages. The zero value is Text.
type Modality string

// The modalities.
const (
	Text  Modality = "text"
	Voice Modality = "voice"
)

// Risk is the risk of a wrong answer. It comes from the policy, not from a model.
type Risk int

// The levels of risk. A hedge such as "I guess so" is never a yes. From RiskHigh on, a vague
// agreement such as "ok" is not a yes either, and a spoken yes is read back. A spoken yes does not
// confirm an action of RiskCritical.
const (
	RiskNone Risk = iota
	RiskLow
	RiskHigh
	RiskCritical
)

// Language is a language code. Wording and classification support en, de, fr and es.
type Language string

// The supported languages.
const (
	English Language = "en"
	German  Language = "de"
	French  Language = "fr"
	Spanish Language = "es"
)

// Status is the state of a question in a conversation.
type Status string

// The statuses. The first seven are open.
const (
	Queued     Status = "queued"      // not yet asked
	Asked      Status = "asked"       // waits for the user
	Confirming Status = "confirming"  // the read-back of the answer waits for a yes
	Collecting Status = "collecting"  // "someone else": waits for name, role and context
	Comparing  Status = "comparing"   // "someone else": waits whether a similar entity is the same
	Drafted    Status = "drafted"     // "someone else": the form of the new entity waits for a yes
	HandedOver Status = "handed_over" // a person answers for the user
	Answered   Status = "answered"
	Escaped    Status = "escaped" // the user abandoned the task
	Expired    Status = "expired" // the deadline passed
	Lapsed     Status = "lapsed"  // non-blocking, and the conversation went on
	Withdrawn  Status = "withdrawn"
)

// Open reports whether the question can still be answered.
func (s Status) Open() bool {
	switch s {
	case Queued, Asked, Confirming, Collecting, Comparing, Drafted, HandedOver:
		return true
	}
	return false
}

// Option is one of the possible answers.
type Option struct {
	ID      string   `json:"id"`
	Label   string   `json:"label"`
	Aliases []string `json:"aliases,omitempty"`
	// Facts distinguish the option from others, such as {"team": "legal"}. They are shown.
	Facts map[string]string `json:"facts,omitempty"`
}

// The reserved option ids of [Message.Choice]. No option may have one of them.
const (
	ChoiceYes    = "yes"
	ChoiceNo     = "no"
	ChoiceOther  = "other"  // "someone else"
	ChoiceEscape = "escape" // abandon the task
)

// FieldType is the type of a form field.
type FieldType string

// The types of form fields. The zero value is TextField.
const (
	TextField   FieldType = "text"
	NumberField FieldType = "number"
	DateField   FieldType = "date" // 2027-05-31
	ChoiceField FieldType = "choice"
)

// Field is one field of a form.
type Field struct {
	Name     string    `json:"name"`
	Label    string    `json:"label"`
	Type     FieldType `json:"type,omitempty"`
	Choices  []string  `json:"choices,omitempty"`
	Optional bool      `json:"optional,omitempty"`
	// NotPast rejects a date before today. Today begins and ends with the last time zone.
	NotPast bool `json:"not_past,omitempty"`
}

// Fact is a statement about an entity that is stored as soon as it is known which entity is meant.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Scope says for how long an answer is remembered.
type Scope string

// The scopes of remembered answers.
const (
	ScopeConversation Scope = "conversation"
	ScopeUser         Scope = "user"
)

// Remember has an answer reused for later questions with the same key.
type Remember struct {
	Key   string `json:"key"`
	Scope Scope  `json:"scope"`
	// For is how long the answer is valid; 0 is 24 hours for the conversation and 90 days for the
	// user. Confirmations are never remembered.
	For time.Duration `json:"for,omitempty"`
}

// Question is a question of an agent to its end user. Text has no options: the handler adds them.
type Question struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Language is that of Text; "" is that of the conversation. The handler words the rest of the
	// question in the same language.
	Language   Language  `json:"language,omitempty"`
	Relevance  Relevance `json:"relevance,omitempty"`
	Risk       Risk      `json:"risk,omitempty"`
	Options    []Option  `json:"options,omitempty"`
	AllowOther bool      `json:"allow_other,omitempty"` // offers "someone else"
	Fields     []Field   `json:"fields,omitempty"`      // of a form
	// Say is what the agent tells the user before the question, such as the result of its work
	// before a non-blocking question.
	Say string `json:"say,omitempty"`
	// Default is the option with which the agent goes on before a non-blocking question is
	// answered.
	Default string `json:"default,omitempty"`
	// Why is the answer to a counter-question such as "why do you ask?".
	Why string `json:"why,omitempty"`
	// Agent and Node name the asking agent. They are used for records and reports.
	Agent string `json:"agent,omitempty"`
	Node  string `json:"node,omitempty"`
	// StoredData and ToolResults are kept byte for byte and returned with the question.
	StoredData  string `json:"stored_data,omitempty"`
	ToolResults string `json:"tool_results,omitempty"`
	// Facts are stored with the chosen entity in the transaction that accepts the answer.
	Facts    []Fact    `json:"facts,omitempty"`
	Remember *Remember `json:"remember,omitempty"`
	// Rule is the policy rule that required the question.
	Rule string `json:"rule,omitempty"`
	// ExpiresAfter is the time for the answer; 0 means no limit.
	ExpiresAfter time.Duration `json:"expires_after,omitempty"`
}

// Method says how an answer was recognized.
type Method string

// The methods.
const (
	ByButton     Method = "button"
	ByPhrase     Method = "phrase" // yes and no
	ByOrdinal    Method = "ordinal"
	ByName       Method = "name" // label, alias or unique fact
	BySemantics  Method = "semantic"
	ByReadBack   Method = "read_back"
	ByText       Method = "text"
	ByForm       Method = "form"
	ByCreation   Method = "created"
	ByMemory     Method = "remembered"
	ByPerson     Method = "person" // after a hand-over
	ByDeadline   Method = "deadline"
	ByDefault    Method = "default"
	ByCorrection Method = "correction"
	ByPolicy     Method = "policy" // the policy allows the action without a question
)

// Answer is the answer to a question, as the asking agent gets it.
type Answer struct {
	// Escaped means that the user abandoned the task, Expired that the deadline passed. Then all
	// other values are empty: an expired confirmation is not a yes.
	Escaped bool              `json:"escaped,omitempty"`
	Expired bool              `json:"expired,omitempty"`
	Yes     bool              `json:"yes,omitempty"`    // of a confirmation
	Option  string            `json:"option,omitempty"` // id of the option or of the created entity
	Text    string            `json:"text,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
	// Raw is what the user wrote or said.
	Raw      string    `json:"raw,omitempty"`
	Method   Method    `json:"method"`
	Score    float64   `json:"score,omitempty"` // of the recognition, 0 to 1
	Actor    string    `json:"actor,omitempty"`
	Modality Modality  `json:"modality,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Verdict says what a reply is.
type Verdict string

// The verdicts.
const (
	IsAnswer          Verdict = "answer"
	IsEscape          Verdict = "escape"
	IsNewIntent       Verdict = "new_intent"
	IsCounterQuestion Verdict = "counter_question"
	IsUnclear         Verdict = "unclear"
)

// Turn is one question of the handler and the reply of the user. Questions and answers are pairs,
// so that they cannot be out of step.
type Turn struct {
	Question string    `json:"question"`
	Template string    `json:"template"`
	Reply    string    `json:"reply"`
	Verdict  Verdict   `json:"verdict"`
	Modality Modality  `json:"modality"`
	Actor    string    `json:"actor,omitempty"`
	AskedAt  time.Time `json:"asked_at,omitzero"`
	At       time.Time `json:"at,omitzero"`
}

// Target is the interrupt that an answer resumes. It is empty for a question that no run waits
// for.
type Target struct {
	Run       string `json:"run,omitempty"`       // state key of the run
	Interrupt string `json:"interrupt,omitempty"` // id of the interrupt
}

// Asking is a question in a conversation, with everything that happened to it.
type Asking struct {
	ID       string   `json:"id"`
	Question Question `json:"question"`
	Target   Target   `json:"target,omitzero"`
	Status   Status   `json:"status"`
	// Shown is the current wording, Template its name and variant.
	Shown    string   `json:"shown,omitempty"`
	Template string   `json:"template,omitempty"`
	Modality Modality `json:"modality,omitempty"`
	Turns    []Turn   `json:"turns,omitempty"`
	Answer   *Answer  `json:"answer,omitempty"`
	// CorrectedFrom is the method of the answer that the user has corrected; "" for none.
	CorrectedFrom Method `json:"corrected_from,omitempty"`
	// Candidate is the answer whose read-back waits for a yes.
	Candidate *Answer `json:"candidate,omitempty"`
	// Draft is the entity that "someone else" will create.
	Draft  *Entity           `json:"draft,omitempty"`
	Filled map[string]string `json:"filled,omitempty"` // fields of a form that were given so far
	// Page is the page of options on voice; Unclear counts unclear replies, ReAsks all repetitions
	// of the question, and Passed the turns since a non-blocking question was asked.
	Page    int `json:"page,omitempty"`
	Unclear int `json:"unclear,omitempty"`
	ReAsks  int `json:"re_asks,omitempty"`
	Passed  int `json:"passed,omitempty"`
	// Parked means that the user asked for something else first. The question is asked again.
	Parked bool `json:"parked,omitempty"`
	Screen bool `json:"screen,omitempty"` // moved to the screen, cannot be confirmed by voice

	// Again is the run that a yes starts again, after the correction of an answer that it used.
	Again string `json:"again,omitempty"`

	// Undelivered is the reason why the run did not take the answer.
	Undelivered string `json:"undelivered,omitempty"`

	CreatedAt time.Time `json:"created_at,omitzero"`
	AskedAt   time.Time `json:"asked_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Entity is a person or thing that questions refer to.
type Entity struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Aliases []string          `json:"aliases,omitempty"`
	Role    string            `json:"role,omitempty"`
	Context string            `json:"context,omitempty"`
	Facts   map[string]string `json:"facts,omitempty"`
}

// Message is a message of the user.
type Message struct {
	// ID makes a repeated message count once; "" for none.
	ID   string `json:"id,omitempty"`
	Text string `json:"text,omitempty"`
	// Question is the id of the question that the message explicitly belongs to: a button, a form,
	// a quoted reply.
	Question string `json:"question,omitempty"`
	// Choice is the id of the pressed button: an option, or one of the reserved ids.
	Choice string            `json:"choice,omitempty"`
	Fields map[string]string `json:"fields,omitempty"` // a submitted form
	// Replies are the parts of a form with several questions, by question id. Each is handled by
	// itself.
	Replies  map[string]Reply `json:"replies,omitempty"`
	Digits   string           `json:"digits,omitempty"` // keys of a telephone
	Modality Modality         `json:"modality,omitempty"`
	// Recognition is the confidence of the speech recognition; 0 is 1.
	Recognition float64  `json:"recognition,omitempty"`
	Language    Language `json:"language,omitempty"`
	// Channel names the surface, such as "web", "terminal" or "phone". It selects templates.
	Channel string    `json:"channel,omitempty"`
	Actor   string    `json:"actor,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// By is the program that sends the message for the user, and Via how it was authenticated, for
	// audit records; "" if the user sends it.
	By  string `json:"-"`
	Via string `json:"-"`
	// Assistant is that of a conversation that the message creates; "" for the default one.
	Assistant string `json:"-"`
	// Judgement is a model's interpretation.
	Judgement *Judgement `json:"-"`
}

// Reply is one part of a form with several questions.
type Reply struct {
	Text   string            `json:"text,omitempty"`
	Choice string            `json:"choice,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// Conversation is the record of a conversation. Only the handler changes it.
type Conversation struct {
	ID   string `json:"id"`
	User string `json:"user,omitempty"`
	// Assistant is the assistant that the conversation is with; "" for the default one.
	Assistant string `json:"assistant,omitempty"`
	// By is the program that has begun it for the user; "" if the user has.
	By        string    `json:"by,omitempty"`
	Language  Language  `json:"language,omitempty"`
	Modality  Modality  `json:"modality,omitempty"`
	Channel   string    `json:"channel,omitempty"`
	Questions []*Asking `json:"questions"`
	// Focus is the id of the question that the user selected; free text belongs to it.
	Focus string `json:"focus,omitempty"`
	// Which holds a reply that fits several questions until the user has said which one.
	Which *Which `json:"which,omitempty"`
	// Memory holds the remembered answers of the conversation.
	Memory []Remembered `json:"memory,omitempty"`
	// Seq numbers questions.
	Seq int `json:"seq"`
}

// Which is a reply that fits several questions.
type Which struct {
	Text       string   `json:"text"`
	Candidates []string `json:"candidates"` // question ids, in the order shown
}

// Remembered is an answer that is reused.
type Remembered struct {
	Key       string    `json:"key"`
	Scope     Scope     `json:"scope"`
	Answer    Answer    `json:"answer"`
	Question  string    `json:"question"` // id of the question that was answered
	ExpiresAt time.Time `json:"expires_at"`
	// Dependents are the ids of the questions that were answered with it.
	Dependents []string `json:"dependents,omitempty"`
}

// Find returns a question by id, or nil.
func (c *Conversation) Find(id string) *Asking {
	for _, a := range c.Questions {
		if a.ID == id {
			return a
		}
	}
	return nil
}
