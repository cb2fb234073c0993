// Package origin has what an agent says about the run that it starts.
package origin

import "encoding/json"

// Origin is what an agent says about its run. The rules of the server see all of it, and cannot
// check it: a rule that allows because of it trusts the agent.
type Origin struct {
	// Requester is the person for whom the agent works; "" is the agent itself.
	Requester string `json:"requester,omitempty"`
	// Environment replaces that of the server; "" is that of the server.
	Environment string `json:"environment,omitempty"`
	// Facts is a JSON object for the rules alone; people do not see it.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// Reader is an optional interface of providers whose input has an [Origin].
type Reader interface {
	// Origin returns that of an input. It is called once, when a run is started.
	Origin(input json.RawMessage) Origin
}
