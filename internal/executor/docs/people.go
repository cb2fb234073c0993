package docs

import (
	"time"

	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/store"
)

// PersonKind has the notification settings and the addresses of a person. Its id is the person.
const PersonKind store.DocumentKind = "person"

// Person is the sealed part of a person.
type Person struct {
	Settings people.Settings `json:"settings"`
	// Addresses are where the person is reached, oldest first.
	Addresses []PersonAddress `json:"addresses,omitempty"`
}

// PersonIndex is the unsealed part of a person. It has no personal data.
type PersonIndex struct {
	// Inbox reports that the person has an address that is not a linked account, such as a browser.
	Inbox bool `json:"inbox,omitempty"`
}

// PersonAddress is an address of a person: a linked account of a channel, or a browser.
type PersonAddress struct {
	// ID is unique for the person.
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Sender is the id of a linked account; "" for other addresses. Its link can be revoked.
	Sender string `json:"sender,omitempty"`
	// To is where the channel sends.
	To   string    `json:"to"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
}
