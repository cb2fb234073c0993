package docs

import (
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
)

// ClockDecision is what a rule decided at the deadline of a request. The store says that it
// expired; the request says more.
type ClockDecision struct {
	// Answer is the answer as JSON. Rejection is set if the request was rejected.
	Answer    json.RawMessage
	Rejection *fermata.Decision
}

// ClockDecisionOf returns the decision of a rule at the deadline of a request, or nil if there is
// none.
func ClockDecisionOf(doc desk.Request) (*ClockDecision, error) {
	final := doc.Decision
	if final == nil || len(final.By) != 1 || final.By[0] != desk.ClockName {
		return nil, nil
	}
	switch final.Outcome {
	case desk.OutcomeRejected:
		said := &fermata.Decision{Verb: fermata.VerbReject, Reason: final.Reason, By: desk.ClockName, At: final.At}
		data, err := json.Marshal(said)
		return &ClockDecision{Answer: data, Rejection: said}, err
	case desk.OutcomeAnswered:
		return &ClockDecision{Answer: final.Value}, nil
	}
	return nil, nil
}
