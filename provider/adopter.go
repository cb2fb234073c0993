package provider

import "encoding/json"

// Adopter is an optional interface of providers that can continue a run that another client has
// started.
type Adopter interface {
	// Adopts reports whether a run with this input continues such a run. The audit log says so.
	Adopts(input json.RawMessage) bool
}
