// Package refusal has the sentences that people read when the desk refuses what they do. The web
// inbox, the API, the terminal, the command line and the channels show the same ones.
package refusal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sentences are the sentences by the codes of package desk.
var sentences = map[string]string{
	"already_decided":       "The request was already decided.",
	"expired":               "The deadline has passed.",
	"withdrawn":             "The run no longer waits for this request.",
	"not_human":             "Only a person can do this.",
	"not_member":            "You are not in a group that decides this.",
	"excluded":              "Separation of duties excludes you from this decision.",
	"earlier_stage":         "An earlier stage has to agree first.",
	"weak_auth":             "Your sign-in is not strong enough for this.",
	"not_allowed":           "The rules do not allow this for the request.",
	"not_yours":             "You may not do this.",
	"claimed":               "Another person has claimed the request.",
	"not_claimed":           "You have not claimed the request.",
	"no_question":           "The request has no such open question.",
	"no_step":               "The route has no further step.",
	"decision_pending":      "A decision was made and is still pending.",
	"nothing_to_undo":       "There is no pending decision to withdraw.",
	"bad_time":              "This time is not possible.",
	"bad_text":              "The text is missing, too long or not valid.",
	"too_many":              "The request has too many entries.",
	"bad_value":             "The value is not valid.",
	"bad_edit":              "This edit is not possible.",
	"invalid_conditions":    "The conditions are not valid, or do not hold now.",
	"identity_mismatch":     "The answer names another person or group than you.",
	"delegate_not_eligible": "The decision cannot be delegated to this person.",
	"not_confirmed":         "An approval of this needs the typed name of its object.",
	"denied":                "The policy denies this.",
	"changed":               "The request has changed since you looked at it.",
	"invalid":               "The call is not valid.",
	"reused":                "The idempotency key was used for another call.",
	"directory_down":        "The directory of groups cannot be reached. Try again later.",
	"policy_down":           "The policy cannot be evaluated. Try again later.",
}

// Codes returns the codes that have a sentence, sorted.
func Codes() []string { return slices.Sorted(maps.Keys(sentences)) }

// Sentence returns the sentence of a code, followed by the detail if there is one. The sentence of
// an unknown code names the code: a client may be older than its server.
func Sentence(code, detail string) string {
	s, ok := sentences[code]
	if !ok {
		s = fmt.Sprintf("This is not possible now (%s).", code)
	}
	if detail == "" {
		return s
	}
	return strings.TrimSuffix(s, ".") + ": " + strings.TrimSuffix(detail, ".") + "."
}
