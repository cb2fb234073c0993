package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Summary is one line on where the request stands: "claimed by ann, 1 of 2, needs 1 × finops, 3 h left".
func (r Request) Summary(now time.Time) string {
	if r.Final != nil {
		return r.Final.String()
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !r.Snoozed.IsZero() && now.Before(r.Snoozed) {
		add("snoozed until %s", stamp(r.Snoozed))
	}
	if r.Claim != nil {
		add("claimed by %s", r.Claim.By)
	}
	if i := r.openQuestion(); i >= 0 {
		add("%s waits for an answer of the run", r.Questions[i].By)
	}
	if r.Edit != nil {
		add("edited by %s", r.Edit.By)
	}
	if r.Place.Escalated > 0 {
		add("escalated")
	}
	add("%s", r.Progress)
	if left := r.Deadline.Sub(now); left > 0 {
		add("%s left", about(left))
	} else {
		add("out of time")
	}
	return strings.Join(parts, ", ")
}

// String says how a request ended: "approved by ann, bob", "expired: stale".
func (f Final) String() string {
	words := map[Outcome]string{
		Approved: "approved", Rejected: "rejected", Responded: "answered", Lapsed: "expired", Escaped: "given up", Dropped: "withdrawn",
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

// about rounds a duration down to what people say.
func about(d time.Duration) string {
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

// MayDecide reports whether somebody's word on the request would count, and why not: an error that [Code] knows. It is for showing
// the right buttons; [Apply] decides for itself.
func MayDecide(r Request, person string, directory Directory) error {
	verb := VerbApprove
	if r.Asked.Action == "" {
		verb = VerbRespond
	}
	return wouldCount(r, person, verb, directory)
}

// MayDo are the verbs of a request that are open to somebody. Whoever edited an action last may not say yes to it, but say no, or edit it again. If no word of
// theirs would count, the error is that of [MayDecide].
func MayDo(r Request, person string, directory Directory) ([]Verb, error) {
	err := MayDecide(r, person, directory)
	if err == nil {
		return slices.Clone(r.Need.Verbs), nil
	}
	if wouldCount(r, person, VerbReject, directory) != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(r.Need.Verbs), func(v Verb) bool { return v == VerbApprove }), nil
}

func wouldCount(r Request, person string, verb Verb, directory Directory) error {
	d := &draft{r: r, env: Env{Directory: directory}, act: "decide", from: From{Actor: Actor{ID: person}}}
	return d.mayDecide(person, verb)
}
