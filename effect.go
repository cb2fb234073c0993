package fermata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
)

// Effect performs an approved action once. It records the intent, calls fn with the approved
// arguments and an idempotency key, and records the receipt. When the node is entered again, it
// returns the receipt without calling fn.
//
// An effect is in doubt if the process dies between intent and receipt, or if fn fails: an error or
// a panic does not say that nothing happened, unless fn marks it with [NotDone]. Effect resolves it
// in this order. An [Idempotent] effect is repeated with the same key, up to five times or as
// [Retry] says. With [Lookup] the target is queried. Otherwise Effect asks a person: the interrupt
// is of kind [EffectInDoubt] with an [InDoubtRequest], and its answer is an [EffectResolution]. If
// the resolution has no receipt, Effect returns the zero R. Effect never repeats a call blindly.
//
// The node gets an error of fn only if it is marked with NotDone. Any other error that Effect
// returns must be returned by the node: the run waits or is executed again.
//
// Options of a newer program do not apply to a call that an older program made: a person is asked
// about it. Numbers in untyped parts of T reach fn as json.Number, exactly as approved. Untyped
// parts of R are returned in their JSON form, as with [Do].
//
// fn may raise interrupts, but only before it changes anything outside: it is called again after
// the answer. If the context is done, fn is not called and the next attempt performs the effect.
func Effect[T, R any](ctx context.Context, approved Approved[T], fn func(ctx context.Context, args T, key string) (R, error), options ...EffectOption) (R, error) {
	var zero R
	scope := activation.FromContext(ctx)
	if scope == nil {
		return zero, ErrNoRun
	}
	if approved.activation == nil || approved.activation != scope.Activation { //mutate:approval-of-this-activation
		return zero, fmt.Errorf("%w: it was not issued for this activation of %s", ErrNotApproved, scope.FullAddress())
	}
	// check before the call, or the receipt would be lost
	if err := checkEncodable(reflect.TypeFor[R]()); err != nil {
		return zero, &EncodeError{Value: "the receipt of " + approved.action, Err: err}
	}
	// One place per approval, wherever in the activation the effect is called: a second use of an
	// approval finds the first.
	e := effect[T, R]{approved: approved, fn: fn}
	place := (&activation.Scope{Activation: scope.Activation}).Child(e.segment())
	if err := place.Claim("effect"); err != nil { //mutate:approval-used-once
		if _, duplicate := errors.AsType[*DuplicateError](err); duplicate {
			return zero, fmt.Errorf("%w: the approval of %s was already used", ErrNotApproved, approved.action)
		}
		return zero, err
	}
	for _, option := range options {
		option(&e.config)
	}
	e.place = place
	return e.run(ctx)
}

// EffectOption describes a capability of the effect's target.
type EffectOption func(*effectConfig)

type effectConfig struct {
	idempotent, fenced bool
	lookup             func(ctx context.Context, key string) (receipt json.RawMessage, found bool, err error)
}

// Idempotent declares that the target ignores a second call with the same key. An effect in doubt
// is then repeated.
func Idempotent() EffectOption { return func(c *effectConfig) { c.idempotent = true } }

// NotDone marks an error of an effect function as certain: nothing happened outside, for example
// because the target rejected the call. [Effect] returns the error to the node, which may handle
// it. If the node fails, the effect is performed when the node runs again; see [Retry].
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

type notDoneError struct{ err error }

func (e *notDoneError) Error() string { return e.err.Error() }
func (e *notDoneError) Unwrap() error { return e.err }

// EffectError is the error of an effect function, as later entries of the node see it.
type EffectError struct{ Action, Message string }

func (e *EffectError) Error() string {
	return fmt.Sprintf("fermata: effect %s: %s", e.Action, e.Message)
}

// EffectInDoubt is the kind of the requests about effects whose outcome is unknown.
var EffectInDoubt = NewKind[InDoubtRequest, EffectResolution]("effect-in-doubt")

// InDoubtRequest describes an effect in doubt.
type InDoubtRequest struct {
	Action string          `json:"action"`
	Args   json.RawMessage `json:"args"`
	Digest string          `json:"digest"`
	// Key is the idempotency key of the call. Search for it at the target.
	Key     string    `json:"key"`
	Started time.Time `json:"started"`
	// Error is the error of the call; empty if the process died during the call.
	Error string `json:"error,omitempty"`
	// Attempt is the attempt number. A resolution applies to one attempt only.
	Attempt int `json:"try"`
	// ReceiptSchema is the JSON Schema for the receipt.
	ReceiptSchema json.RawMessage `json:"receiptSchema,omitempty"`
}

// String returns the request as one line of text.
func (r InDoubtRequest) String() string {
	text := "did " + r.Action + " " + string(r.Args) + " happen? It began at " + r.Started.Format(time.RFC3339) + " with the key " + r.Key
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}

// EffectResolution is a person's answer about an effect in doubt.
type EffectResolution struct {
	// Happened true: the effect is done, and Receipt (if any) is the target's receipt. False: it is
	// not done and will be performed now.
	Happened bool            `json:"happened"`
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	// By is written by the runtime: see [Attestation].
	By     string `json:"by,omitempty" attest:"by"`
	Reason string `json:"reason,omitempty"`
}

// ValidateFor checks the receipt against the receipt schema.
func (w EffectResolution) ValidateFor(question InDoubtRequest) error {
	if w.Receipt == nil {
		return nil
	}
	if !w.Happened {
		return errors.New("a receipt is allowed only if the effect happened")
	}
	return schema.CheckData("receipt", question.ReceiptSchema, w.Receipt)
}

// effectState is the state of an effect in the journal.
//
//	started ──fn returned──▶ done
//	   ├────fn failed──▶ failed ──repeated, with the same key──▶ started
//	   └────fn raised an interrupt, or was not called──▶ asked ──entered again──▶ started
type effectState string

const (
	effectStarted effectState = "started"
	effectDone    effectState = "done"
	effectFailed  effectState = "failed"
	// nothing was done: fn raised an interrupt first, or was not called
	effectNotCalled effectState = "asked"
)

// effectEntry is the journal entry of one effect.
type effectEntry struct {
	State       effectState     `json:"state"`
	Digest      string          `json:"digest"`
	Key         string          `json:"key"`
	Started     time.Time       `json:"started"`
	NodeAttempt int             `json:"attempt"`
	Attempt     int             `json:"try"`
	Error       string          `json:"error,omitempty"`
	NotDone     bool            `json:"notDone,omitempty"`
	Retry       *effectRetry    `json:"retry,omitempty"` // what the error asked for, if it is NotDone
	Receipt     json.RawMessage `json:"receipt,omitempty"`
	// Idempotent and Fenced are the options at the time of the call. Options that a later program
	// adds do not apply to this call.
	Idempotent bool `json:"idempotent,omitempty"`
	Fenced     bool `json:"fenced,omitempty"`
	// LedgerPending reports that writing the end to the ledger failed. The next execution that
	// reads the entry writes it.
	LedgerPending bool `json:"untold,omitempty"`
	// Repeats reports that an earlier attempt may have performed the effect. The conditions of the
	// approval held when that began.
	Repeats bool `json:"repeats,omitempty"`
}

type effect[T, R any] struct {
	approved Approved[T]
	place    *activation.Scope
	fn       func(context.Context, T, string) (R, error)
	config   effectConfig
}

func (e *effect[T, R]) segment() string { return effectSegment(e.approved.action, e.approved.id) }

// effectSegment returns the address segment of the effect of an approval.
func effectSegment(action, approval string) string {
	return Segment{Type: SegmentEffect, ID: action, SubID: approval}.String()
}

func (e *effect[T, R]) run(ctx context.Context) (R, error) {
	var zero R
	entry, err := e.loadEntry()
	if err != nil {
		return zero, err
	}
	if entry != nil { // interrupts about the effect may be settled; do not raise them again
		activation.FromContext(ctx).Child(e.segment()).Skip()
	}
	switch {
	case entry == nil:
		return e.begin(ctx, 1, false)
	case entry.Digest != e.approved.digest:
		return zero, fmt.Errorf("%w: %s was begun with different arguments", ErrNotApproved, e.approved.action)
	}
	if err := e.syncLedger(ctx, entry); err != nil {
		return zero, err
	}
	switch {
	case entry.State == effectDone:
		return e.storedReceipt(entry.Receipt) //mutate:receipt-reused
	case entry.State == effectFailed && entry.NotDone && entry.NodeAttempt == e.place.Attempt:
		// The node handled this error in this attempt; re-entry must return the same error.
		return zero, entry.storedError(e.approved.action)
	//mutate:ledger-asked-first
	// the ledger may know more than the journal
	case entry.State == effectStarted && e.ledger() != nil:
		return e.continueFromLedger(ctx, entry)
	case entry.State == effectNotCalled || entry.NotDone || e.repeatable(entry): //mutate:doubt-not-repeated
		return e.begin(ctx, entry.Attempt+1, entry.Repeats || entry.State != effectNotCalled && !entry.NotDone)
	}
	return e.resolveInDoubt(ctx, entry, nil)
}

// ledger returns the effect ledger; nil if the run has none.
func (e *effect[T, R]) ledger() Ledger {
	l, _ := e.place.Host.Ledger().(Ledger)
	return l
}

func (e *effect[T, R]) intent(entry *effectEntry) Intent {
	a := &e.approved
	intent := Intent{InterruptID: a.interruptID, Attempt: entry.Attempt, Action: a.action, Digest: entry.Digest, Key: entry.Key, Idempotent: entry.Idempotent}
	if a.interruptID == "" {
		intent.InterruptID = a.id
		intent.Allowed = &AllowedAction{Address: a.address, By: a.by, PolicyDigest: a.policyDigest, Request: ApprovalRequest{Action: a.action, Args: a.raw, Digest: a.digest}}
	}
	if !a.conditions.IsZero() && !entry.Repeats {
		intent.Conditional = &ConditionalAction{Conditions: a.conditions, Address: a.address, Args: a.raw}
	}
	return intent
}

// continueFromLedger asks the ledger about an effect that the journal leaves open: it was not
// begun, it has ended, or it is in doubt.
func (e *effect[T, R]) continueFromLedger(ctx context.Context, entry *effectEntry) (R, error) {
	var zero R
	line, begun, err := e.beginInLedger(ctx, entry)
	switch {
	case err != nil:
		return zero, err
	//mutate:effect-of-lost-owner
	case begun: // the process that wrote the journal entry died before the ledger entry
		return e.dispatch(ctx, entry)
	case line.State == EffectSucceeded:
		return e.recordReceipt(ctx, entry, line.Receipt)
	case e.repeatable(entry):
		return e.begin(ctx, entry.Attempt+1, true)
	}
	return e.resolveInDoubt(ctx, entry, nil)
}

// repeatable reports whether the target ignores a second call: the first call had a key, and the
// target checks the key of the second.
func (e *effect[T, R]) repeatable(entry *effectEntry) bool {
	return e.config.idempotent && entry.Idempotent //mutate:idempotent-since-begin
}

// recordReceipt records a receipt that comes from the ledger.
func (e *effect[T, R]) recordReceipt(ctx context.Context, entry *effectEntry, receipt json.RawMessage) (R, error) {
	result, err := e.storedReceipt(receipt)
	if err != nil {
		return result, err
	}
	entry.State, entry.Receipt = effectDone, receipt
	return result, e.saveEntry(ctx, *entry)
}

func (e *effect[T, R]) loadEntry() (*effectEntry, error) {
	data, ok := e.place.Recorded(entryEffect)
	if !ok {
		return nil, nil
	}
	entry := new(effectEntry)
	if err := json.Unmarshal(data, entry); err != nil {
		return nil, fmt.Errorf("fermata: journal entry of effect %s cannot be decoded: %w", e.approved.action, err)
	}
	return entry, nil
}

// beginInLedger records the start of the effect in the ledger. If the approval is void, it returns
// the error to wait with.
func (e *effect[T, R]) beginInLedger(ctx context.Context, entry *effectEntry) (LedgerEntry, bool, error) {
	line, begun, err := LedgerEntry{}, true, e.checkUntil(entry)
	if ledger := e.ledger(); ledger != nil {
		line, begun, err = ledger.Begin(ctx, e.intent(entry))
	}
	if void, ok := errors.AsType[*VoidApprovalError](err); ok {
		err = e.askAgain(ctx, entry, void)
	}
	return line, begun, err
}

// begin records the start of the effect in the journal, and then in the ledger if there is one.
// repeats reports that an earlier attempt may have performed it.
func (e *effect[T, R]) begin(ctx context.Context, try int, repeats bool) (R, error) {
	var zero R
	entry := &effectEntry{
		State: effectStarted, Digest: e.approved.digest, NodeAttempt: e.place.Attempt, Attempt: try,
		Key:     ident.Derive("eff", e.place.Host.Run(), e.place.Path(), e.approved.digest),
		Started: e.place.Host.Time().UTC(), Idempotent: e.config.idempotent, Fenced: e.config.fenced, Repeats: repeats,
	}
	if err := e.saveEntry(ctx, *entry); err != nil { //mutate:intent-saved-first
		return zero, err
	}
	line, begun, err := e.beginInLedger(ctx, entry)
	switch {
	case err != nil:
		return zero, err
	case !begun && line.State == EffectSucceeded:
		return e.recordReceipt(ctx, entry, line.Receipt)
	case !begun && !e.config.idempotent:
		return e.resolveInDoubt(ctx, entry, nil)
	}
	return e.dispatch(ctx, entry)
}

// dispatch is the only place that calls fn. It decodes the arguments from the approved bytes, so
// that no code can have changed them since.
func (e *effect[T, R]) dispatch(ctx context.Context, entry *effectEntry) (R, error) {
	var zero R
	var args T
	if err := decodeStored(e.approved.raw, &args); err != nil {
		return zero, fmt.Errorf("fermata: approved arguments of %s cannot be decoded: %w", e.approved.action, err)
	}
	// nothing has happened, so no resolution is needed, whatever fn would return
	if err := ctx.Err(); err != nil {
		entry.State, entry.Error = effectNotCalled, err.Error()
		return zero, errors.Join(err, e.recordEnd(ctx, entry, EffectFailed))
	}
	result, err := e.call(ctx, args, entry)
	if err != nil {
		if signals, plain := e.place.Collect(err); signals != nil && plain == nil {
			entry.State, entry.Error = effectNotCalled, "raised an interrupt first"
			if err := e.recordEnd(ctx, entry, EffectFailed); err != nil {
				return zero, err
			}
			return zero, activation.JoinSignals(signals)
		}
		return e.onError(ctx, entry, err)
	}
	if entry.Receipt, err = json.Marshal(&result); err != nil {
		return zero, &EncodeError{Value: "the receipt of " + e.approved.action, Err: err}
	}
	entry.State = effectDone
	result, err = roundTrip(result, entry.Receipt)
	return result, errors.Join(e.recordEnd(ctx, entry, EffectSucceeded), err)
}

// recordEnd records the end of the effect. The ledger comes first, because it accepts the end also
// from a process that has lost the run.
func (e *effect[T, R]) recordEnd(ctx context.Context, entry *effectEntry, state LedgerState) error {
	var err error
	if ledger := e.ledger(); ledger != nil {
		err = ledger.End(ctx, e.intent(entry), LedgerEntry{State: state, Receipt: entry.Receipt, Error: entry.Error})
	}
	entry.LedgerPending = err != nil //mutate:unreported-end-kept
	return errors.Join(err, e.saveEntry(ctx, *entry))
}

// syncLedger writes an end that an earlier execution could not write to the ledger.
func (e *effect[T, R]) syncLedger(ctx context.Context, entry *effectEntry) error {
	switch {
	case !entry.LedgerPending:
		return nil
	case entry.State == effectDone:
		return e.recordEnd(ctx, entry, EffectSucceeded)
	}
	return e.recordEnd(ctx, entry, EffectFailed)
}

func (e *effect[T, R]) saveEntry(ctx context.Context, entry effectEntry) error {
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return e.place.Record(ctx, entryEffect, data, activation.SaveNow)
}

// resolveInDoubt asks the target, and then a person. failure is the error of the call that was just
// made, if there was one.
func (e *effect[T, R]) resolveInDoubt(ctx context.Context, entry *effectEntry, failure error) (R, error) {
	var zero R
	// below the work that contains the effect, so that both wait together
	asking := activation.FromContext(ctx).Child(e.segment())
	question := InDoubtRequest{
		Action: e.approved.action, Args: e.approved.raw, Digest: entry.Digest, Key: entry.Key, Started: entry.Started, Error: entry.Error,
		Attempt: entry.Attempt, ReceiptSchema: schema.TextFor[R](),
	}
	//mutate:person-overrides-target-check
	// a person's resolution takes precedence
	if e.config.lookup != nil && !EffectInDoubt.hasAnswer(asking, question) {
		if result, cleared, err := e.resolveByLookup(ctx, entry, failure); cleared {
			return result, err
		}
	}
	resolution, id, err := EffectInDoubt.askWithID(activation.WithScope(ctx, asking), question)
	if err != nil {
		return zero, err
	}
	if !resolution.Happened {
		return e.begin(ctx, entry.Attempt+1, false) //mutate:doubt-decision-per-attempt
	}
	result, err := e.decodeReceipt(resolution.Receipt)
	if err != nil {
		return zero, asking.Refuse(id, err)
	}
	entry.State, entry.Receipt = effectDone, resolution.Receipt
	return result, e.recordEnd(ctx, entry, EffectSucceeded) //mutate:resolution-ends-effect
}

// storedReceipt decodes a recorded receipt, which another version of the program may have written.
func (e *effect[T, R]) storedReceipt(data json.RawMessage) (R, error) {
	result, err := e.decodeReceipt(data)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrProgramChanged, err)
	}
	return result, err
}

func (e *effect[T, R]) decodeReceipt(data json.RawMessage) (R, error) {
	var result R
	if data == nil {
		return result, nil
	}
	if err := roundtrip.Decode(data, &result); err != nil {
		return result, fmt.Errorf("fermata: the receipt of %s is not a %T: %w", e.approved.action, result, err)
	}
	return result, nil
}
