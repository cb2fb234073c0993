package dialog

import (
	"context"
	"time"
)

// Handler holds conversations. It is the only component that speaks to the user. It keeps nothing
// in memory: any process with the same store can handle the next message. Its methods are safe for
// concurrent use. Method Dialog of executor.Executor returns one.
//
// A message is accepted in one transaction: the new state of the conversation, facts, entities and
// remembered answers, and what has to be delivered to runs. The delivery follows, at least once,
// under an id with which it counts once.
type Handler interface {
	// Message handles a message of a user and returns the conversation afterwards. The first
	// message creates it. A message that is repeated with its id changes nothing.
	//
	// It returns ErrUnknownQuestion, ErrClosed or ErrInvalidReply for a reply that the conversation
	// does not take, ErrNotFound for the conversation of another user, ErrMessageReused for the id
	// of another message, and ErrInvalidID. After any other error it is unknown whether the message
	// was accepted: repeat it with the same id.
	Message(ctx context.Context, account, id string, msg Message) (Record, error)
	// Advance delivers accepted answers and starts, takes over questions and outputs of runs, ends
	// questions whose deadline has passed, and asks the next questions. It returns the newest part
	// of the conversation, or ErrNotFound.
	Advance(ctx context.Context, account, id string) (Record, error)
	// Get returns a whole conversation, after what was on its way has arrived. It returns
	// ErrNotFound if the account has no such conversation.
	Get(ctx context.Context, account, id string) (Record, error)
	// Entities returns the entities that were created for a user.
	Entities(ctx context.Context, account, user string) ([]Entity, error)
	// Facts returns the facts that were stored with an entity of a user.
	Facts(ctx context.Context, account, user, entity string) ([]StoredFact, error)
	// Report summarizes the conversations of an account on the days (UTC) from one time to another.
	// A zero time means that there is no limit. Deleted conversations are included.
	Report(ctx context.Context, account string, from, to time.Time) (Report, error)
}

// StoredFact is a fact of an entity, with the question that it was stored by.
type StoredFact struct {
	Name         string    `json:"name"`
	Value        string    `json:"value"`
	Conversation string    `json:"conversation"`
	Question     string    `json:"question"`
	At           time.Time `json:"at"`
}
