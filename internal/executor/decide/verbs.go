package decide

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/attest"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/strictjson"
)

var (
	errExpireVerb = errors.New("only the clock can expire a request")
	errGateEdit   = errors.New("a gate has no arguments to edit")
)

// verbAnswer is the answer to a gate or a hold in the words of an approval. Args is the edited
// state of a held run.
type verbAnswer struct {
	Verb   fermata.Verb    `json:"verb"`
	Reason string          `json:"reason,omitempty"`
	Codes  []string        `json:"codes,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
}

// readVerb converts the answer to a gate or a hold that has a member "verb": to the signal of the
// gate, or to the state of the held run. The rejection of a hold has no answer: the value of
// submitted is nil then. An object with a verb is never taken for a state: what is not a decision
// in every detail is refused.
func (dc *Decider) readVerb(l *runSnapshot, submitted *Answer, w *submission) error {
	kind := w.interrupt.Kind
	if kind != docs.GateKind && kind != docs.HoldKind || attest.Members(submitted.Value)["verb"] == nil {
		return nil
	}
	invalid := func(err error) error { return &fermata.AnswerError{ID: w.Interrupt, Kind: kind, Err: err} }
	var said verbAnswer
	if err := strictjson.Decode(submitted.Value, &said); err != nil {
		return invalid(fmt.Errorf("the decision is not valid: %w", err))
	}
	switch said.Verb {
	case fermata.VerbApprove, fermata.VerbReject:
	case fermata.VerbReturn:
		stored, err := l.requestDoc(dc, w.Interrupt)
		if err == nil && (stored.Requirement.OnEscalate != requirement.EscalateReturns || said.Args != nil || said.Codes != nil) {
			err = invalid(errNoReturn)
		}
		return err
	case fermata.VerbExpire:
		return invalid(errExpireVerb)
	default:
		return invalid(fmt.Errorf("the verb is %q, and not approve, reject or return", said.Verb))
	}
	w.said = said
	switch {
	case said.Args != nil && (kind == docs.GateKind || said.Verb == fermata.VerbReject):
		return invalid(errGateEdit)
	case kind == docs.GateKind:
		value, err := json.Marshal(signal{Approved: new(said.Verb == fermata.VerbApprove), Feedback: said.Reason})
		submitted.Value = value
		return err
	case said.Verb == fermata.VerbReject:
		w.decision = &fermata.Decision{Verb: said.Verb, Reason: said.Reason, Codes: said.Codes}
		submitted.Value = nil
	case said.Args != nil:
		submitted.Value = said.Args
	default:
		submitted.Value = json.RawMessage("null")
	}
	return nil
}

// signal is the answer to a gate, without what the server attests.
type signal struct {
	Approved *bool  `json:"approved"`
	Feedback string `json:"feedback,omitempty"`
}

// readSignal makes the answer to a gate a decision.
func (w *submission) readSignal() error {
	var said signal
	if json.Unmarshal(w.value, &said) != nil || said.Approved == nil {
		return &fermata.AnswerError{ID: w.Interrupt, Kind: w.interrupt.Kind, Err: errors.New(`"approved" is missing`)}
	}
	w.decision = &fermata.Decision{Verb: fermata.VerbReject, Reason: said.Feedback, Codes: w.said.Codes}
	if *said.Approved {
		w.decision.Verb = fermata.VerbApprove
	}
	return nil
}

// readState makes the answer to a hold an approval if it does not change the state.
func (dc *Decider) readState(w *submission) error {
	same := string(w.value) == "null"
	if !same {
		held, err := dc.store.Data(w.interrupt)
		if err != nil {
			return err
		}
		before, err := strictjson.Canonical(held)
		after, invalid := strictjson.Canonical(w.value)
		same = err == nil && invalid == nil && string(before) == string(after)
	}
	if same {
		w.value, w.decision = nil, &fermata.Decision{Verb: fermata.VerbApprove, Reason: w.said.Reason}
	}
	return nil
}

// approvedValue returns the answer that an approved gate or hold gets.
func (w submission) approvedValue(by fermata.Attestation) (json.RawMessage, error) {
	value := json.RawMessage("null")
	if w.interrupt.Kind == docs.GateKind {
		var err error
		if value, err = json.Marshal(signal{Approved: new(true), Feedback: w.decision.Reason}); err != nil {
			return nil, err
		}
	}
	return by.Write(docs.AttestedFields(w.interrupt.Kind), value)
}
