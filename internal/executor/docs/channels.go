package docs

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// InboundKind is a message from a person in a channel. Its id is the channel, "/" and the id of
	// the click.
	InboundKind store.DocumentKind = "inbound"
	// LinkKind links an account of a channel to a principal. Its id is the channel, "/" and the id
	// of the person in the channel.
	LinkKind store.DocumentKind = "channel-link"
	// LinkTokenKind is a one-time link. Its id is the digest of the token.
	LinkTokenKind store.DocumentKind = "channel-link-token"
)

// InboundIndex is the unsealed part of a message from a person.
type InboundIndex struct {
	Channel  string `json:"channel"`
	Attempts int    `json:"attempts,omitempty"`
	Done     bool   `json:"done,omitempty"`
}

// Inbound is the sealed part of a message from a person.
type Inbound struct {
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
	At   time.Time       `json:"at"`
}

// ChannelLink is who an account of a channel belongs to.
type ChannelLink struct {
	Channel   string    `json:"channel"`
	Sender    string    `json:"sender"`
	Name      string    `json:"name,omitempty"`
	Principal string    `json:"principal"`
	Roles     []string  `json:"roles,omitempty"`
	At        time.Time `json:"at"`
	Until     time.Time `json:"until"`
	Revoked   bool      `json:"revoked,omitempty"`
}

// LinkToken is the sealed part of a one-time link.
type LinkToken struct {
	Channel string    `json:"channel"`
	Sender  string    `json:"sender"`
	Name    string    `json:"name,omitempty"`
	Until   time.Time `json:"until"`
	Used    bool      `json:"used,omitempty"`
}
