package fermata

import (
	"encoding/json"
	"fmt"
)

// Refusal ends an interrupt without an answer of its kind: a person returned it for redesign
// ([VerbReturn]), or a rule rejected it at its deadline ([VerbReject]). It can be passed instead of
// an answer to the call that resumes a run, for every interrupt that has a kind. [Kind.Ask] then
// returns a [*ReturnedError] or a [*RejectedError], and a hold continues as the graph declares.
type Refusal struct{ Decision }

// Check returns an error for a verb other than return and reject.
func (r Refusal) Check() error {
	if r.Verb != VerbReturn && r.Verb != VerbReject {
		return fmt.Errorf("a refusal has the verb %q or %q, not %q", VerbReturn, VerbReject, r.Verb)
	}
	return nil
}

// Err returns the refusal as an error of the question or action.
func (r Refusal) Err(action string) error {
	if r.Verb == VerbReturn {
		return &ReturnedError{Action: action, Reason: r.Reason, By: r.By, At: r.At, Auth: r.Auth}
	}
	return &RejectedError{Action: action, Reason: r.Reason, Codes: r.Codes, By: r.By, At: r.At, Auth: r.Auth}
}

// decodeRefusal returns a stored refusal as an error.
func decodeRefusal(action string, data json.RawMessage) error {
	var r Refusal
	if err := decodeStored(data, &r.Decision); err != nil {
		return err
	}
	return r.Err(action)
}
