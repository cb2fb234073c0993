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

// Action is something that the outside world will notice, and that needs a yes first.
type Action[T any] struct {
	// Name says what is done, as "drop-table"; Args to what. Arguments of which JSON would lose a part are an [EncodeError].
	Name string
	Args T
	// Summary is one line for the person who decides. It is about Args: a question about edited arguments has none.
	Summary string
	// ArgsSchema is the JSON Schema that edited arguments must fit; by default it is derived from T.
	ArgsSchema json.RawMessage
	// Fixed forbids edited arguments: the person can only say yes or no.
	Fixed bool
	// Policy is asked beside the run's own. The stricter word counts: deny before ask before allow.
	Policy Policy
	// Target, if given, looks at what the action would act on, as the number of rows or a version. It is shown to the person, and looked at
	// again when they have approved: if it is another then, they are asked again, and see both. So is who edits the arguments, if theirs act on
	// something else.
	Target func(ctx context.Context, args T) (any, error)
}

// Approval is the kind of question that [Approve] asks.
var Approval = NewKind[ApprovalRequest, Decision]("approval")

// ApprovalRequest is what a person sees who has to approve an action.
type ApprovalRequest struct {
	Action  string `json:"action"`
	Summary string `json:"summary,omitempty"`
	// Args are the arguments that will be used if the answer is a plain approve.
	Args json.RawMessage `json:"args"`
	// ArgsSchema is what edited arguments must fit.
	ArgsSchema json.RawMessage `json:"argsSchema,omitempty"`
	// Fixed says that the arguments cannot be edited.
	Fixed bool `json:"fixed,omitempty"`
	// Digest names exactly this action with exactly these arguments.
	Digest string `json:"digest"`
	// Rule and Reason say why a person is asked.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Target is what the action would act on, as it is now. Before is what it was when the action was approved last: somebody is asked
	// again because it has changed.
	Target         json.RawMessage `json:"target,omitempty"`
	PreviousTarget json.RawMessage `json:"before,omitempty"`
}

// Approved is the runtime's word that an action may be done, with the arguments that were approved. Only [Approve] makes
// one that [Effect] accepts, it is good for one effect in the visit of the node that asked, and it cannot be stored.
type Approved[T any] struct {
	activation      *activation.Activation
	id              string
	interruptID     string // the id of the question that a person answered; "" if a policy decided
	address         string // where it was asked for
	action          string
	raw             json.RawMessage
	args            T
	digest          string
	by              string
	policyDigest    string // the digest of the one that decided, if one did
	requestedDigest string // the digest of what the program asked for
}

// Args are the arguments as they were approved, perhaps edited.
func (a Approved[T]) Args() T { return a.args }

// Digest names the action with these arguments.
func (a Approved[T]) Digest() string { return a.digest }

// Edited reports whether these are other arguments than those of the [Action].
func (a Approved[T]) Edited() bool { return a.digest != a.requestedDigest }

// By is who approved: a person, "" if the decision names none, or "policy" with the name of the rule.
func (a Approved[T]) By() string { return a.by }

// Approve asks the run's policy whether the action may be done, and a person if the policy says so: the question is of kind
// [Approval], an [ApprovalRequest], and its answer a [Decision]. Like [Kind.Ask] it returns an error to be returned while the
// person is asked. A no is a [*RejectedError], no answer in time an [*ExpiredError]. One visit can ask for the same action with the same arguments only once.
func Approve[T any](ctx context.Context, action Action[T]) (Approved[T], error) {
	var none Approved[T]
	scope := activation.FromContext(ctx)
	if scope == nil {
		return none, ErrNoRun
	}
	raw, digest, err := action.encode()
	if err != nil {
		return none, &EncodeError{Value: "the arguments of " + action.Name, Err: err}
	}
	place := scope.Child(Segment{Type: SegmentApprove, ID: action.Name, SubID: digest[:12]}.String())
	if err := place.Claim("approval"); err != nil {
		return none, err
	}
	asked := Approved[T]{activation: scope.Activation, action: action.Name, raw: raw, args: action.Args, digest: digest, requestedDigest: digest, address: place.FullAddress()}
	asked.id = ident.Derive("apr", scope.Host.Run(), place.Path())
	ruling, err := asked.evaluatePolicy(ctx, place, action.Policy)
	if err != nil {
		return none, err
	}
	switch ruling.Verdict {
	case Deny:
		return none, &RejectedError{Action: action.Name, Reason: ruling.Reason, By: decidedByRule(ruling)}
	case Allow:
		asked.by, asked.policyDigest = decidedByRule(ruling), ruling.PolicyDigest
		return asked, nil
	}
	return requestApproval(ctx, place, action, asked, ruling)
}

// encode returns the arguments as they will be approved, and the digest of the action with them.
func (a Action[T]) encode() (raw json.RawMessage, digest string, err error) {
	if err = checkEncodable(reflect.TypeFor[T]()); err != nil { // before somebody is asked about half of it
		return nil, "", err
	}
	if raw, err = roundtrip.Marshal(a.Args); err != nil {
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

// actionDigest is the same for all spellings of the same action, and for nothing else.
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

// rule returns what the policies say of the action. They are asked once per visit and place: a second word could differ. Of what was begun they are not
// asked at all: it was approved, by a policy whose word is kept or by a person, and under another approval the ledger would not know it.
func (a Approved[T]) evaluatePolicy(ctx context.Context, place *activation.Scope, own Policy) (Ruling, error) {
	var ruling Ruling
	general, _ := place.Host.Policy().(Policy)
	begun := a.effectBegun()
	if !begun && general == nil && (own == nil || own == AlwaysAsk) {
		return ruling, nil
	}
	if said, ok := place.Recorded(entryRuling); ok {
		return ruling, json.Unmarshal(said, &ruling)
	}
	if begun { //mutate:begun-effect-keeps-ruling
		return ruling, nil
	}
	address, err := ParseAddress(place.FullAddress())
	if err != nil {
		return ruling, err
	}
	// The run's own is the last, as it may count what it allows; and of two that ask it is the one that says of whom.
	ruling, err = strictest(0, []Policy{own, general}).Decide(ctx, ActionRequest{Run: place.Host.Run(), Address: address, Path: place.Path(), Action: a.action, Args: a.raw, Digest: a.digest})
	if err != nil {
		return ruling, fmt.Errorf("%w: %s: %w", ErrPolicy, a.action, err) //mutate:policy-error-denies
	}
	said, err := json.Marshal(ruling)
	if err != nil {
		return ruling, err
	}
	return ruling, place.Record(ctx, entryRuling, said, activation.SaveWithNext)
}

// requestApproval asks a person, and makes of the answer an approval or a refusal.
func requestApproval[T any](ctx context.Context, place *activation.Scope, action Action[T], asked Approved[T], ruling Ruling) (Approved[T], error) {
	if action.Target == nil {
		return requestOnce(ctx, place, action, asked, ruling, targetState{})
	}
	var seen targetState
	for round := 1; ; round++ {
		now, err := checkTargetOnce(ctx, place, action, asked.args)
		if err != nil {
			return Approved[T]{}, err
		}
		seen = targetState{current: now, previous: seen.current}
		yes, err := requestOnce(ctx, place, action, asked, ruling, seen)
		if err != nil {
			return yes, err
		}
		again := place.Child(Segment{Type: "drift", ID: strconv.Itoa(round)}.String())
		//mutate:drifted-approval-unused
		if _, drifted := again.Recorded(entryTarget); !drifted { // or this yes is void, also if the target is by now what it was
			if yes.effectBegun() {
				return yes, nil // what was begun may itself be what has changed
			}
			if now, err = checkTarget(ctx, action, yes.args); err != nil {
				return Approved[T]{}, err
			}
			if bytes.Equal(now, seen.current) {
				return yes, nil
			}
		}
		asked, place = yes, again
	}
}

// targetState is what an action would act on: as it is now, and as it was when it was approved last.
type targetState struct{ current, previous json.RawMessage }

// checkTarget looks at what an action would act on.
func checkTarget[T any](ctx context.Context, action Action[T], args T) (json.RawMessage, error) {
	found, err := action.Target(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("fermata: the target of %s: %w", action.Name, err)
	}
	raw, err := json.Marshal(roundtrip.Addressable(found))
	if err == nil {
		raw, err = strictjson.Canonical(raw)
	}
	if err != nil {
		return nil, &EncodeError{Value: "the target of " + action.Name, Err: err}
	}
	return raw, nil
}

// checkTargetOnce looks, and remembers what it saw: the question stays the same for as long as it is open.
func checkTargetOnce[T any](ctx context.Context, place *activation.Scope, action Action[T], args T) (json.RawMessage, error) {
	if seen, ok := place.Recorded(entryTarget); ok {
		return seen, nil
	}
	now, err := checkTarget(ctx, action, args)
	if err == nil {
		err = place.Record(ctx, entryTarget, now, activation.SaveWithNext)
	}
	return now, err
}

// begun reports whether the effect of this approval was begun, and may have done something.
func (a Approved[T]) effectBegun() bool {
	scope := &activation.Scope{Activation: a.activation}
	data, there := scope.Child(effectSegment(a.action, a.id)).Recorded(entryEffect)
	var entry effectEntry
	if !there || json.Unmarshal(data, &entry) != nil {
		return there
	}
	switch {
	case entry.State == effectNotCalled: // one that has asked has done nothing yet
		return false
	case entry.State == effectFailed && entry.NotDone: // nor has this; but in the attempt that saw it fail it is not done again
		return entry.NodeAttempt == scope.Attempt //mutate:target-checked-per-attempt
	}
	return true
}

// requestOnce asks about the action, with what it would act on.
func requestOnce[T any](ctx context.Context, place *activation.Scope, action Action[T], asked Approved[T], ruling Ruling, seen targetState) (Approved[T], error) {
	var none Approved[T]
	question := ApprovalRequest{
		Action: asked.action, Summary: action.Summary, Args: asked.raw, ArgsSchema: action.ArgsSchema, Fixed: action.Fixed, Digest: asked.digest,
		Rule: ruling.Rule, Reason: ruling.Reason, Target: seen.current, PreviousTarget: seen.previous,
	}
	if question.ArgsSchema == nil && !action.Fixed {
		question.ArgsSchema = schema.TextFor[T]()
	}
	if asked.Edited() { // it speaks of other arguments
		question.Summary = ""
	}
	asked.id = ident.Derive("apr", place.Host.Run(), place.Path())
	decide := Approval.askWithID
	if asked.effectBegun() { // then this was approved, however a newer program would put the question
		decide = Approval.askAnswered
	}
	decision, id, err := decide(activation.WithScope(ctx, place), question)
	if err != nil {
		return none, err
	}
	asked.by, asked.interruptID = decision.By, id
	switch decision.Verb {
	case VerbApprove:
		if decision.Args == nil {
			return asked, nil
		}
		return applyEdits(ctx, place, action.Policy, asked, decision, id)
	case VerbExpire:
		return none, &ExpiredError{Action: asked.action, Reason: decision.Reason} //mutate:expiry-is-an-error
	}
	return none, &RejectedError{Action: asked.action, Reason: decision.Reason, Codes: decision.Codes, By: decision.By}
}

// applyEdits puts the person's arguments in the place of the asked ones. The policy may still forbid them: a person can say yes
// to what was asked, not to what no rule would have let through.
func applyEdits[T any](ctx context.Context, place *activation.Scope, own Policy, asked Approved[T], decision Decision, id string) (Approved[T], error) {
	var none Approved[T]
	args, err := asked.decodeEdited(ctx, decision.Args)
	if err != nil {
		// The schema let it through and Go does not. The question stays open, and whoever edited is told.
		return none, place.Refuse(id, fmt.Errorf("edited arguments: %w", err))
	}
	raw := decision.Args // as they were written, not as Go would: that is what was approved
	digest, err := actionDigest(asked.action, raw)
	if err != nil {
		return none, err
	}
	edit := place.Child(Segment{Type: "edit", ID: digest[:12]}.String())
	asked.raw, asked.args, asked.digest = raw, args, digest
	ruling, err := asked.evaluatePolicy(ctx, edit, own)
	if err != nil {
		return none, err
	}
	if ruling.Verdict == Deny { //mutate:policy-checks-edit
		return none, &RejectedError{Action: asked.action, Reason: ruling.Reason, By: decidedByRule(ruling)}
	}
	return asked, nil
}

// read makes Go's arguments of edited ones. Those that were begun with could be read, by the program that began.
func (a Approved[T]) decodeEdited(ctx context.Context, edited json.RawMessage) (args T, err error) {
	defer recovery.Recover(&err) // a type may have JSON methods that panic
	if err = strictjson.Decode(edited, &args); err == nil && !a.effectBegun() {
		err = activation.CheckEdit(ctx, edited)
	}
	return args, err
}

// Approves returns the digest of the action as the decision approves it, perhaps with edited arguments; "" if it approves none.
func (r ApprovalRequest) ApprovedDigest(d Decision) (digest string, err error) {
	switch {
	case d.Verb != VerbApprove:
		return "", nil
	case d.Args == nil:
		return r.Digest, nil
	}
	return actionDigest(r.Action, d.Args)
}

// Decision is a person's word on an action, or the clock's.
type Decision struct {
	Verb Verb `json:"verb"`
	// Args, with approve, are the arguments to use in the place of the asked ones.
	Args   json.RawMessage `json:"args,omitempty"`
	Reason string          `json:"reason,omitempty"`
	// Codes, with reject, say why in words for programs, as "too_expensive".
	Codes []string  `json:"codes,omitempty"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// Verb is what a decision says.
type Verb string

// The verbs of a decision. Expire is the clock's word: nobody decided in time.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbExpire  Verb = "expire"
)

// Choices lists the verbs.
func (Verb) Choices() []string {
	return []string{string(VerbApprove), string(VerbReject), string(VerbExpire)}
}

// The most that [Decision.Codes] may hold.
const (
	maxCodes     = 20
	maxCodeBytes = 100 // bytes
)

// ValidateFor checks edited arguments against what the action takes, and the codes of a rejection.
func (d Decision) ValidateFor(question ApprovalRequest) error {
	if len(d.Codes) > 0 && d.Verb != VerbReject {
		return fmt.Errorf("codes go only with %q, not with %q", VerbReject, d.Verb)
	}
	if len(d.Codes) > maxCodes || slices.ContainsFunc(d.Codes, func(c string) bool { return c == "" || len(c) > maxCodeBytes }) {
		return fmt.Errorf("there are at most %d codes, of 1 to %d bytes each", maxCodes, maxCodeBytes)
	}
	if d.Args == nil {
		return nil
	}
	if d.Verb != VerbApprove {
		return fmt.Errorf("arguments can be edited only with %q, not with %q", VerbApprove, d.Verb)
	}
	if question.Fixed { //mutate:fixed-arguments
		return errors.New("the arguments cannot be edited, only approved or rejected as they are")
	}
	return schema.CheckData("edited arguments", question.ArgsSchema, d.Args) //mutate:edit-matches-schema
}
