// Package provider is the port to systems that execute runs and own their state: Fermata's own
// engine (provider/inproc), another engine behind a network, or an agent in another language.
//
// The executor calls a provider to execute a run, and the call returns when the run has ended,
// failed, or waits for people. A provider keeps nothing in memory between two calls, so any process
// may make the next one. After a crash the same call is repeated.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/drawing"
	"github.com/fermata-go/fermata/internal/store"
)

// Provider executes runs. Its methods may be called concurrently for different runs; for one run,
// the executor makes one call at a time.
type Provider interface {
	// Name is the provider part of a graph id, before the colon, for example "inproc" in
	// "inproc:content-review".
	Name() string

	// Graphs lists the graphs that can be run.
	Graphs() []Graph

	// Capabilities declares what the provider supports.
	Capabilities() Capabilities

	// Execute advances a run until it ends, fails or waits: from its start if it has not begun,
	// otherwise from its current state, with new answers. It may be called again with the same
	// answers; each is applied once.
	//
	// An error means that the execution failed and may be retried: after a delay that the executor
	// chooses, after the delay of a [*fermata.RetryError], or, with [ErrPark], only after an
	// operator has acted. A failure of the run itself is a Result.
	Execute(ctx context.Context, execution Execution) (Result, error)

	// CheckAnswer returns the answer as it will be delivered, or a *fermata.AnswerError if it does
	// not match its interrupt. It changes nothing.
	CheckAnswer(ctx context.Context, run Run, interrupt string, answer json.RawMessage) (json.RawMessage, error)

	// Delete deletes a run. Deleting an unknown run is not an error.
	Delete(ctx context.Context, run Run) error
}

// Capabilities declares optional abilities of a provider.
type Capabilities struct {
	// Parallel: several interrupts of a run may be open at once.
	Parallel bool
	// PartialResume: [Execution.Answers] may have answers to some of the open interrupts; the
	// others stay open with their ids. Without it, the executor collects the answers of all people
	// and rules, and calls Execute once with all of them. It must not change from false to true
	// while runs wait, because collected answers would not be delivered.
	PartialResume bool
	// Edit: the provider accepts an approval with changed arguments.
	Edit bool
	// Cancel: the provider stops its work, or notifies the agent, when a waiting run is cancelled.
	Cancel bool
	// Streaming: executions report steps or tokens; see [Execution.Report].
	Streaming bool
	// Receipts: there is a record of what was executed after an approval: in the ledger, or from
	// the agent.
	Receipts bool
	// Once is what happens exactly once; "" is [OnceNone].
	Once Once
	// Effects: effects are recorded in the owner's ledger. Without it, the executor does not
	// control the effects of a run.
	Effects bool
	// Policy: [Execution.Policy] is evaluated before an approval is raised. Without it, the
	// executor evaluates it, and answers the approvals that it allows.
	Policy bool
	// Remote: executions only make a remote call and wait for it. The executor runs more of them at
	// once than it has workers, so that slow receivers do not block others.
	Remote bool
}

// Once says what happens exactly once, also if processes crash at any moment.
type Once string

const (
	// OnceEffects: an approved effect is called once. If its result is unknown after a crash, its
	// target or a person decides whether it is called again.
	OnceEffects Once = "effects"
	// OnceAnswers: an answer is used once. Work that was in progress at a crash may be repeated.
	OnceAnswers Once = "answers"
	// OnceNone: an answer may be delivered again, with the same id. The agent has to recognize it.
	OnceNone Once = "none"
)

// Run identifies a run.
type Run struct {
	Account string
	// ID is the executor's run id, StateKey the handle of its callers. Ref is the provider ref from
	// [Owner.SetRef]; empty before that.
	ID, StateKey, Ref string
	Graph             string
	// State stores the state of a run for providers without their own storage. Only the owner of
	// the run can save. During an execution, saves are buffered: a save is durable at the latest
	// before a policy decision is returned, before an effect begins, before [Owner.SetRef] writes,
	// and together with the end of the execution. Nothing that is visible outside is ahead of the
	// saved state.
	State store.Checkpoints
}

// Graph describes a graph that can be run.
type Graph struct {
	// Name is the graph part of a graph id, after the colon.
	Name        string
	Description string
	// Input is the JSON Schema of the input; nil if any input is valid.
	Input json.RawMessage
	// Drawing is the layout of the graph; nil if there is none. It must not be modified.
	Drawing *drawing.Drawing
}

// Execution is one execution of a run.
type Execution struct {
	Run     Run
	Input   json.RawMessage
	Answers []Answer
	// Attempt counts the attempts since the last completed execution, from 0.
	Attempt int
	Owner   Owner
	// Policy, if not nil, is evaluated in addition to the graph's own; the stricter ruling counts.
	Policy fermata.Policy
	// EndUser is the person that the agent talks to, in a conversation; "" if there is none.
	EndUser string
	// Report, if not nil, receives progress. It never blocks and may be called concurrently.
	Report func(Progress)
}

// Answer is the decision on one interrupt, by a person or by expiry.
type Answer struct {
	// InterruptID identifies the interrupt.
	InterruptID string
	// Data is the answer; nil if Expired, that is, the deadline passed without a decision.
	Data    json.RawMessage
	Expired bool
	// Refusal, if not nil, ends an interrupt of a kind other than approval without an answer: it
	// was returned for redesign, or a rule rejected it at its deadline. Data is nil then.
	Refusal *fermata.Refusal
	// By and At are the author and the time of the decision. Auth is how the author was
	// authenticated, Rule the rule that decided. See [fermata.Attestation].
	By         string
	At         time.Time
	Auth, Rule string
}

// Attestation returns who gave the answer.
func (a Answer) Attestation() fermata.Attestation {
	return fermata.Attestation{By: a.By, At: a.At, Auth: a.Auth, Rule: a.Rule}
}

// Owner is the executor's ownership of the run. The context of the execution is cancelled when it
// is lost.
type Owner interface {
	// SetRef stores the provider ref. Call it before any work that must not be repeated.
	SetRef(ctx context.Context, ref string) error
	// Ledger returns the effect ledger.
	Ledger() fermata.Ledger
}

// ErrPark reports that a retry is useless before an operator has acted. The executor parks the run.
var ErrPark = errors.New("provider: operator action required")

// LogError is an optional interface of errors with a text for the operator's log. The text must not
// contain data of the run. For other errors only the type is logged.
type LogError interface {
	error
	ForLog() string
}

// Result is the result of an execution.
type Result struct {
	// Applied are the ids of the interrupts whose answers were used.
	Applied []string
	Outcome Outcome
}

// Outcome is one of [Completed], [Waiting] and [Failed].
//
//sumtype:decl
type Outcome interface{ outcome() }

// Completed is the outcome of a finished run.
type Completed struct {
	Content      string
	Output       json.RawMessage
	Usage        *fermata.Usage
	FinishReason string
	// DiscardState reports that Output contains everything of the run's state, so that the state
	// need not be kept.
	DiscardState bool
}

// Waiting is the outcome of a run that waits for people.
type Waiting struct {
	Interrupts []Interrupt
	// Failure is set if a part of the run has failed next to the interrupts. It is tried again with
	// the next answer.
	Failure *Failed
	// Unused are answers that the run accepted and did not use.
	Unused []fermata.UnusedAnswer
}

// Failed is the outcome of a run that cannot continue by itself. Code is stable. Message is for
// people and must not contain data of the run. Detail is the complete error, for operators.
type Failed struct {
	Code, Message, Detail string
	// Final says that a retry from the last saved step cannot succeed, for example because a person
	// rejected the request.
	Final bool
}

func (Completed) outcome() {}
func (Waiting) outcome()   {}
func (Failed) outcome()    {}

// Interrupt is an interrupt that a run waits for.
type Interrupt struct {
	ID      string
	Address fermata.Address
	fermata.Envelope
	// AnswerSchema is the JSON Schema of the answer; nil if any JSON is valid.
	AnswerSchema json.RawMessage
	// DefaultAnswer is the answer that the question declares for a deadline that passes; nil if it
	// declares none. The executor uses it only if a rule says so, and never for an approval, a
	// gate, a hold or an effect in doubt.
	DefaultAnswer json.RawMessage
	// Timeout is how long the interrupt may be open; 0 leaves that to the executor.
	Timeout time.Duration
	// Supersedes is the id of the interrupt that this one replaces because what it showed has
	// changed, and Changed the JSON pointers of the differences. Refused is the reason why the last
	// answer was not used. See [fermata.OpenInterrupt].
	Supersedes string
	Changed    []string
	Refused    string
}
