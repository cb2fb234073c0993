package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Summary returns the state of the request in one line: "claimed by ann, 1 of 2, needs 1 × finops,
// 3 h left".
func (r Request) Summary(now time.Time) string {
	if r.Decision != nil {
		return r.Decision.String()
	}
	if r.Pending != nil {
		return r.Pending.String()
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
		add("%s waits for clarification", r.Clarifications[i].By)
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
		add("deadline passed")
	}
	return strings.Join(parts, ", ")
}

// String returns how the request ended: "approved by ann, bob", "expired: stale".
func (f Decision) String() string {
	words := map[Outcome]string{
		OutcomeApproved: "approved", OutcomeRejected: "rejected", OutcomeReturned: "returned for redesign", OutcomeAnswered: "answered", OutcomeExpired: "expired", OutcomeAbandoned: "abandoned", OutcomeWithdrawn: "withdrawn",
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

// formatRemaining rounds a duration down for display.
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

// CheckEligible returns why a person may not decide the request, or nil. [Code] knows the errors.
// It is for display; [Apply] checks again.
func CheckEligible(r Request, person string, directory Directory) error {
	verb := requirement.VerbApprove
	if r.Subject.Action == "" {
		verb = requirement.VerbRespond
	}
	return checkEligibleFor(r, person, verb, directory)
}

// AllowedVerbs returns the verbs of a request that a person may use. The last editor may not
// approve, but may reject or edit again. If the person may not decide at all, the error is that of
// [CheckEligible], or [ErrDecisionPending].
func AllowedVerbs(r Request, person string, directory Directory) ([]requirement.Verb, error) {
	if r.Pending != nil {
		return nil, ErrDecisionPending
	}
	err := CheckEligible(r, person, directory)
	r.Requirement.Verbs = r.possible()
	if err == nil {
		return r.Requirement.Verbs, nil
	}
	if checkEligibleFor(r, person, requirement.VerbReject, directory) != nil {
		return nil, err
	}
	return slices.DeleteFunc(r.Requirement.Verbs, func(v requirement.Verb) bool { return v == requirement.VerbApprove }), nil
}

func checkEligibleFor(r Request, person string, verb requirement.Verb, directory Directory) error {
	d := &update{r: r, env: Env{Directory: directory}, command: "decide", from: From{Actor: Actor{ID: person}}}
	if err := d.checkEligible(person, verb); err != nil {
		return err
	}
	return d.checkStage(person, r.openStage())
}
