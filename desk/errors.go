package desk

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why an act is refused. Nothing is changed by an act that is refused.
var (
	ErrDecided              = errors.New("it is answered")
	ErrExpired              = errors.New("it has expired")
	ErrWithdrawn            = errors.New("it was withdrawn")
	ErrNotHuman             = errors.New("only a person can do that")
	ErrNotMember            = errors.New("they are in none of the groups that are asked")
	ErrExcluded             = errors.New("they have another part in it")
	ErrWeakAuth             = errors.New("they are not authenticated well enough")
	ErrNotAllowed           = errors.New("this request does not allow it")
	ErrNotPermitted         = errors.New("it is not theirs to do")
	ErrClaimed              = errors.New("somebody else looks after it")
	ErrNotClaimed           = errors.New("they do not look after it")
	ErrNoClarification      = errors.New("there is no such open question")
	ErrNoStep               = errors.New("there is no further step to escalate to")
	ErrInvalidTime          = errors.New("the time is out of range")
	ErrInvalidText          = errors.New("the text is missing or too long")
	ErrTooMany              = errors.New("there are too many already")
	ErrInvalidValue         = errors.New("the value does not fit")
	ErrInvalidEdit          = errors.New("these arguments cannot be edited so")
	ErrDenied               = errors.New("the policy denies what would be done")
	ErrChanged              = errors.New("it has changed since they saw it")
	ErrInvalid              = errors.New("the request is invalid")
	ErrKeyReused            = errors.New("they did something else under this key")
	ErrDirectoryUnavailable = errors.New("the directory does not answer") // nothing is known: try again
	ErrPolicyUnavailable    = errors.New("the policy does not answer")    // nothing is known: try again
)

// codes are for programs, and never change.
var codes = []struct {
	err  error
	code string
}{
	{ErrDecided, "already_decided"}, {ErrExpired, "expired"}, {ErrWithdrawn, "withdrawn"}, {ErrNotHuman, "not_human"},
	{ErrNotMember, "not_member"}, {ErrExcluded, "excluded"}, {ErrWeakAuth, "weak_auth"}, {ErrNotAllowed, "not_allowed"},
	{ErrNotPermitted, "not_yours"}, {ErrClaimed, "claimed"}, {ErrNotClaimed, "not_claimed"}, {ErrNoClarification, "no_question"},
	{ErrNoStep, "no_step"}, {ErrInvalidTime, "bad_time"}, {ErrInvalidText, "bad_text"}, {ErrTooMany, "too_many"}, {ErrInvalidValue, "bad_value"},
	{ErrInvalidEdit, "bad_edit"}, {ErrDenied, "denied"}, {ErrChanged, "changed"}, {ErrInvalid, "invalid"}, {ErrKeyReused, "reused"},
	{ErrDirectoryUnavailable, "directory_down"}, {ErrPolicyUnavailable, "policy_down"},
}

// Code is a stable word for why an act was refused; "" for an error that is none of this package's.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return ""
}

// RefusedError says who was refused what, and why. It wraps one of the errors above.
type RefusedError struct {
	Command CommandName
	Actor   string
	Err     error
	// Detail, if there is one, says more.
	Detail string
}

// Error is a sentence for the person who was refused.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("%s by %s: %v", e.Command, e.Actor, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns why.
func (e *RefusedError) Unwrap() error { return e.Err }

// ClosedError says that a request is over, and how it ended. It wraps [ErrDecided], [ErrExpired] or [ErrWithdrawn].
type ClosedError struct {
	State State
	// Outcome, By and At say what became of it; the outcome of one whose deadline has just passed is [OutcomeExpired].
	Outcome Outcome
	By      []string
	At      time.Time
}

// Error says how it ended.
func (e *ClosedError) Error() string {
	s := fmt.Sprintf("%v: %s at %s", e.Unwrap(), e.Outcome, e.At.UTC().Format(time.RFC3339))
	if len(e.By) > 0 {
		s += " by " + strings.Join(e.By, ", ")
	}
	return s
}

// Unwrap returns the error of the state.
func (e *ClosedError) Unwrap() error {
	switch e.State {
	case StateExpired:
		return ErrExpired
	case StateWithdrawn:
		return ErrWithdrawn
	}
	return ErrDecided
}

// ChangedError says what has changed since somebody looked. It wraps [ErrChanged].
type ChangedError struct {
	// Seen is the revision that they saw, Rev and Digest are what they should see now.
	Seen, Rev int64
	Digest    string
	// Changes are what matters of what happened since, the oldest first. The list is empty if they saw something that never was.
	Changes []Event
}

// Error says in words what has changed.
func (e *ChangedError) Error() string {
	if len(e.Changes) == 0 {
		return ErrChanged.Error() + ": look again"
	}
	words := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		words[i] = c.String()
	}
	return ErrChanged.Error() + ": " + strings.Join(words, "; ")
}

// Unwrap returns [ErrChanged].
func (e *ChangedError) Unwrap() error { return ErrChanged }

// VersionError says that a document is of another version than this program knows.
type VersionError struct{ Version int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the request is a document of version %d; this program knows version %d", e.Version, Version)
}
