// Package provider is the port to whatever executes runs and owns their state: our own engine (provider/inproc), another one behind a
// network, an agent in another language.
//
// A provider is told to execute, and comes back when the run rests: it is over, it has failed, or it waits for people. It keeps
// nothing in memory between two calls, so any process may make the next one. After a crash the same call is simply made again.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/drawing"
	"github.com/fermata-go/fermata/store"
)

// Provider executes runs. Its methods may be called at once for different runs; for one run, the executor calls one at a time.
type Provider interface {
	// Name is the word before the colon of a graph id, as "inproc" in "inproc:content-review".
	Name() string

	// Graphs lists what can be run.
	Graphs() []Graph

	// Capabilities says what it cannot do, so that nobody counts on it.
	Capabilities() Capabilities

	// Execute takes a run as far as it gets: from its start if it has not begun, on from where it is otherwise, with the answers
	// that are new to it. It may be called again with answers that it has seen; they count once.
	//
	// An error means that the execution could not be finished and may be tried again: after a while of the executor's choice, or when a
	// [*RetryError] says, or, with [ErrPark], not before somebody has looked at it. What the run itself came to, a failure too, is
	// a Result.
	Execute(ctx context.Context, execution Execution) (Result, error)

	// AnswerCheck returns an answer as it will be delivered, or an error, a *fermata.AnswerError, that says why it does not fit its
	// question. Nothing is changed by it.
	CheckAnswer(ctx context.Context, run Run, interrupt string, answer json.RawMessage) (json.RawMessage, error)

	// Delete forgets a run. To delete one that it does not have is no error.
	Delete(ctx context.Context, run Run) error
}

// Capabilities is what a provider can do beyond starting a run and answering its question.
type Capabilities struct {
	// Parallel: several questions of a run may be open at once, and be answered one by one.
	Parallel bool
	// Effects: effects are begun in the owner's ledger. Without it, what the run does outside is its own affair.
	Effects bool
	// Calls: executions do nothing but call somebody elsewhere and wait. The executor has more of them under way than it has workers: those who take long
	// to answer must not hold up the others.
	Remote bool
}

// Run names a run.
type Run struct {
	Account string
	// ID is the executor's id of the run, StateKey the handle that its callers use. Ref is the provider's own, as it was given to
	// [Owner.SetRef]; empty before that.
	ID, StateKey, Ref string
	Graph             string
	// State is where a provider that has no place of its own keeps the run's state. Only the owner of the run can save. In an execution a save is
	// durable a moment after it returns, and at the latest before a policy allows or denies something, before an effect begins, before
	// [Owner.SetRef] writes, and together with the rest of the run: so nothing that anybody outside could see is ahead of it.
	State store.Checkpoints
}

// Graph is something that can be run.
type Graph struct {
	// Name is the word behind the colon of a graph id.
	Name        string
	Description string
	// Input is the JSON Schema of what it begins with; nil if anything will do.
	Input json.RawMessage
	// Drawing shows it; nil if there is nothing to see. Nobody changes it.
	Drawing *drawing.Drawing
}

// Execution is one stretch of work on a run.
type Execution struct {
	Run     Run
	Input   json.RawMessage
	Answers []Answer
	// Attempt counts, from 0, how often it was tried since the run came to rest.
	Attempt int
	Owner   Owner
	// Policy, if it is not nil, is asked about actions beside the graph's own; the stricter word counts.
	Policy fermata.Policy
	// Report, if it is not nil, hears of what happens meanwhile. It never waits, and several goroutines may call it at once.
	Report func(Progress)
}

// Answer is a person's word on one question, or the clock's.
type Answer struct {
	// Interrupt is the id of the question.
	InterruptID string
	// Data is what was said; nil if the question is Expired: nobody said anything in time.
	Data    json.RawMessage
	Expired bool
	// By and At say who decided, and when.
	By string
	At time.Time
}

// Owner is the executor's right to the run, for as long as it lasts. The context of the execution ends with it.
type Owner interface {
	// SetRef writes down how the provider calls the run. It is to be called before anything happens that must not happen twice.
	SetRef(ctx context.Context, ref string) error
	// Ledger is where effects are begun.
	Ledger() fermata.Ledger
}

// RetryError says when an execution may be tried again.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *RetryError) Unwrap() error { return e.Err }

// ErrPark says that it makes no sense to try again before somebody has looked at what is wrong.
var ErrPark = errors.New("provider: given up")

// LogError is an error that has words for the log of whoever operates the executor: what to look after, and nothing of what a run works on. Of all other
// errors only the types are logged. It is optional.
type LogError interface {
	error
	ForLog() string
}

// Result is how far an execution has come.
type Result struct {
	// Applied are the ids of the questions whose answers the run has taken.
	Applied []string
	Outcome Outcome
}

// Outcome is one of [Completed], [Waiting] and [Failed].
//
//sumtype:decl
type Outcome interface{ outcome() }

// Completed is a run that is over.
type Completed struct {
	Content      string
	Output       json.RawMessage
	Usage        *fermata.Usage
	FinishReason string
	// Spent says that there is nothing in the run's state that is not in Output, too. Then the state is not kept.
	DiscardState bool
}

// Waiting is a run that waits for people.
type Waiting struct{ Interrupts []Interrupt }

// Failed is a run that cannot go on by itself. Code is stable, Message is for people and must not hold what the run works on.
type Failed struct{ Code, Message string }

func (Completed) outcome() {}
func (Waiting) outcome()   {}
func (Failed) outcome()    {}

// Interrupt is something that a run waits for.
type Interrupt struct {
	ID      string
	Address fermata.Address
	fermata.Envelope
	// AnswerSchema is the JSON Schema of the answer; nil if anything will do.
	AnswerSchema json.RawMessage
	// Timeout is how long it may be open; 0 leaves that to the executor.
	Timeout time.Duration
}
