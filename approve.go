package fermata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Action describes an action on the outside world that needs approval.
type Action[T any] struct {
	// Name identifies the action, for example "drop-table". Args are its arguments. Arguments that
	// JSON cannot represent completely cause an [EncodeError].
	Name string
	Args T
	// Summary is one line for the approver. It describes Args, so it is not shown with edited
	// arguments.
	Summary string
	// ArgsSchema is the JSON Schema for edited arguments. The default is derived from T.
	ArgsSchema json.RawMessage
	// Fixed forbids edited arguments: the approver can only approve or reject.
	Fixed bool
	// EditableByPolicy makes fixed arguments editable where the policy of the server allows it. It
	// has no effect without a server.
	EditableByPolicy bool
	// Policy is evaluated in addition to the run's policy. The stricter ruling counts: deny before
	// ask before allow.
	Policy Policy
	// Target, if set, reads the current state of the action's target, for example a row count or a
	// version. The approver sees it. It is read again after the approval; if it has changed, the
	// approver is asked again and sees both values. The same happens if an approver edits the
	// arguments and the target of the new arguments differs.
	Target func(ctx context.Context, args T) (any, error)
	// Evidence is shown to the approver. It describes Args, so it is not shown with edited
	// arguments.
	Evidence []Evidence
}

// Approval is the kind of the requests that [Approve] raises.
var Approval = NewKind[ApprovalRequest, Decision]("approval")

// ApprovalRequest is the question that an approver sees.
type ApprovalRequest struct {
	Action  string `json:"action"`
	Summary string `json:"summary,omitempty"`
	// Args are the arguments that are used if the decision is an approve without edits.
	Args json.RawMessage `json:"args"`
	// ArgsSchema is the JSON Schema for edited arguments.
	ArgsSchema json.RawMessage `json:"argsSchema,omitempty"`
	// Fixed reports that the arguments cannot be edited.
	Fixed bool `json:"fixed,omitempty"`
	// Digest identifies this action with these arguments.
	Digest string `json:"digest"`
	// Rule and Reason explain why approval is required.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Target is the current state of the action's target. PreviousTarget is its state at the last
	// approval; it is set if the approver is asked again because the target has changed.
	Target         json.RawMessage `json:"target,omitempty"`
	PreviousTarget json.RawMessage `json:"before,omitempty"`
	// Voided says why an earlier approval is void, if the approver is asked again for that reason.
	Voided string `json:"voided,omitempty"`
	// Evidence is what the program gives the approver to base the decision on.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// String returns the request as one line of text.
func (r ApprovalRequest) String() string {
	text := "approve " + r.Action + " " + string(r.Args)
	if r.Summary != "" {
		text += ": " + r.Summary
	}
	return text
}

// Approved is the proof that an action may be performed, with the approved arguments. [Effect]
// accepts only values returned by [Approve]. A value is valid for one effect in the node activation
// that requested it. It cannot be stored.
type Approved[T any] struct {
	activation      *activation.Activation
	id              string
	interruptID     string // id of the interrupt that a person answered; "" if a policy decided
	address         string // where approval was requested
	action          string
	raw             json.RawMessage
	args            T
	digest          string
	by              string
	policyDigest    string // digest of the policy that decided, if one did
	requestedDigest string // digest of the arguments that the program requested
	conditions      Conditions
	askAgain        func(ctx context.Context, reason string) error // set if a person approved
}

// Args returns the approved arguments. They may have been edited.
func (a Approved[T]) Args() T { return a.args }

// Digest identifies the action with the approved arguments.
func (a Approved[T]) Digest() string { return a.digest }

// Edited reports whether the approved arguments differ from those of the [Action].
func (a Approved[T]) Edited() bool { return a.digest != a.requestedDigest }

// By returns who approved: a person, "" if the decision names no person, or "policy" followed by
// the name of the rule.
func (a Approved[T]) By() string { return a.by }

// Conditions returns the conditions of the approval. [Effect] checks them.
func (a Approved[T]) Conditions() Conditions { return a.conditions }

// Approve evaluates the run's policy for the action and asks a person if the policy requires it.
// The interrupt is of kind [Approval] with an [ApprovalRequest]; its answer is a [Decision]. Like
// [Kind.Ask], Approve returns an error that the node must return while the request is open. A
// rejection is a [*RejectedError], a return for redesign a [*ReturnedError], an expired request an
// [*ExpiredError]. One activation can request the same action with the same arguments only once.
func Approve[T any](ctx context.Context, action Action[T]) (Approved[T], error) {
	var zero Approved[T]
	scope := activation.FromContext(ctx)
	if scope == nil {
		return zero, ErrNoRun
	}
	raw, digest, err := action.encode()
	if err != nil {
		return zero, &EncodeError{Value: "the arguments of " + action.Name, Err: err}
	}
	place := scope.Child(Segment{Type: SegmentApprove, ID: action.Name, SubID: digest[:12]}.String())
	if err := place.Claim("approval"); err != nil {
		return zero, err
	}
	approved := Approved[T]{activation: scope.Activation, action: action.Name, raw: raw, args: action.Args, digest: digest, requestedDigest: digest, address: place.FullAddress()}
	approved.id = ident.Derive("apr", scope.Host.Run(), place.Path())
	ruling, err := approved.evaluatePolicy(ctx, place, action.Policy)
	if err != nil {
		return zero, err
	}
	switch ruling.Verdict {
	case Deny:
		return zero, &RejectedError{Action: action.Name, Reason: ruling.Reason, By: decidedByRule(ruling)}
	case Allow:
		approved.by, approved.policyDigest = decidedByRule(ruling), ruling.PolicyDigest
		return approved, nil
	}
	return requestApproval(ctx, place, action, approved, ruling)
}

// encode returns the arguments as JSON and the digest of the action with them. It replaces Args by
// their round trip, which is what an effect receives.
func (a *Action[T]) encode() (raw json.RawMessage, digest string, err error) {
	// check before the approver sees incomplete arguments
	if err = checkEncodable(reflect.TypeFor[T]()); err != nil {
		return nil, "", err
	}
	if raw, err = roundtrip.Marshal(a.Args); err != nil {
		return nil, "", err
	}
	if a.Args, err = roundTrip(a.Args, raw); err != nil {
		return nil, "", err
	}
	digest, err = actionDigest(a.Name, raw)
	return raw, digest, err
}

func decidedByRule(r Ruling) string {
	if r.Rule == "" {
		return "policy"
	}
	return "policy " + r.Rule
}

// actionDigest returns the same digest for all JSON spellings of the same action, and different
// digests for different actions.
func actionDigest(name string, args json.RawMessage) (string, error) {
	canonical, err := strictjson.Canonical(args)
	if err != nil {
		return "", err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return "", err
	}
	//mutate:digest-covers-arguments
	sum := sha256.Sum256(bytes.Join([][]byte{quoted, canonical}, []byte{'\n'}))
	return hex.EncodeToString(sum[:]), nil
}

// evaluatePolicy returns the ruling of the policies. The ruling is recorded once per activation and
// path, because a second evaluation could differ. Policies are not evaluated for an effect that has
// begun: it was approved before, and the ledger knows it only under that approval.
func (a Approved[T]) evaluatePolicy(ctx context.Context, place *activation.Scope, actionPolicy Policy) (Ruling, error) {
	var ruling Ruling
	general, _ := place.Host.Policy().(Policy)
	begun := a.effectBegun()
	if !begun && general == nil && (actionPolicy == nil || actionPolicy == AlwaysAsk) {
		return ruling, nil
	}
	if data, ok := place.Recorded(entryRuling); ok {
		return ruling, json.Unmarshal(data, &ruling)
	}
	if begun { //mutate:begun-effect-keeps-ruling
		return ruling, nil
	}
	address, err := ParseAddress(place.FullAddress())
	if err != nil {
		return ruling, err
	}
	// The run's policy comes last because it may count what it allows. If both ask, its ruling
	// names the approvers.
	ruling, err = strictest(0, []Policy{actionPolicy, general}).Decide(ctx, ActionRequest{Run: place.Host.Run(), Address: address, Path: place.Path(), Action: a.action, Args: a.raw, Digest: a.digest})
	if err != nil {
		return ruling, fmt.Errorf("%w: %s: %w", ErrPolicy, a.action, err) //mutate:policy-error-denies
	}
	data, err := json.Marshal(ruling)
	if err != nil {
		return ruling, err
	}
	return ruling, place.Record(ctx, entryRuling, data, activation.SaveWithNext)
}

// requestApproval asks a person and returns the approval or the rejection. It asks again, in a new
// round, if the target of the action has changed or the conditions of the approval did not hold.
func requestApproval[T any](ctx context.Context, place *activation.Scope, action Action[T], approved Approved[T], ruling Ruling) (Approved[T], error) {
	var previous json.RawMessage // the target at the last approval
	voided := ""                 // why the last approval is void
	for round := 1; ; round++ {
		decided, target, err := requestRound(ctx, place, action, approved, ruling, previous, voided)
		if err != nil {
			return decided, err
		}
		changed := place.Child(Segment{Type: "drift", ID: strconv.Itoa(round)}.String())
		decided.askAgain = func(ctx context.Context, reason string) error {
			if err := recordVoid(ctx, changed, reason); err != nil {
				return err
			}
			_, _, err := requestRound(ctx, changed, action, decided, ruling, target, reason)
			return err
		}
		if voided, err = voidReason(changed); err != nil {
			return Approved[T]{}, err
		}
		//mutate:drifted-approval-unused
		// a recorded change voids this approval, even if the target has changed back
		if _, drifted := changed.Recorded(entryTarget); !drifted && voided == "" {
			if action.Target == nil || decided.effectBegun() {
				return decided, nil // the change may be the result of the effect itself
			}
			now, err := checkTarget(ctx, action, decided.args)
			if err != nil {
				return Approved[T]{}, err
			}
			if bytes.Equal(now, target) {
				return decided, nil
			}
		}
		approved, place, previous = decided, changed, target
	}
}

// requestRound asks once, and returns the decision and the target that was shown.
func requestRound[T any](ctx context.Context, place *activation.Scope, action Action[T], approved Approved[T], ruling Ruling, previous json.RawMessage, voided string) (decided Approved[T], target json.RawMessage, err error) {
	if action.Target != nil {
		if target, err = checkTargetOnce(ctx, place, action, approved.args); err != nil {
			return decided, nil, err
		}
	}
	decided, err = requestOnce(ctx, place, action, approved, ruling, targetState{current: target, previous: previous}, voided)
	return decided, target, err
}

// targetState is the state of an action's target: the current one, and the one at the last
// approval.
type targetState struct{ current, previous json.RawMessage }

// checkTarget reads the state of the action's target.
func checkTarget[T any](ctx context.Context, action Action[T], args T) (json.RawMessage, error) {
	state, err := action.Target(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("fermata: target of %s: %w", action.Name, err)
	}
	raw, err := roundtrip.Marshal(state)
	if err == nil { // a part that JSON omits could change unnoticed
		err = roundtrip.CheckUntyped(reflect.ValueOf(&state).Elem(), "it")
	}
	if err == nil {
		raw, err = strictjson.Canonical(raw)
	}
	if err != nil {
		return nil, &EncodeError{Value: "the target of " + action.Name, Err: err}
	}
	return raw, nil
}

// checkTargetOnce reads the target and records the result, so that the question stays the same
// while it is open.
func checkTargetOnce[T any](ctx context.Context, place *activation.Scope, action Action[T], args T) (json.RawMessage, error) {
	if recorded, ok := place.Recorded(entryTarget); ok {
		return recorded, nil
	}
	now, err := checkTarget(ctx, action, args)
	if err == nil {
		err = place.Record(ctx, entryTarget, now, activation.SaveWithNext)
	}
	return now, err
}

// effectBegun reports whether the effect of this approval has begun and may have changed something.
func (a Approved[T]) effectBegun() bool {
	scope := &activation.Scope{Activation: a.activation}
	data, exists := scope.Child(effectSegment(a.action, a.id)).Recorded(entryEffect)
	var entry effectEntry
	if !exists || json.Unmarshal(data, &entry) != nil {
		return exists
	}
	switch {
	// fn raised an interrupt or was not called: nothing was done
	case entry.State == effectNotCalled:
		return false
	// nothing was done here either, but the effect is not repeated in the attempt that saw the
	// failure
	case entry.State == effectFailed && entry.NotDone:
		return entry.NodeAttempt == scope.Attempt //mutate:target-checked-per-attempt
	}
	return true
}

// requestOnce asks for approval of the action with the given target state.
func requestOnce[T any](ctx context.Context, place *activation.Scope, action Action[T], approved Approved[T], ruling Ruling, target targetState, voided string) (Approved[T], error) {
	var zero Approved[T]
	question := ApprovalRequest{
		Action: approved.action, Summary: action.Summary, Args: approved.raw, ArgsSchema: action.ArgsSchema, Fixed: action.Fixed && !(action.EditableByPolicy && ruling.Editable), Digest: approved.digest,
		Rule: ruling.Rule, Reason: ruling.Reason, Target: target.current, PreviousTarget: target.previous, Voided: voided, Evidence: action.Evidence,
	}
	if question.ArgsSchema == nil && !question.Fixed {
		question.ArgsSchema = schema.TextFor[T]()
	}
	if approved.Edited() { // these describe the original arguments
		question.Summary, question.Evidence = "", nil
	}
	approved.id = ident.Derive("apr", place.Host.Run(), place.Path())
	decide := Approval.askWithID
	// the effect was approved; a newer program may word the question differently
	if approved.effectBegun() {
		decide = Approval.askAnswered
	}
	decision, id, err := decide(activation.WithScope(ctx, place), question)
	if err != nil {
		return zero, err
	}
	approved.by, approved.interruptID, approved.conditions = decision.By, id, decision.Conditions
	switch decision.Verb {
	case VerbApprove:
		if decision.Conditions.OnlyIf != "" && place.Host.Ledger() == nil {
			return zero, place.Refuse(id, errOnlyIf)
		}
		if decision.Args == nil {
			return approved, nil
		}
		return applyEdits(ctx, place, action.Policy, approved, decision, id)
	case VerbReturn:
		return zero, &ReturnedError{Action: approved.action, Reason: decision.Reason, By: decision.By, At: decision.At, Auth: decision.Auth}
	case VerbExpire:
		return zero, &ExpiredError{Action: approved.action, Reason: decision.Reason} //mutate:expiry-is-an-error
	}
	return zero, &RejectedError{Action: approved.action, Reason: decision.Reason, Codes: decision.Codes, By: decision.By, At: decision.At}
}

// applyEdits replaces the requested arguments with the approver's. The policy may still deny them:
// an approver cannot approve arguments that the policy denies.
func applyEdits[T any](ctx context.Context, place *activation.Scope, actionPolicy Policy, approved Approved[T], decision Decision, id string) (Approved[T], error) {
	var zero Approved[T]
	args, err := approved.decodeEdited(ctx, decision.Args)
	if err != nil {
		// The schema accepts the arguments and Go does not. The request stays open and the approver
		// gets the error.
		return zero, place.Refuse(id, fmt.Errorf("edited arguments: %w", err))
	}
	raw := decision.Args // the bytes that were approved, not a Go re-encoding
	digest, err := actionDigest(approved.action, raw)
	if err != nil {
		return zero, err
	}
	edit := place.Child(Segment{Type: "edit", ID: digest[:12]}.String())
	approved.raw, approved.args, approved.digest = raw, args, digest
	ruling, err := approved.evaluatePolicy(ctx, edit, actionPolicy)
	if err != nil {
		return zero, err
	}
	if ruling.Verdict == Deny { //mutate:policy-checks-edit
		return zero, &RejectedError{Action: approved.action, Reason: ruling.Reason, By: decidedByRule(ruling)}
	}
	return approved, nil
}

// decodeEdited decodes edited arguments. If the effect has begun, the program that began it could
// decode them.
func (a Approved[T]) decodeEdited(ctx context.Context, edited json.RawMessage) (args T, err error) {
	defer recovery.Recover(&err) // a type may have JSON methods that panic
	if err = strictjson.Decode(edited, &args); err == nil && !a.effectBegun() {
		err = activation.CheckEdit(ctx, edited)
	}
	return args, err
}

// ApprovedDigest returns the digest of the action that the decision approves, possibly with edited
// arguments. It returns "" if the decision does not approve.
func (r ApprovalRequest) ApprovedDigest(d Decision) (digest string, err error) {
	switch {
	case d.Verb != VerbApprove:
		return "", nil
	case d.Args == nil:
		return r.Digest, nil
	}
	return actionDigest(r.Action, d.Args)
}

// Decision is the final result of an approval request, made by a person or by expiry.
type Decision struct {
	Verb Verb `json:"verb"`
	// Args, with approve, replace the requested arguments.
	Args   json.RawMessage `json:"args,omitempty"`
	Reason string          `json:"reason,omitempty"`
	// Codes are machine-readable reasons for a rejection, for example "too_expensive", or for
	// edited arguments.
	Codes []string `json:"codes,omitempty"`
	// Conditions limit an approval.
	Conditions Conditions `json:"conditions,omitzero"`
	// By, At, Auth and Rule say who decided, when, how they were authenticated, and by which rule.
	// The runtime writes them: see [Attestation].
	By   string    `json:"by,omitempty" attest:"by"`
	At   time.Time `json:"at,omitzero" attest:"at"`
	Auth string    `json:"auth,omitempty" attest:"auth"`
	Rule string    `json:"rule,omitempty" attest:"rule"`
}

// Yes returns the decision of a person who approves. Set Args to approve edited arguments.
func Yes(by string) Decision { return Decision{Verb: VerbApprove, By: by} }

// No returns the decision of a person who rejects, with the reason.
func No(by, reason string) Decision { return Decision{Verb: VerbReject, By: by, Reason: reason} }

// Verb is the type of a decision.
type Verb string

// The verbs of a decision. VerbReturn sends the action back for redesign: it is neither approved
// nor rejected. VerbExpire means that the deadline passed without a decision.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbReturn  Verb = "return"
	VerbExpire  Verb = "expire"
)

// Choices lists the verbs.
func (Verb) Choices() []string {
	return []string{string(VerbApprove), string(VerbReject), string(VerbReturn), string(VerbExpire)}
}

// Limits for [Decision.Codes].
const (
	maxCodes     = 20
	maxCodeBytes = 100 // bytes
)

// ValidateFor checks edited arguments against the schema of the action, the codes, and that only an
// approval has conditions.
func (d Decision) ValidateFor(question ApprovalRequest) error {
	if err := d.Conditions.check(d.Verb); err != nil {
		return err
	}
	if edits := d.Verb == VerbApprove && d.Args != nil; len(d.Codes) > 0 && d.Verb != VerbReject && !edits {
		return fmt.Errorf("codes are allowed only with %q and with edited arguments, not with %q", VerbReject, d.Verb)
	}
	if len(d.Codes) > maxCodes || slices.ContainsFunc(d.Codes, func(c string) bool { return c == "" || len(c) > maxCodeBytes }) {
		return fmt.Errorf("at most %d codes of 1 to %d bytes each are allowed", maxCodes, maxCodeBytes)
	}
	if d.Args == nil {
		return nil
	}
	if d.Verb != VerbApprove {
		return fmt.Errorf("arguments can be edited only with %q, not with %q", VerbApprove, d.Verb)
	}
	if question.Fixed { //mutate:fixed-arguments
		return errors.New("the arguments cannot be edited: approve or reject them as they are")
	}
	return schema.CheckData("edited arguments", question.ArgsSchema, d.Args) //mutate:edit-matches-schema
}
