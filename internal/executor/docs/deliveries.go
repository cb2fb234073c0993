package docs

import (
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// DeliveryKind is the delivery of a notice to one address. Its id starts with the escaped id of the
// request, and it is deleted with the run.
const DeliveryKind store.DocumentKind = "delivery"

// DeliveryState is the state of a delivery.
//
//	queued ──▶ sent ◀──▶ failed ──▶ dead
//	  └──────────▶ obsolete
type DeliveryState string

// The states of a delivery.
const (
	DeliveryQueued   DeliveryState = "queued"
	DeliverySent     DeliveryState = "sent"
	DeliverySeen     DeliveryState = "seen"     // sent, and its person has opened the request
	DeliveryFailed   DeliveryState = "failed"   // and is tried again
	DeliveryDead     DeliveryState = "dead"     // and is not tried again
	DeliveryObsolete DeliveryState = "obsolete" // the request was over before it was sent
)

// DeliveryIndex is the unsealed part of a delivery. It has no personal data.
type DeliveryIndex struct {
	Channel string          `json:"channel"`
	State   DeliveryState   `json:"state"`
	Kind    desk.NoticeKind `json:"kind"`
	Request string          `json:"request"`
	// Attempts counts the attempts since the last success, Sent the successes.
	Attempts int `json:"attempts,omitempty"`
	Sent     int `json:"sent,omitempty"`
	// Code says why the last attempt failed.
	Code string `json:"code,omitempty"`
	// Shows is the version of the request that the copy shows, Revision its revision.
	Shows    string `json:"shows,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// Copy reports that there is a copy that can be replaced.
	Copy bool `json:"copy,omitempty"`
	// Claims counts the claims. Sending is set while a claim lasts. Stale says that the request has
	// changed since the claim.
	Claims  int64 `json:"claims,omitempty"`
	Sending bool  `json:"sending,omitempty"`
	Stale   bool  `json:"stale,omitempty"`
}

// Delivery is the sealed part of a delivery.
type Delivery struct {
	Notice desk.Notice `json:"notice"`
	// Target is the target of the route that led to this address. Person is the person it belongs
	// to, if it was found by their notification settings.
	Target string `json:"target"`
	Person string `json:"person,omitempty"`
	// To is the address, and Ref the copy in the channel.
	To  string `json:"to"`
	Ref string `json:"ref,omitempty"`
}

// Label names the receiver in a request, without the address of a person.
func (d Delivery) Label(channel string) string {
	if d.Person != "" {
		return "user:" + d.Person + " (" + channel + ")"
	}
	return d.Target
}
