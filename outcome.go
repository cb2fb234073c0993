package fermata

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Outcome is the result of a start or resume: exactly one of [Completed], [NeedsInput] and
// [Failed].
//
//sumtype:decl
type Outcome interface{ outcome() }

// Completed is the outcome of a finished run.
type Completed struct {
	Run string `json:"runId"`
	// Content is the result as text, Output the result as JSON.
	Content      string          `json:"content,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	Usage        *Usage          `json:"usage,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
}

// Usage is the token usage of a run's models. A server also writes promptTokens and
// completionTokens, which are other names of the same numbers.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// NeedsInput is the outcome of a run that waits for people.
type NeedsInput struct {
	Run      string `json:"runId"`
	StateKey string `json:"stateKey"`
	// Interrupts has at least one element.
	Interrupts []OpenInterrupt `json:"interrupts"`
	// Deduplicated reports that an identical request was open, and this is its outcome. A server
	// sets it.
	Deduplicated bool `json:"deduplicated,omitempty"`
	// Failure is set if a part of the run has failed next to the open interrupts. It is tried again
	// with the next answer.
	Failure *Failure `json:"failure,omitempty"`
	// Unused are answers that were accepted and not used, because what they were about has changed.
	Unused []UnusedAnswer `json:"unused,omitempty"`
}

// Failure is the failure of a part of a run. Code is stable and meant for programs; Message is
// meant for people.
type Failure struct {
	Code    string `json:"error"`
	Message string `json:"message,omitempty"`
}

// UnusedAnswer is an answer that was accepted and not used.
type UnusedAnswer struct {
	// ID is the id of the interrupt that was answered.
	ID string `json:"id"`
	// Reason says why the answer was not used. It does not contain the answer.
	Reason string `json:"reason"`
}

// OpenInterrupt is an interrupt that a run waits for.
type OpenInterrupt struct {
	ID      string  `json:"id"`
	Address Address `json:"address"`
	Envelope
	// AnswerSchema is the JSON Schema of the answer; nil if any JSON is valid.
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty"`
	// RequestID is the id of the request that people see, and Deadline its deadline; nil if there
	// is no deadline. A server sets both.
	RequestID string     `json:"requestId,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	// Supersedes is the id of the interrupt that this one replaces because what it showed has
	// changed. Changed are the JSON pointers of the differences in Data.
	Supersedes string   `json:"supersedes,omitempty"`
	Changed    []string `json:"changed,omitempty"`
	// Refused is the reason why the last answer to this interrupt was not used.
	Refused string `json:"refused,omitempty"`
	// Masked are the JSON pointers of sensitive values that a server has masked in Data.
	Masked []string `json:"masked,omitempty"`
}

// Envelope is the part of an interrupt that leaves a provider: its kind and its data.
type Envelope struct {
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Failed is the outcome of a run that cannot continue by itself.
type Failed struct {
	Run string `json:"runId"`
	// Code is stable and meant for programs; Message is meant for people.
	Code    string `json:"error"`
	Message string `json:"message,omitempty"`
}

func (Completed) outcome()  {}
func (NeedsInput) outcome() {}
func (Failed) outcome()     {}

// The values of "status" in the JSON form of an outcome.
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

// MarshalJSON writes the outcome with its status, and the first open interrupt separately for
// clients that support only one.
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

// UnmarshalOutcome decodes an outcome. A field that does not belong to its status is an error.
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

// withoutAliases removes the second names that a server writes for the members of a [Usage].
func withoutAliases(usage json.RawMessage) (json.RawMessage, error) {
	if usage == nil || string(usage) == "null" {
		return json.RawMessage("null"), nil
	}
	members, err := strictjson.Members(usage)
	if err != nil {
		return nil, err
	}
	delete(members, "promptTokens")
	delete(members, "completionTokens")
	return json.Marshal(members)
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
		delete(members, "interrupt") // repeats the first interrupt
	case Completed:
		output = members["output"]
		delete(members, "output")
		if members["usage"], err = withoutAliases(members["usage"]); err != nil {
			return outcome, err
		}
	}
	remaining, err := json.Marshal(members)
	if err == nil {
		err = strictjson.Decode(remaining, &outcome)
	}
	if completed, ok := any(&outcome).(*Completed); ok {
		completed.Output = output // the output of a run may be any JSON
	}
	return outcome, err
}
