package decide

import (
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/attest"
	"github.com/fermata-go/fermata/internal/executor/docs"
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

// readVerb converts the answer to a gate or a hold that has a verb: to the signal of the gate, or
// to the state of the held run. The rejection of a hold has no answer: the value of submitted is
// nil then. Other answers stay as they are.
func (dc *Decider) readVerb(submitted *Answer, w *submission) error {
	var said verbAnswer
	kind := w.interrupt.Kind
	if kind != docs.GateKind && kind != docs.HoldKind || strictjson.Decode(submitted.Value, &said) != nil {
		return nil
	}
	if kind == docs.HoldKind { // a held state may have such a field
		held, err := dc.store.Data(w.interrupt)
		if err != nil || attest.Members(held)["verb"] != nil {
			return err
		}
	}
	invalid := func(err error) error { return &fermata.AnswerError{ID: w.Interrupt, Kind: kind, Err: err} }
	switch {
	case said.Verb == fermata.VerbExpire:
		return invalid(errExpireVerb)
	case said.Verb != fermata.VerbApprove && said.Verb != fermata.VerbReject:
		return nil
	case kind == docs.GateKind && said.Args != nil:
		return invalid(errGateEdit)
	case kind == docs.GateKind:
		value, err := json.Marshal(signal{Approved: new(said.Verb == fermata.VerbApprove), Feedback: said.Reason})
		submitted.Value = value
		w.codes = said.Codes
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
	if err := json.Unmarshal(w.value, &said); err != nil || said.Approved == nil {
		return err // the gate of another program: it is answered
	}
	w.decision = &fermata.Decision{Verb: fermata.VerbReject, Reason: said.Feedback, Codes: w.codes}
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
		w.value, w.decision = nil, &fermata.Decision{Verb: fermata.VerbApprove}
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
