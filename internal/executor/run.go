package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/decide"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/worker"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// StartRequest starts a run. It can be repeated and counts once.
type StartRequest = worker.StartRequest

// DecideRequest answers open requests. It can be repeated with the same resume id and counts once.
type DecideRequest = decide.Request

// RunRequest starts a run, or resumes it if it has a resume id. It has the fields of the chat
// endpoint; [StartRequest] and [DecideRequest] are its two halves.
type RunRequest struct {
	Account string
	// StateKey is the public handle of the run. For a start it may be empty; then a new one is
	// made.
	StateKey string

	// Graph, Input, StartID, Supersede, ReserveStateKey and Kind are those of a [StartRequest].
	Graph           string
	Input           json.RawMessage
	StartID         string
	Supersede       bool
	ReserveStateKey bool
	Kind            desk.ActorKind

	// ResumeID, Value and Targets are those of a [DecideRequest].
	ResumeID string
	Value    json.RawMessage
	Targets  map[string]Answer

	// Actor decides, or has the run started. Via is the channel of the request, Auth how strongly
	// the actor was authenticated.
	Actor, Via string
	Auth       requirement.Auth

	// Wait is how long to wait for the outcome; 0 is Config.Wait, and a negative one does not wait.
	Wait time.Duration
}

func (r RunRequest) toStart() StartRequest {
	return StartRequest{
		Account: r.Account, StateKey: r.StateKey, Graph: r.Graph, Input: r.Input, StartID: r.StartID, Supersede: r.Supersede, ReserveStateKey: r.ReserveStateKey,
		Actor: r.Actor, Via: r.Via, Auth: r.Auth, Kind: r.Kind, Wait: r.Wait,
	}
}

func (r RunRequest) toDecide() DecideRequest {
	return DecideRequest{
		Account: r.Account, StateKey: r.StateKey, ResumeID: r.ResumeID, Actor: r.Actor, Via: r.Via, Auth: r.Auth, Value: r.Value, Targets: r.Targets, Wait: r.Wait,
	}
}

// Run starts or resumes a run, as [Executor.Start] and [Executor.Decide] do.
func (e *Executor) Run(ctx context.Context, request RunRequest) (fermata.Outcome, error) {
	if request.ResumeID == "" {
		return e.Start(ctx, request.toStart())
	}
	if request.StateKey == "" { // the state key names the run here, and not the requests
		return nil, fmt.Errorf("%w: %q", ErrRunNotFound, request.StateKey)
	}
	return e.Decide(ctx, request.toDecide())
}

// Start starts a run and returns its outcome. If that takes too long it returns a [*PendingError];
// the run is started then, and goes on. After an error of any other package it is unknown whether
// the run was started. Repeat the request: it counts once.
func (e *Executor) Start(ctx context.Context, request StartRequest) (fermata.Outcome, error) {
	if e.background.IsStopping() {
		return nil, ErrClosed
	}
	err := validateNames(request.StateKey, name{"account", request.Account}, name{"start id", request.StartID}, name{"actor", request.Actor}, name{"via", request.Via})
	if err != nil {
		return nil, err
	}
	target, err := e.worker.Start(ctx, request)
	if err != nil {
		return nil, e.background.NoteWriteError(err)
	}
	outcome, err := e.waiter.Await(ctx, target)
	return outcome, e.background.NoteWriteError(err)
}

// Decide records answers to open requests of a run and returns the outcome of the execution that
// applies them. If others have to agree first, the answers are votes, and the outcome is the one
// the run has now. If the execution takes too long Decide returns a [*PendingError]; the decision
// is recorded then. With an undo window it returns one with the time at which the decision takes
// effect. A decision that cannot be accepted is a [*RefusedError], an answer that does
// not fit its request a [*fermata.AnswerError]. After an error of any other package it is unknown
// whether the decision was recorded. Repeat the request: it counts once.
func (e *Executor) Decide(ctx context.Context, request DecideRequest) (fermata.Outcome, error) {
	if e.background.IsStopping() {
		return nil, ErrClosed
	}
	err := validateNames(request.StateKey, name{"account", request.Account}, name{"resume id", request.ResumeID}, name{"actor", request.Actor}, name{"via", request.Via})
	if err != nil {
		return nil, err
	}
	outcome, err := e.decide(ctx, request)
	return outcome, e.background.NoteWriteError(err)
}

func (e *Executor) decide(ctx context.Context, request DecideRequest) (fermata.Outcome, error) {
	// a decision may claim its run; a process that cannot renew cannot claim, either
	_ = e.worker.RenewOverdue(ctx)
	snapshot, err := e.decider.Load(ctx, &request)
	if err != nil {
		return nil, err
	}
	receipt, err := e.decider.Record(ctx, snapshot, request)
	run := snapshot.Run
	switch {
	case errors.Is(err, decide.ErrVoteCounted): // the run waits for more people
		if before, ok := errors.AsType[*decide.VoteCountedError](err); ok {
			run.ID = before.Run
		}
		if pending, err := e.decider.PendingOf(ctx, snapshot, request); err != nil {
			return nil, err
		} else if pending != nil {
			return nil, &PendingError{Run: run.ID, StateKey: run.StateKey, EffectiveAt: pending.EffectiveAt}
		}
		return e.waiter.LastOutcome(ctx, run)
	case errors.Is(err, store.ErrResumeIDReused):
		return nil, ErrResumeIDReused
	case docs.IsNotFound(err): // the run was deleted in the meantime
		return nil, fmt.Errorf("%w: %q", ErrRunNotFound, run.StateKey)
	case err != nil:
		return nil, err
	}
	known := worker.Preloaded{Meta: snapshot.Meta}
	if receipt.Claimed != nil {
		known.State = snapshot.ReusableState(receipt.Claimed)
	}
	return e.waiter.Await(ctx, await.Target{
		Account: request.Account, Run: receipt.Run, StateKey: run.StateKey, Actor: request.Actor, ResumeID: request.ResumeID, Wait: request.Wait,
		Execution: e.worker.ExecuteAfterDecision(ctx, run, request.ResumeID, request.Actor, receipt, known),
	})
}

// decidePending makes a pending decision effective and has the run continue.
func (e *Executor) decidePending(ctx context.Context, account, id string) error {
	err := e.decider.RecordPending(ctx, account, id)
	if err == nil {
		e.worker.WakeWorker()
	}
	return err
}

// CheckInput returns nil, or a [*provider.InputError] if the input of a start is invalid: the run
// would fail because of it. A start that was made before is not checked again. Nothing is changed.
func (e *Executor) CheckInput(ctx context.Context, request RunRequest) error {
	err := e.worker.CheckInput(ctx, request.toStart())
	if _, invalid := errors.AsType[*provider.InputError](err); !invalid || request.StateKey == "" {
		return err
	}
	if run, getErr := e.views.GetRun(ctx, request.Account, request.StateKey); getErr == nil && (request.ReserveStateKey || IsRepeat(request, run.Run)) {
		return nil // the start is a repetition, or the state key is not free for it
	}
	return err
}

// name is a name in a request, with the word for it in errors.
type name struct{ what, value string }

func validateNames(stateKey string, names ...name) error {
	for _, n := range append(names, name{"state key", stateKey}) {
		if len(n.value) > MaxName {
			return fmt.Errorf("%w: the %s has %d bytes; %d are allowed", ErrInvalid, n.what, len(n.value), MaxName)
		}
	}
	if stateKey == "." || stateKey == ".." {
		return fmt.Errorf("%w: the state key %q is a relative path segment and cannot be used in a URL", ErrInvalid, stateKey)
	}
	return nil
}

// IsRepeat reports whether a start is the one that a run began with. Then it starts nothing, and
// returns the outcome of that run.
func IsRepeat(start RunRequest, run store.Run) bool {
	return run.InputDigest == worker.StartDigest(start.toStart())
}

// EnvelopeDigest returns the digest of what a request shows. An answer that carries it is refused
// if the request shows something else.
func EnvelopeDigest(shown fermata.Envelope) string { return ids.EnvelopeDigest(shown) }

// Await waits for the outcome of a request that [Executor.Run] took before, and begins nothing. A
// start that is sent again would begin another run if its state key was taken and is free again.
// run is the id of the run that was started or resumed, whichever run has its state key now.
func (e *Executor) Await(ctx context.Context, request RunRequest, run string) (fermata.Outcome, error) {
	return e.waiter.Await(ctx, await.Target{Account: request.Account, Run: run, StateKey: request.StateKey, Actor: request.Actor, ResumeID: request.ResumeID, Wait: request.Wait})
}
