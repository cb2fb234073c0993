package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Summary is one line on where the request stands: "claimed by ann, 1 of 2, needs 1 × finops, 3 h left".
func (r Request) Summary(now time.Time) string {
	if r.Decision != nil {
		return r.Decision.String()
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !r.Snoozed.IsZero() && now.Before(r.Snoozed) {
		add("snoozed until %s", formatTime(r.Snoozed))
	}
	if r.Claim != nil {
		add("claimed by %s", r.Claim.By)
	}
	if i := r.openClarification(); i >= 0 {
		add("%s waits for an answer of the run", r.Clarifications[i].By)
	}
	if r.Edit != nil {
		add("edited by %s", r.Edit.By)
	}
	if r.RouteProgress.Escalated > 0 {
		add("escalated")
	}
	add("%s", r.VoteProgress)
	if left := r.Deadline.Sub(now); left > 0 {
		add("%s left", formatRemaining(left))
	} else {
		add("out of time")
	}
	return strings.Join(parts, ", ")
}

// String says how a request ended: "approved by ann, bob", "expired: stale".
func (f Decision) String() string {
	words := map[Outcome]string{
		OutcomeApproved: "approved", OutcomeRejected: "rejected", OutcomeAnswered: "answered", OutcomeExpired: "expired", OutcomeAbandoned: "given up", OutcomeWithdrawn: "withdrawn",
	}
	s := words[f.Outcome]
	if f.Args != nil {
		s += " with edits"
	}
	if len(f.By) > 0 {
		s += " by " + strings.Join(f.By, ", ")
	}
	if f.Reason != "" {
		s += ": " + f.Reason
	}
	return s
}

// formatRemaining rounds a duration down to what people say.
func formatRemaining(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	case d >= time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	case d >= time.Minute:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	}
	return "less than a minute"
}

// CheckEligible reports whether somebody's word on the request would count, and why not: an error that [Code] knows. It is for showing
// the right buttons; [Apply] decides for itself.
func CheckEligible(r Request, person string, directory Directory) error {
	verb := VerbApprove
	if r.Subject.Action == "" {
		verb = VerbRespond
	}
	return checkEligibleFor(r, person, verb, directory)
}

// AllowedVerbs are the verbs of a request that are open to somebody. Whoever edited an action last may not say yes to it, but say no, or edit it again. If no word of
// theirs would count, the error is that of [CheckEligible].
func AllowedVerbs(r Request, person string, directory Directory) ([]Verb, error) {
	err := CheckEligible(r, person, directory)
	if err == nil {
		return slices.Clone(r.Requirement.Verbs), nil
	}
	if checkEligibleFor(r, person, VerbReject, directory) != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(r.Requirement.Verbs), func(v Verb) bool { return v == VerbApprove }), nil
}

func checkEligibleFor(r Request, person string, verb Verb, directory Directory) error {
	d := &update{r: r, env: Env{Directory: directory}, command: "decide", from: From{Actor: Actor{ID: person}}}
	return d.checkEligible(person, verb)
}
