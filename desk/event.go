package desk

import (
	"strings"
	"time"
)

// Event is something that happened to a request: for the people who look at it, and for the audit.
type Event struct {
	// Rev is the revision that it led to.
	Rev  int64     `json:"rev"`
	At   time.Time `json:"at"`
	Type EventType `json:"what"`
	// By, Kind, Auth and Via say who it was, how well we know that, and through which channel.
	By   string    `json:"by"`
	Kind ActorKind `json:"kind"`
	Auth Auth      `json:"auth,omitempty"`
	Via  string    `json:"via,omitempty"`
	// Text says in words what was done, as "edited /limit".
	Text string `json:"text"`
	// Matters says that somebody who decides should know: a decision of somebody who did not see it is refused.
	Significant bool `json:"matters,omitempty"`
	// Detail is for programs.
	Detail map[string]string `json:"detail,omitempty"`
	// IdempotencyKey is under which key it was done, if under any. Only the document has it: a digest of what somebody wrote is nothing for an audit.
	IdempotencyKey *IdempotencyKey `json:"once,omitempty"`
}

// EventType is a word for what happened.
type EventType string

// EventType can happen to a request.
const (
	EventAsked                 EventType = "asked"
	EventViewed                EventType = "viewed"
	EventClaimed               EventType = "claimed"
	EventReleased              EventType = "released"
	EventVoted                 EventType = "voted"
	EventEdited                EventType = "edited"
	EventRequirementRaised     EventType = "stricter" // an edit needs more people
	EventClarificationAsked    EventType = "asked_back"
	EventClarificationAnswered EventType = "answered_back"
	EventCommented             EventType = "commented"
	EventDelegated             EventType = "delegated"
	EventSnoozed               EventType = "snoozed"
	EventSnoozeEnded           EventType = "woken"
	EventExtended              EventType = "extended"
	EventEscalated             EventType = "escalated"
	EventDelivered             EventType = "delivered"
	EventOutage                EventType = "outage"
	EventRouteStep             EventType = "step"
	EventWidened               EventType = "widened"
	EventDecided               EventType = "decided"
)

// String says who did what.
func (e Event) String() string { return strings.TrimSpace(e.By + " " + e.Text) }

// maxLog is how many events a document keeps. The audit has them all.
const maxLog = 200
