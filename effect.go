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

// Effect does an approved action, once. It writes down the intent, calls fn with the approved arguments and an idempotency
// key, and writes down the receipt; when the node is entered again it returns the receipt without calling fn.
//
// A process that dies between intent and receipt leaves the effect in doubt, and so does an error of fn that a later
// attempt finds, unless fn marked it with [NotDone]. If the effect is declared [Idempotent], it is repeated with the same
// key. If the target can be asked, by [Lookup], it is. If neither helps, Effect asks a person: the question is of kind [EffectInDoubt], a
// [InDoubtRequest], and its answer a [EffectResolution]. Effect goes by the answer; without a receipt in it, it returns the zero R. It never repeats anything blindly.
//
// A newer program that declares more than the one that made the call says nothing of that call: a person is asked about it. Numbers in
// untyped places of T reach fn as json.Number, as exactly as they were approved; of R, Effect returns what JSON makes of them, as [Do] does.
//
// fn may ask, but only before it does anything outside: it is called again after the answer. With a context that is over, fn is not
// called, and the next attempt does the effect.
func Effect[T, R any](ctx context.Context, approved Approved[T], fn func(ctx context.Context, args T, key string) (R, error), options ...EffectOption) (R, error) {
	var none R
	scope := activation.FromContext(ctx)
	if scope == nil {
		return none, ErrNoRun
	}
	if approved.activation == nil || approved.activation != scope.Activation { //mutate:approval-of-this-activation
		return none, fmt.Errorf("%w: it was not given for this visit of %s", ErrNotApproved, scope.FullAddress())
	}
	if err := checkEncodable(reflect.TypeFor[R]()); err != nil { // before it is done, or its receipt would be lost
		return none, &EncodeError{Value: "the receipt of " + approved.action, Err: err}
	}
	// One place per approval, wherever in the visit the effect is called from: the second use of an approval finds the first.
	e := effect[T, R]{approved: approved, fn: fn}
	place := (&activation.Scope{Activation: scope.Activation}).Child(e.segment())
	if err := place.Claim("effect"); err != nil { //mutate:approval-used-once
		if _, twice := errors.AsType[*DuplicateError](err); twice {
			return none, fmt.Errorf("%w: the approval of %s has been used", ErrNotApproved, approved.action)
		}
		return none, err
	}
	for _, option := range options {
		option(&e.config)
	}
	e.place = place
	return e.run(ctx)
}

// EffectOption says what an effect's target can do.
type EffectOption func(*effectConfig)

type effectConfig struct {
	idempotent, fenced bool
	lookup             func(ctx context.Context, key string) (receipt json.RawMessage, found bool, err error)
}

// Idempotent declares that the target ignores a second call with the same key, so that an effect in doubt may be repeated.
func Idempotent() EffectOption { return func(c *effectConfig) { c.idempotent = true } }

// NotDone marks an error of an effect's function as certain: nothing happened outside, and the effect may be tried again.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

type notDoneError struct{ err error }

func (e *notDoneError) Error() string { return e.err.Error() }
func (e *notDoneError) Unwrap() error { return e.err }

// EffectError is what the function of an effect returned, as a later entry of the node gets to see it.
type EffectError struct{ Action, Message string }

func (e *EffectError) Error() string {
	return fmt.Sprintf("fermata: effect %s: %s", e.Action, e.Message)
}

// EffectInDoubt is the kind of question about an effect of which nobody knows whether it happened.
var EffectInDoubt = NewKind[InDoubtRequest, EffectResolution]("effect-in-doubt")

// InDoubtRequest is what is known of an effect in doubt.
type InDoubtRequest struct {
	Action string          `json:"action"`
	Args   json.RawMessage `json:"args"`
	Digest string          `json:"digest"`
	// Key is the idempotency key that the target was called with: look for it there.
	Key     string    `json:"key"`
	Started time.Time `json:"started"`
	// Error is what the call returned; empty if the process died in it.
	Error string `json:"error,omitempty"`
	// Try counts the calls: a word on the first is none on the second.
	Attempt int `json:"try"`
	// ReceiptSchema is what a receipt must fit.
	ReceiptSchema json.RawMessage `json:"receiptSchema,omitempty"`
}

// EffectResolution is a person's word on an effect in doubt.
type EffectResolution struct {
	// Happened true: it is done, and Receipt (if any) is what the target said. False: it is not, and will be done now.
	Happened bool            `json:"happened"`
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	By       string          `json:"by,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

// ValidateFor checks the receipt against what the effect returns.
func (w EffectResolution) ValidateFor(question InDoubtRequest) error {
	if w.Receipt == nil {
		return nil
	}
	if !w.Happened {
		return errors.New("a receipt of something that did not happen")
	}
	return schema.CheckData("receipt", question.ReceiptSchema, w.Receipt)
}

// effectState is where an effect stands.
//
//	started ──fn returned──▶ done
//	   ├────fn failed──▶ failed ──again, with the same key──▶ started
//	   └────fn asked, or was not called──▶ asked ──entered again──▶ started
type effectState string

const (
	effectStarted   effectState = "started"
	effectDone      effectState = "done"
	effectFailed    effectState = "failed"
	effectNotCalled effectState = "asked" // nothing was done: fn asked first, or was not called
)

// effectEntry is the ledger's line on one effect.
type effectEntry struct {
	State       effectState     `json:"state"`
	Digest      string          `json:"digest"`
	Key         string          `json:"key"`
	Started     time.Time       `json:"started"`
	NodeAttempt int             `json:"attempt"`
	Attempt     int             `json:"try"`
	Error       string          `json:"error,omitempty"`
	NotDone     bool            `json:"notDone,omitempty"`
	Receipt     json.RawMessage `json:"receipt,omitempty"`
	// Idempotent and Fenced are what was declared of the target when it was called. A program that declares it later says nothing of this call.
	Idempotent bool `json:"idempotent,omitempty"`
	Fenced     bool `json:"fenced,omitempty"`
	// Untold says that the ledger could not be told how it ended. Whoever comes back to it tells it.
	LedgerPending bool `json:"untold,omitempty"`
}

type effect[T, R any] struct {
	approved Approved[T]
	place    *activation.Scope
	fn       func(context.Context, T, string) (R, error)
	config   effectConfig
}

func (e *effect[T, R]) segment() string { return effectSegment(e.approved.action, e.approved.id) }

// effectSegment is the place of the effect of an approval.
func effectSegment(action, approval string) string {
	return Segment{Type: SegmentEffect, ID: action, SubID: approval}.String()
}

func (e *effect[T, R]) run(ctx context.Context) (R, error) {
	var none R
	entry, err := e.loadEntry()
	if err != nil {
		return none, err
	}
	if entry != nil { // what was asked about it may be settled, and then is not asked again
		activation.FromContext(ctx).Child(e.segment()).Skip()
	}
	switch {
	case entry == nil:
		return e.begin(ctx, 1)
	case entry.Digest != e.approved.digest:
		return none, fmt.Errorf("%w: %s was begun with other arguments", ErrNotApproved, e.approved.action)
	}
	if err := e.syncLedger(ctx, entry); err != nil {
		return none, err
	}
	switch {
	case entry.State == effectDone:
		return e.storedReceipt(entry.Receipt) //mutate:receipt-reused
	case entry.State == effectFailed && entry.NodeAttempt == e.place.Attempt:
		// The node has seen this error in this attempt and gone on; going on again must look the same to it.
		return none, &EffectError{Action: e.approved.action, Message: entry.Error}
	//mutate:ledger-asked-first
	case entry.State == effectStarted && e.ledger() != nil: // which may know more than the journal
		return e.continueFromLedger(ctx, entry)
	case entry.State == effectNotCalled || entry.NotDone || e.repeatable(entry): //mutate:doubt-not-repeated
		return e.begin(ctx, entry.Attempt+1)
	}
	return e.resolveInDoubt(ctx, entry)
}

// ledger is where effects are begun; nil if the run has none.
func (e *effect[T, R]) ledger() Ledger {
	l, _ := e.place.Host.Ledger().(Ledger)
	return l
}

func (e *effect[T, R]) intent(entry *effectEntry) Intent {
	a := &e.approved
	intent := Intent{InterruptID: a.interruptID, Attempt: entry.Attempt, Digest: entry.Digest, Key: entry.Key, Idempotent: entry.Idempotent}
	if a.interruptID == "" {
		intent.InterruptID = a.id
		intent.Allowed = &AllowedAction{Address: a.address, By: a.by, PolicyDigest: a.policyDigest, Request: ApprovalRequest{Action: a.action, Args: a.raw, Digest: a.digest}}
	}
	return intent
}

// checkTarget finds out in the ledger what became of an effect that the journal leaves open: it was not begun, it has ended, or it is
// in doubt.
func (e *effect[T, R]) continueFromLedger(ctx context.Context, entry *effectEntry) (R, error) {
	var none R
	line, begun, err := e.ledger().Begin(ctx, e.intent(entry))
	switch {
	case err != nil:
		return none, err
	//mutate:effect-of-lost-owner
	case begun: // whoever wrote the journal's line died before it came to this
		return e.dispatch(ctx, entry)
	case line.State == EffectSucceeded:
		return e.recordReceipt(ctx, entry, line.Receipt)
	case e.repeatable(entry):
		return e.begin(ctx, entry.Attempt+1)
	}
	return e.resolveInDoubt(ctx, entry)
}

// repeatable reports whether the target ignores a second call: it knows the key of the first one, if that was made with one, and looks at
// that of the second.
func (e *effect[T, R]) repeatable(entry *effectEntry) bool {
	return e.config.idempotent && entry.Idempotent //mutate:idempotent-since-begin
}

// settle writes down a receipt that came from elsewhere.
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
		return nil, fmt.Errorf("fermata: the ledger's line on %s cannot be read: %w", e.approved.action, err)
	}
	return entry, nil
}

// perform begins the effect: in the journal, and then in the ledger if there is one.
func (e *effect[T, R]) begin(ctx context.Context, try int) (R, error) {
	var none R
	entry := &effectEntry{
		State: effectStarted, Digest: e.approved.digest, NodeAttempt: e.place.Attempt, Attempt: try,
		Key:     ident.Derive("eff", e.place.Host.Run(), e.place.Path(), e.approved.digest),
		Started: e.place.Host.Time().UTC(), Idempotent: e.config.idempotent, Fenced: e.config.fenced,
	}
	if err := e.saveEntry(ctx, *entry); err != nil { //mutate:intent-saved-first
		return none, err
	}
	if ledger := e.ledger(); ledger != nil {
		line, begun, err := ledger.Begin(ctx, e.intent(entry))
		switch {
		case err != nil:
			return none, err
		case !begun && line.State == EffectSucceeded:
			return e.recordReceipt(ctx, entry, line.Receipt)
		case !begun && !e.config.idempotent:
			return e.resolveInDoubt(ctx, entry)
		}
	}
	return e.dispatch(ctx, entry)
}

// dispatch is the only place that calls fn. The arguments are made anew from the approved bytes, so that nobody can have
// changed them since.
func (e *effect[T, R]) dispatch(ctx context.Context, entry *effectEntry) (R, error) {
	var none R
	var args T
	if err := decodeStored(e.approved.raw, &args); err != nil {
		return none, fmt.Errorf("fermata: the approved arguments of %s cannot be read: %w", e.approved.action, err)
	}
	if err := ctx.Err(); err != nil { // whatever fn would make of it: nothing has happened, and nobody need be asked
		entry.State, entry.Error = effectNotCalled, err.Error()
		return none, errors.Join(err, e.recordEnd(ctx, entry, EffectFailed))
	}
	//mutate:effect-gets-approved-copy
	result, err := e.fn(e.config.withFence(ctx, entry.Attempt), args, entry.Key)
	if err != nil {
		if signals, plain := e.place.Collect(err); signals != nil && plain == nil {
			entry.State, entry.Error = effectNotCalled, "it asked first"
			if err := e.recordEnd(ctx, entry, EffectFailed); err != nil {
				return none, err
			}
			return none, activation.JoinSignals(signals)
		}
		_, entry.NotDone = errors.AsType[*notDoneError](err)
		entry.State, entry.Error = effectFailed, err.Error()
		return none, errors.Join(err, e.recordEnd(ctx, entry, EffectFailed))
	}
	if entry.Receipt, err = json.Marshal(&result); err != nil {
		return none, &EncodeError{Value: "the receipt of " + e.approved.action, Err: err}
	}
	entry.State = effectDone
	result, err = roundTrip(result, entry.Receipt)
	return result, errors.Join(e.recordEnd(ctx, entry, EffectSucceeded), err)
}

// end writes down how the effect ended: in the ledger first, which takes it also from somebody who has lost the run.
func (e *effect[T, R]) recordEnd(ctx context.Context, entry *effectEntry, state LedgerState) error {
	var err error
	if ledger := e.ledger(); ledger != nil {
		err = ledger.End(ctx, e.intent(entry), LedgerEntry{State: state, Receipt: entry.Receipt, Error: entry.Error})
	}
	entry.LedgerPending = err != nil //mutate:unreported-end-kept
	return errors.Join(err, e.saveEntry(ctx, *entry))
}

// tell makes up for an end that the ledger could not be told.
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

func (e *effect[T, R]) resolveInDoubt(ctx context.Context, entry *effectEntry) (R, error) {
	var none R
	asking := activation.FromContext(ctx).Child(e.segment()) // below the work that the effect is part of, and so parked with it
	question := InDoubtRequest{
		Action: e.approved.action, Args: e.approved.raw, Digest: entry.Digest, Key: entry.Key, Started: entry.Started, Error: entry.Error,
		Attempt: entry.Attempt, ReceiptSchema: schema.TextFor[R](),
	}
	//mutate:person-overrides-target-check
	if e.config.lookup != nil && !EffectInDoubt.hasAnswer(asking, question) { // a person's word stands
		if result, cleared, err := e.resolveByLookup(ctx, entry); cleared {
			return result, err
		}
	}
	said, id, err := EffectInDoubt.askWithID(activation.WithScope(ctx, asking), question)
	if err != nil {
		return none, err
	}
	if !said.Happened {
		return e.begin(ctx, entry.Attempt+1) //mutate:doubt-decision-per-attempt
	}
	if _, err := e.decodeReceipt(said.Receipt); err != nil {
		return none, asking.Refuse(id, err)
	}
	return e.recordReceipt(ctx, entry, said.Receipt)
}

// kept reads a receipt that was written down, perhaps by another version of the program.
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
