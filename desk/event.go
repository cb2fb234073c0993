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
	What What      `json:"what"`
	// By, Kind, Auth and Via say who it was, how well we know that, and through which channel.
	By   string    `json:"by"`
	Kind ActorKind `json:"kind"`
	Auth Auth      `json:"auth,omitempty"`
	Via  string    `json:"via,omitempty"`
	// Text says in words what was done, as "edited /limit".
	Text string `json:"text"`
	// Matters says that somebody who decides should know: a decision of somebody who did not see it is refused.
	Matters bool `json:"matters,omitempty"`
	// Detail is for programs.
	Detail map[string]string `json:"detail,omitempty"`
	// Once is under which key it was done, if under any. Only the document has it: a digest of what somebody wrote is nothing for an audit.
	Once *Once `json:"once,omitempty"`
}

// What is a word for what happened.
type What string

// What can happen to a request.
const (
	WasAsked     What = "asked"
	WasViewed    What = "viewed"
	WasClaimed   What = "claimed"
	WasReleased  What = "released"
	WasVoted     What = "voted"
	WasEdited    What = "edited"
	WasStricter  What = "stricter" // an edit needs more people
	WasQuestion  What = "asked_back"
	WasReplied   What = "answered_back"
	WasComment   What = "commented"
	WasDelegated What = "delegated"
	WasSnoozed   What = "snoozed"
	WasWoken     What = "woken"
	WasExtended  What = "extended"
	WasEscalated What = "escalated"
	WasDelivered What = "delivered"
	WasOutage    What = "outage"
	WasStep      What = "step"
	WasWidened   What = "widened"
	WasDecided   What = "decided"
)

// String says who did what.
func (e Event) String() string { return strings.TrimSpace(e.By + " " + e.Text) }

// maxLog is how many events a document keeps. The audit has them all.
const maxLog = 200
