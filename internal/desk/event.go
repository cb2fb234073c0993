package desk

import (
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Event is a change of a request, for the people who see the request and for the audit log.
type Event struct {
	// Rev is the revision after the event.
	Rev  int64     `json:"rev"`
	At   time.Time `json:"at"`
	Type EventType `json:"what"`
	// By, Kind, Auth and Via describe the actor, the authentication, and the channel.
	By   string           `json:"by"`
	Kind ActorKind        `json:"kind"`
	Auth requirement.Auth `json:"auth,omitempty"`
	Via  string           `json:"via,omitempty"`
	// Text describes the event for people, for example "edited /limit".
	Text string `json:"text"`
	// Significant reports that approvers must know the event. A vote that is based on an earlier
	// revision is refused.
	Significant bool `json:"matters,omitempty"`
	// Detail is for programs.
	Detail map[string]string `json:"detail,omitempty"`
	// IdempotencyKey is the key of the command, if it had one. It is kept in the document only: the
	// digest of a person's text does not belong in the audit log.
	IdempotencyKey *IdempotencyKey `json:"once,omitempty"`
}

// EventType is the type of an event.
type EventType string

// The event types.
const (
	EventAsked                 EventType = "asked"
	EventViewed                EventType = "viewed"
	EventRendered              EventType = "rendered" // for the audit log only
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
	EventNoticeFailed          EventType = "notice_failed"
	EventOutage                EventType = "outage"
	EventRouteStep             EventType = "step"
	EventWidened               EventType = "widened"
	EventStageOpened           EventType = "stage"   // the next groups of an approval chain decide
	EventDecisionPending       EventType = "pending" // in effect after the undo window
	EventVoteWithdrawn         EventType = "vote_withdrawn"
	EventDecided               EventType = "decided"
)

// changesDisplay reports whether posted copies of a request look different after the event.
func (t EventType) changesDisplay() bool {
	switch t {
	case EventViewed, EventRendered, EventDelivered, EventRouteStep,
		EventNoticeFailed: // or a notice that fails would cause the next one
		return false
	default:
		return true
	}
}

// String returns the actor and the text.
func (e Event) String() string { return strings.TrimSpace(e.By + " " + e.Text) }

// maxLog is the number of events that a document keeps. The audit log has all of them.
const maxLog = 200
