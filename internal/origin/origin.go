// Package origin has what an agent states about the run that it starts.
package origin

import "encoding/json"

// Origin is what an agent states about its run. The server cannot check it, so it replaces nothing
// that the server knows: only rules that use it believe the agent.
type Origin struct {
	Stated
	// Facts is a JSON object for the rules alone; people do not see it.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// Stated is the part that people see.
type Stated struct {
	// Requester is the person for whom the agent works; "" for none. It can exclude a person from
	// deciding, and never include one.
	Requester string `json:"requester,omitempty" cel:"requester"`
	// Environment is the environment of the request; "" for none.
	Environment string `json:"environment,omitempty" cel:"environment"`
}

// Reader is an optional interface of providers whose input has an [Origin].
type Reader interface {
	// Origin returns that of an input. It is called once, when a run is started.
	Origin(input json.RawMessage) Origin
}
