package desk

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Reasons for refusing a command. A refused command changes nothing.
var (
	ErrDecided              = errors.New("request already decided")
	ErrExpired              = errors.New("request expired")
	ErrWithdrawn            = errors.New("request withdrawn")
	ErrNotHuman             = errors.New("only a person can do this")
	ErrNotMember            = errors.New("not a member of an approver group")
	ErrExcluded             = errors.New("excluded by separation of duties")
	ErrEarlierStage         = errors.New("an earlier stage of the approval chain is open")
	ErrWeakAuth             = errors.New("authentication is too weak")
	ErrNotAllowed           = errors.New("not allowed for this request")
	ErrNotPermitted         = errors.New("not permitted")
	ErrClaimed              = errors.New("claimed by another person")
	ErrNotClaimed           = errors.New("not claimed by this person")
	ErrNoClarification      = errors.New("no such open clarification")
	ErrNoStep               = errors.New("no further step to escalate to")
	ErrDecisionPending      = errors.New("a decision is pending") // its voter can withdraw it
	ErrNothingToUndo        = errors.New("no pending decision to withdraw")
	ErrInvalidTime          = errors.New("time out of range")
	ErrInvalidText          = errors.New("text is missing or too long")
	ErrTooMany              = errors.New("too many entries")
	ErrInvalidValue         = errors.New("invalid value")
	ErrInvalidEdit          = errors.New("invalid edit of the arguments")
	ErrInvalidConditions    = errors.New("the conditions of the approval are invalid or do not hold")
	ErrForgedIdentity       = errors.New("the answer names another person or group than the caller")
	ErrInvalidDelegate      = errors.New("the delegate is not an eligible approver")
	ErrNotConfirmed         = errors.New("the name of the object was not typed")
	ErrDenied               = errors.New("denied by the policy")
	ErrChanged              = errors.New("request has changed since it was viewed")
	ErrInvalid              = errors.New("invalid request")
	ErrKeyReused            = errors.New("idempotency key was used for another command")
	ErrDirectoryUnavailable = errors.New("directory is unavailable") // temporary: try again
	ErrPolicyUnavailable    = errors.New("policy is unavailable")    // temporary: try again
)

// codes are the codes for programs. They are stored and never change. Package refusal has a
// sentence for each of them.
var codes = []struct {
	err  error
	code string
}{
	{ErrDecided, "already_decided"}, {ErrExpired, "expired"}, {ErrWithdrawn, "withdrawn"},
	{ErrNotHuman, "not_human"}, {ErrNotMember, "not_member"}, {ErrExcluded, "excluded"},
	{ErrWeakAuth, "weak_auth"}, {ErrEarlierStage, "earlier_stage"}, {ErrNotAllowed, "not_allowed"},
	{ErrNotPermitted, "not_yours"}, {ErrClaimed, "claimed"}, {ErrNotClaimed, "not_claimed"},
	{ErrNoClarification, "no_question"}, {ErrNoStep, "no_step"}, {ErrDecisionPending, "decision_pending"},
	{ErrNothingToUndo, "nothing_to_undo"}, {ErrInvalidTime, "bad_time"}, {ErrInvalidText, "bad_text"},
	{ErrTooMany, "too_many"}, {ErrInvalidValue, "bad_value"}, {ErrInvalidEdit, "bad_edit"},
	{ErrInvalidConditions, "invalid_conditions"}, {ErrForgedIdentity, "identity_mismatch"},
	{ErrInvalidDelegate, "delegate_not_eligible"}, {ErrNotConfirmed, "not_confirmed"}, {ErrDenied, "denied"}, {ErrChanged, "changed"},
	{ErrInvalid, "invalid"}, {ErrKeyReused, "reused"},
	{ErrDirectoryUnavailable, "directory_down"}, {ErrPolicyUnavailable, "policy_down"},
}

// Code returns the stable code of an error of this package, or "" for any other error.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return ""
}

// Sentence returns a sentence for the actor whose command was refused, or "" for an error of
// another package. Times in it are in UTC and say so.
func Sentence(err error) string {
	code := Code(err)
	if code == "" {
		return ""
	}
	var detail string
	if weak, ok := errors.AsType[*WeakAuthError](err); ok {
		detail = "sign in with at least " + string(weak.Need)
	} else if closed, ok := errors.AsType[*ClosedError](err); ok && closed.State == StateDecided {
		detail = Decision{Outcome: closed.Outcome, By: closed.By}.String() + " at " + formatTime(closed.At)
	} else if changed, ok := errors.AsType[*ChangedError](err); ok {
		detail = changed.changes()
	} else if refused, ok := errors.AsType[*RefusedError](err); ok && !isTemporary(err) {
		detail = refused.Detail
	}
	return refusal.Sentence(code, detail)
}

// isTemporary reports whether a command was refused only because something is unavailable. The
// details are for the operator.
func isTemporary(err error) bool {
	return errors.Is(err, ErrDirectoryUnavailable) || errors.Is(err, ErrPolicyUnavailable)
}

// RefusedError describes a refused command. It wraps one of the errors above.
type RefusedError struct {
	Command CommandName
	Actor   string
	Err     error
	// Detail is optional.
	Detail string
}

// Error returns the command, the actor and the reason.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("%s by %s: %v", e.Command, e.Actor, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// WeakAuthError reports which strength of authentication a command needs. It wraps [ErrWeakAuth].
type WeakAuthError struct{ Need requirement.Auth }

// Error names the required strength.
func (e *WeakAuthError) Error() string { return ErrWeakAuth.Error() + ": requires " + string(e.Need) }

// Unwrap returns [ErrWeakAuth].
func (e *WeakAuthError) Unwrap() error { return ErrWeakAuth }

// ClosedError reports that a request is closed, and how it ended. It wraps [ErrDecided],
// [ErrExpired] or [ErrWithdrawn].
type ClosedError struct {
	State State
	// Outcome, By and At describe the decision. If the deadline has passed and the request is not
	// expired yet, the outcome is [OutcomeExpired].
	Outcome Outcome
	By      []string
	At      time.Time
}

// Error describes how the request ended.
func (e *ClosedError) Error() string {
	s := fmt.Sprintf("%v: %s at %s", e.Unwrap(), e.Outcome, e.At.UTC().Format(time.RFC3339))
	if len(e.By) > 0 {
		s += " by " + strings.Join(e.By, ", ")
	}
	return s
}

// Unwrap returns the error that belongs to the state.
func (e *ClosedError) Unwrap() error {
	switch e.State {
	case StateExpired:
		return ErrExpired
	case StateWithdrawn:
		return ErrWithdrawn
	}
	return ErrDecided
}

// ChangedError reports what has changed since the actor viewed the request. It wraps [ErrChanged].
type ChangedError struct {
	// Seen is the revision that the actor saw. Rev and Digest are the current ones.
	Seen, Rev int64
	Digest    string
	// Changes are the significant events since then, oldest first. The list is empty if the actor
	// saw a revision or digest that never existed.
	Changes []Event
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return ErrChanged.Error() + ": " + cmp.Or(e.changes(), "reload it")
}

// changes lists the changes in one line.
func (e *ChangedError) changes() string {
	words := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		words[i] = c.String()
	}
	return strings.Join(words, "; ")
}

// Unwrap returns [ErrChanged].
func (e *ChangedError) Unwrap() error { return ErrChanged }

// VersionError reports a document version that this program does not support.
type VersionError struct{ Version int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("request document has version %d; this program supports version %d", e.Version, Version)
}
