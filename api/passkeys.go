package api

import (
	"encoding/json"
	"time"
)

// Passkey is a passkey of a member.
type Passkey struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	CreatedAt time.Time  `json:"createdAt"`
	UsedAt    *time.Time `json:"usedAt,omitempty" doc:"When it was last used to sign in."`
	Synced    bool       `json:"synced" doc:"Whether the authenticator may copy it to other devices."`
}

// Passkeys are the passkeys of the caller.
type Passkeys struct {
	Items []Passkey `json:"items" nullable:"false"`
	// Supported is false at an IP address, for which browsers do not create passkeys.
	Supported bool `json:"supported" doc:"Whether browsers can create passkeys for the address of this server."`
	MayChange bool `json:"mayChange" doc:"Whether this session may add and remove passkeys. If not, sign in again, with a passkey if there is one."`
}

// PasskeyOptions is what a browser needs to create a passkey.
type PasskeyOptions struct {
	Options json.RawMessage `json:"options" doc:"PublicKeyCredentialCreationOptionsJSON (WebAuthn)."`
	State   string          `json:"state" doc:"Send it back with the response of the authenticator."`
}

// AddPasskey is the response of an authenticator.
type AddPasskey struct {
	Name     string          `json:"name,omitempty" maxLength:"100" doc:"A name to recognize it by; the kind of device by default."`
	State    string          `json:"state" maxLength:"8000"`
	Response json.RawMessage `json:"response" doc:"RegistrationResponseJSON (WebAuthn)."`
}

// RenamePasskey is the new name of a passkey.
type RenamePasskey struct {
	Name string `json:"name" minLength:"1" maxLength:"100"`
}
