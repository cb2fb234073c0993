package fermata

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Sizes at the border of a run, in bytes of JSON. What is larger belongs into a store of its own, and its name into the run.
const (
	MaxAnswerBytes = 64 << 10  // an answer
	MaxDataBytes   = 256 << 10 // what a question shows
)

// Outcome is how far a run has come: exactly one of [Completed], [NeedsInput] and [Failed].
//
//sumtype:decl
type Outcome interface{ outcome() }

// Completed is a run that is over.
type Completed struct {
	Run string `json:"runId"`
	// Content is the result as a text, Output as JSON.
	Content      string          `json:"content,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	Usage        *Usage          `json:"usage,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
}

// Usage is what the models of a run used.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// NeedsInput is a run that waits for people.
type NeedsInput struct {
	Run      string `json:"runId"`
	StateKey string `json:"stateKey"`
	// Interrupts are what it waits for; there is at least one.
	Interrupts []OpenInterrupt `json:"interrupts"`
}

// OpenInterrupt is one question that a run waits for.
type OpenInterrupt struct {
	ID      string  `json:"id"`
	Address Address `json:"address"`
	Envelope
	// AnswerSchema is the JSON Schema of the answer; nil if any JSON is one.
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty"`
	// RequestID names the request that people see, Deadline says until when they can answer. A server sets both; a deadline is nil if there is none.
	RequestID string     `json:"requestId,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"`
}

// Envelope is what leaves a provider: the kind of the question, and the question.
type Envelope struct {
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Failed is a run that cannot go on by itself.
type Failed struct {
	Run string `json:"runId"`
	// Code is stable, for programs; Message is for people.
	Code    string `json:"error"`
	Message string `json:"message,omitempty"`
}

func (Completed) outcome()  {}
func (NeedsInput) outcome() {}
func (Failed) outcome()     {}

// The values of an outcome's status in JSON.
const (
	statusCompleted  = "completed"
	statusNeedsInput = "needs_input"
	statusFailed     = "error"
)

// MarshalJSON writes the outcome with its status.
func (c Completed) MarshalJSON() ([]byte, error) {
	type plain Completed
	return json.Marshal(struct {
		Status string `json:"status"`
		plain
	}{statusCompleted, plain(c)})
}

// MarshalJSON writes the outcome with its status, and the first open question on its own for clients that know only one.
func (n NeedsInput) MarshalJSON() ([]byte, error) {
	type plain NeedsInput
	var first *Envelope
	if len(n.Interrupts) > 0 {
		first = &n.Interrupts[0].Envelope
	}
	return json.Marshal(struct {
		Status    string    `json:"status"`
		Interrupt *Envelope `json:"interrupt,omitempty"`
		plain
	}{statusNeedsInput, first, plain(n)})
}

// MarshalJSON writes the outcome with its status.
func (f Failed) MarshalJSON() ([]byte, error) {
	type plain Failed
	return json.Marshal(struct {
		Status string `json:"status"`
		plain
	}{statusFailed, plain(f)})
}

// UnmarshalOutcome reads an outcome back. A field that does not belong to its status is an error.
func UnmarshalOutcome(data []byte) (Outcome, error) {
	var tag struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(data, &tag); err != nil {
		return nil, fmt.Errorf("fermata: outcome: %w", err)
	}
	var outcome Outcome
	var err error
	switch tag.Status {
	case statusCompleted:
		outcome, err = decodeOutcome[Completed](data)
	case statusNeedsInput:
		outcome, err = decodeOutcome[NeedsInput](data)
	case statusFailed:
		outcome, err = decodeOutcome[Failed](data)
	default:
		err = fmt.Errorf("unknown status %q", tag.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("fermata: outcome: %w", err)
	}
	return outcome, nil
}

func decodeOutcome[T Outcome](data []byte) (T, error) {
	var outcome T
	members, err := strictjson.Members(data)
	if err != nil {
		return outcome, err
	}
	delete(members, "status")
	var output json.RawMessage
	switch any(outcome).(type) {
	case NeedsInput:
		delete(members, "interrupt") // it repeats the first
	case Completed:
		output = members["output"]
		delete(members, "output")
	}
	rest, err := json.Marshal(members)
	if err == nil {
		err = strictjson.Decode(rest, &outcome)
	}
	if done, ok := any(&outcome).(*Completed); ok {
		done.Output = output // what a run came to is no question that somebody could misread: any JSON will do
	}
	return outcome, err
}
