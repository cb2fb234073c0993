package api

import "time"

// CreateConversation starts a conversation.
type CreateConversation struct {
	ID        string `json:"id,omitempty" maxLength:"100" doc:"The id, of letters, digits, hyphens, underscores and dots. Generated if it is missing. If you have a conversation with this id, it is returned."`
	Assistant string `json:"assistant,omitempty" maxLength:"64" doc:"The id of the assistant; the first one of list-assistants if it is missing."`
	EndUser   string `json:"endUser,omitempty" maxLength:"200" doc:"The person that the conversation is with, instead of you. Only API keys with the role frontend may set it, and they have to."`
	Language  string `json:"language,omitempty" enum:"en,de,fr,es" doc:"The language of the assistant's questions, until a message names another one."`
}

// SendMessage is a message of the user: a text, a button, telephone keys or a form.
type SendMessage struct {
	ID       string            `json:"id,omitempty" maxLength:"100" doc:"Chosen by the client. A repeated message with the same id counts once."`
	EndUser  string            `json:"endUser,omitempty" maxLength:"200" doc:"The person whose message it is, for API keys with the role frontend."`
	Text     string            `json:"text,omitempty" maxLength:"16384" doc:"What the user wrote or said. At most 16 KiB."`
	Question string            `json:"question,omitempty" maxLength:"100" doc:"The id of the question that the message belongs to. A button or form needs it; a text finds its question by itself."`
	Choice   string            `json:"choice,omitempty" maxLength:"512" doc:"The id of the pressed button: one of the choices of the question, or escape to abandon the task."`
	Fields   map[string]string `json:"fields,omitempty" maxProperties:"50" doc:"The values of a form by field name."`
	Replies  map[string]Reply  `json:"replies,omitempty" maxProperties:"20" doc:"Answers to several questions at once, by question id."`
	Digits   string            `json:"digits,omitempty" maxLength:"20" pattern:"^[0-9*#]*$" doc:"The pressed keys of a telephone."`

	Modality    string  `json:"modality,omitempty" enum:"text,voice" doc:"voice for a spoken message. Defaults to text."`
	Recognition float64 `json:"recognition,omitempty" minimum:"0" maximum:"1" doc:"The confidence of the speech recognition. Omitted: 1."`
	Language    string  `json:"language,omitempty" enum:"en,de,fr,es" doc:"The language of the message. Defaults to that of the conversation."`
	Channel     string  `json:"channel,omitempty" maxLength:"32" doc:"The name of the surface, such as web or phone. It selects the wording."`
}

// Reply is the answer to one of several questions.
type Reply struct {
	Text   string            `json:"text,omitempty" maxLength:"16384"`
	Choice string            `json:"choice,omitempty" maxLength:"512"`
	Fields map[string]string `json:"fields,omitempty" maxProperties:"50"`
}

// Conversation is a conversation in a list.
type Conversation struct {
	ID        string     `json:"id"`
	User      string     `json:"user" doc:"The person that the conversation is with."`
	Assistant string     `json:"assistant,omitempty" doc:"The id of the assistant; missing for that of a program that has only one."`
	Title     string     `json:"title,omitempty" doc:"The beginning of the first message."`
	Open      int        `json:"open" doc:"How many questions wait for the user."`
	At        *time.Time `json:"at,omitempty" doc:"The time of the last message of the user."`
}

// The events of a conversation.
const (
	ConversationLine  = "line"  // a line of the transcript
	ConversationState = "state" // a ConversationStatus
)

// ConversationStatus is the data of the event state.
type ConversationStatus struct {
	Revision int64    `json:"revision" doc:"Grows with each change of the conversation."`
	Working  bool     `json:"working" doc:"A run executes, or an answer is not yet delivered. More lines follow."`
	Open     []string `json:"open" doc:"The ids of the questions that wait for the user."`
}
