package webhook

import (
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
)

// Event is a CloudEvent 1.0.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            Data      `json:"data"`
}

// Data describes the run and the request of an event.
type Data struct {
	Account     string `json:"account"`
	Run         string `json:"run,omitempty"`
	StateKey    string `json:"stateKey,omitempty"`
	Graph       string `json:"graph,omitempty"`
	Environment string `json:"environment,omitempty"`
	// Status is the status of the run at the time of the delivery.
	Status string `json:"status,omitempty"`
	// Request is the request of the event, if it has one.
	Request *Request `json:"request,omitempty"`
}

// Request is a request at the time of the delivery. Sensitive values are masked.
type Request struct {
	ID       string     `json:"id"`
	Revision int64      `json:"revision"`
	Kind     string     `json:"kind"`
	Action   string     `json:"action,omitempty"`
	Title    string     `json:"title"`
	Facts    []api.Fact `json:"facts,omitempty"`
	Rules    []string   `json:"rules,omitempty"`
	State    string     `json:"state"`
	// Outcome is how the request ended, such as "approved by ann".
	Outcome   string    `json:"outcome,omitempty"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
	Link      string    `json:"link,omitempty"`
}

// NewRequest describes the request of a card.
func NewRequest(c channel.Card) *Request {
	return &Request{
		ID: c.Request, Revision: c.Revision, Kind: c.Kind, Action: c.Action, Title: c.Title, Facts: c.Facts, Rules: c.Rules,
		State: string(c.State), Outcome: c.Outcome, DecidedAt: c.DecidedAt, Deadline: c.Deadline, Link: c.Link,
	}
}

// NewEvent returns an event. of is its type without the prefix, base is the public address of the
// server or "".
func NewEvent(id, of, subject, base string, at time.Time, data Data) Event {
	if base == "" {
		base = "urn:fermata"
	}
	return Event{
		SpecVersion: "1.0", ID: id, Source: base, Type: typePrefix + of, Subject: subject, Time: at.UTC(), DataContentType: "application/json", Data: data,
	}
}
