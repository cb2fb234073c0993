package api

import "time"

// Credential is an API key, a session or an unused invitation.
type Credential struct {
	ID        string     `json:"id"`
	Name      string     `json:"name" doc:"The person, or the name of the key."`
	Roles     []string   `json:"roles"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Current   bool       `json:"current,omitempty" doc:"Whether it is the credential of this call."`
}

// Setting is a key of the configuration with its effective value.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value" doc:"The value as written in a file. Secrets are masked."`
	From  string `json:"from,omitempty" doc:"The file and line, the variable or the flag; empty for a default."`
}
