package fermata

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/attest"
)

// Attestation says who gave an answer, when, how they were authenticated, and by which rule. The
// runtime writes it; a client of a server cannot.
type Attestation struct {
	// By is a person, several people separated by ", ", or "policy" followed by the name of a rule.
	By string
	At time.Time
	// Auth is how the person was authenticated, of several people the weakest; "" if unknown.
	Auth string
	// Rule is the rule that decided; "" if people did.
	Rule string
}

// AttestedAnswer is an answer together with its attestation. Pass it where a run is resumed, in
// place of the answer. Fields of the answer with the tag "attest" are overwritten, and a graph that
// records its holds stores the attestation.
//
// The roles of the tag are "by", "at", "auth" and "rule":
//
//	type Verdict struct {
//		Good bool      `json:"good"`
//		By   string    `json:"by,omitempty" attest:"by"`
//		At   time.Time `json:"at,omitzero" attest:"at"`
//	}
//
// A server fills such fields of every answer. It rejects an answer that names a person other than
// the caller.
type AttestedAnswer struct {
	Answer any
	Attestation
}

// ErrForgedIdentity reports an answer that contains another name, authentication or decision record
// than the runtime's own. The interrupt stays open.
var ErrForgedIdentity = errors.New("fermata: the answer names another person than the caller, or changes the record of decisions")

// contents are the values of the attested fields. Empty ones are left out.
func (a Attestation) contents() map[attest.Role]any {
	c := make(map[attest.Role]any)
	for role, text := range map[attest.Role]string{attest.By: a.By, attest.Auth: a.Auth, attest.Rule: a.Rule} {
		if text != "" {
			c[role] = text
		}
	}
	if !a.At.IsZero() {
		c[attest.At] = a.At.UTC()
	}
	return c
}

// Write returns an answer with its attested fields replaced; fields are roles by JSON name, as in
// [AnyKind].
func (a Attestation) Write(fields map[string]string, answer json.RawMessage) (json.RawMessage, error) {
	roles := make(attest.Fields, len(fields))
	for name, role := range fields {
		roles[name] = attest.Role(role)
	}
	return roles.Set(answer, a.contents())
}
