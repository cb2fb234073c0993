package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/embedded"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/policy"
	storeport "github.com/fermata-go/fermata/internal/store"
)

// Executor starts runs, records decisions and continues runs. It is safe for concurrent use.
type Executor struct {
	parts embedded.Parts
	rules *policy.LiveSet // nil: no policy
	log   *slog.Logger

	once  sync.Once
	stop  sync.Once
	done  chan struct{}
	loops sync.WaitGroup
}

func init() {
	embedded.PartsOf = func(e any) embedded.Parts { return e.(*Executor).parts }
}

// Start begins the work in the background: it continues runs that are ready or whose process has
// ended, expires requests and sends notices. It returns at once, and may be called several times.
func (e *Executor) Start() {
	e.once.Do(func() {
		e.parts.Executor.StartWorkers()
		if e.rules != nil {
			e.loops.Go(func() { e.every(reloadInterval, e.reload) })
		}
		if e.parts.Dialog != nil {
			e.loops.Go(func() { e.every(sweepInterval, e.sweep) })
		}
	})
}

// Stop begins no more work and waits for executions in progress. When ctx ends it cancels them;
// they are continued later, here or in another process. It may be called several times.
func (e *Executor) Stop(ctx context.Context) error {
	e.stop.Do(func() { close(e.done) })
	err := e.parts.Executor.Stop(ctx)
	e.loops.Wait()
	return err
}

const (
	// reloadInterval is how often the policy file is checked for changes.
	reloadInterval = 10 * time.Second
	// sweepInterval is how often conversations are looked for that a process left behind, or that
	// have an expired question.
	sweepInterval = 2 * time.Second
)

// every calls do in an interval until the executor stops.
func (e *Executor) every(interval time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-ticks.C:
			do(ctx)
		}
	}
}

func (e *Executor) reload(ctx context.Context) {
	change, err := e.rules.Reload(ctx)
	if err != nil {
		e.log.Error("policy file cannot be loaded; keeping the previous version", "err", err)
	} else if change.Changed() {
		e.log.Info("new policy in force", "digest", change.After.Digest(), "version", change.After.Version())
	}
}

func (e *Executor) sweep(ctx context.Context) {
	if _, err := e.parts.Dialog.Sweep(ctx); err != nil {
		e.log.Warn("continuing conversations failed", "err", err)
	}
}

// Dialog returns the handler of conversations with end users, or nil without Config.Dialog.
func (e *Executor) Dialog() dialog.Handler {
	if e.parts.Dialog == nil {
		return nil
	}
	return e.parts.Dialog
}

// via names the channel of calls of the program in audit records.
const via = "program"

// StartRequest starts a run.
type StartRequest struct {
	// Account is the tenant. Runs of one account are invisible to others.
	Account string
	// Graph is the id of the graph, such as "inproc:refund".
	Graph string
	// Input becomes the input of the run, as JSON: for a graph its state, for an agent
	// {"query": "…"}.
	Input any
	// StateKey is the name of the run in all other calls. The default is a new random one. A start
	// with the state key, graph and input of an active run is a repetition and returns its outcome.
	StateKey string
	// Actor is the person or program that starts the run.
	Actor string
	// Wait is how long to wait for the outcome. 0 is Config.Wait; a negative value does not wait.
	Wait time.Duration
}

// StartRun starts a run and returns its outcome: a [fermata.Completed], a [fermata.NeedsInput] with
// the open questions, or a [fermata.Failed]. If that takes too long the error is [ErrPending]: the
// run is started and goes on. After an error of another package it is unknown whether the run was
// started. Repeat the call with the same state key: it counts once.
func (e *Executor) StartRun(ctx context.Context, start StartRequest) (fermata.Outcome, error) {
	input, err := json.Marshal(start.Input)
	if err != nil {
		return nil, fmt.Errorf("%w: StartRequest.Input: %w", ErrInvalid, err)
	}
	return e.parts.Executor.Start(ctx, executor.StartRequest{
		Account: start.Account, StateKey: start.StateKey, Graph: start.Graph, Input: input, Actor: start.Actor, Via: via, Wait: start.Wait,
	})
}

// Decision answers open questions of a run.
type Decision struct {
	Account, StateKey string
	// ID identifies the decision. A repetition with the same id counts once.
	ID string
	// Actor is the person who decides. The program vouches for them.
	Actor string
	// Answers has an answer for each interrupt id, as JSON: the answer type of its kind, or
	// [fermata.Yes], [fermata.No] and other values of [fermata.Decision] for an approval.
	Answers map[string]any
	// Wait is how long to wait for the outcome. 0 is Config.Wait; a negative value does not wait.
	Wait time.Duration
}

// Decide records answers and returns the outcome of the execution that applies them. If others have
// to agree first, the answers are votes. The error is an [*fermata.AnswerError] for an answer that
// does not fit, and wraps [ErrRefused] if the question is not open any more or the policy does not
// let this person decide. After both nothing was changed. [ErrPending] is as for StartRun.
func (e *Executor) Decide(ctx context.Context, decision Decision) (fermata.Outcome, error) {
	targets := make(map[string]executor.Answer, len(decision.Answers))
	for id, value := range decision.Answers {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%w: Decision.Answers: %w", ErrInvalid, err)
		}
		targets[id] = executor.Answer{Value: data}
	}
	outcome, err := e.parts.Executor.Decide(ctx, executor.DecideRequest{
		Account: decision.Account, StateKey: decision.StateKey, ResumeID: decision.ID, Actor: decision.Actor, Via: via, Targets: targets, Wait: decision.Wait,
	})
	if _, refused := errors.AsType[*executor.RefusedError](err); refused {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return outcome, err
}

// Cancel ends a run on behalf of an actor. Its requests are withdrawn. The error is [ErrRunEnded]
// if the run has ended.
func (e *Executor) Cancel(ctx context.Context, account, stateKey, actor string) error {
	return e.parts.Executor.Cancel(ctx, account, stateKey, from(actor))
}

// Retry continues a failed run, or one that was parked after too many attempts, from its last saved
// step. Recorded effects and accepted answers are kept. The error is [ErrNotRetryable], with the
// reason, if that is impossible.
func (e *Executor) Retry(ctx context.Context, account, stateKey, actor string) error {
	return e.parts.Executor.Retry(ctx, account, stateKey, from(actor))
}

func from(actor string) desk.From {
	if actor == "" {
		return desk.From{}
	}
	return desk.From{Actor: desk.Actor{ID: actor, Kind: desk.ActorHuman}, Via: via}
}

// Run is a run as its account may see it.
type Run struct {
	ID, StateKey, Graph string
	// Status is ready, running, waiting, parked, completed, failed, cancelled or superseded.
	Status           string
	Created, Updated time.Time
	// Outcome and Requests are set by Get. Outcome is nil while the run is executed.
	Outcome  fermata.Outcome
	Requests []Request
}

// Request is a question of a run.
type Request struct {
	ID, Run, StateKey string
	// Kind and Data are what is asked.
	Kind string
	Data json.RawMessage
	// State is pending, decided or withdrawn. Answer, DecidedBy and DecidedAt are those of the
	// decision. Of an expired request, DecidedBy is empty.
	State             string
	Answer            json.RawMessage
	DecidedBy         string
	DecidedAt         time.Time
	Created, Deadline time.Time
}

// Get returns the newest run of a state key, or [ErrRunNotFound].
func (e *Executor) Get(ctx context.Context, account, stateKey string) (Run, error) {
	view, err := e.parts.Executor.GetRun(ctx, account, stateKey)
	if err != nil {
		return Run{}, err
	}
	r := toRun(view.Run)
	r.Outcome = view.Outcome
	for _, asked := range view.Interrupts {
		r.Requests = append(r.Requests, toRequest(asked))
	}
	return r, nil
}

// List returns the runs of an account, the newest first, without outcomes and requests. Statuses
// restricts them.
func (e *Executor) List(ctx context.Context, account string, statuses ...string) iter.Seq2[Run, error] {
	filter := storeport.RunFilter{Limit: pageSize}
	for _, s := range statuses {
		filter.Status = append(filter.Status, storeport.Status(s))
	}
	return func(yield func(Run, error) bool) {
		for {
			page, err := e.parts.Executor.ListRuns(ctx, account, filter)
			if err != nil {
				yield(Run{}, err)
				return
			}
			for _, r := range page {
				if !yield(toRun(r), nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last := page[len(page)-1]
			filter.Before = storeport.RunPosition{Created: last.Created, ID: last.ID}
		}
	}
}

// OpenRequests returns the open requests of an account, the oldest first.
func (e *Executor) OpenRequests(ctx context.Context, account string) iter.Seq2[Request, error] {
	filter := storeport.InboxFilter{State: storeport.InterruptPending, Limit: pageSize}
	return func(yield func(Request, error) bool) {
		for {
			page, err := e.parts.Executor.ListRequests(ctx, account, filter)
			if err != nil {
				yield(Request{}, err)
				return
			}
			for _, asked := range page {
				if !yield(toRequest(asked), nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			filter.After = filter.Position(page[len(page)-1].Interrupt)
		}
	}
}

// pageSize is how many rows are read at once.
const pageSize = 200

func toRun(r storeport.Run) Run {
	return Run{ID: r.ID, StateKey: r.StateKey, Graph: r.Provider + ":" + r.Graph, Status: string(r.Status), Created: r.Created, Updated: r.Updated}
}

func toRequest(asked docs.RequestView) Request {
	return Request{
		ID: asked.ID, Run: asked.Run, StateKey: asked.StateKey, Kind: asked.Kind, Data: asked.Data, State: string(asked.State), Answer: asked.Answer,
		DecidedBy: asked.DecidedBy, DecidedAt: asked.DecidedAt, Created: asked.Created, Deadline: asked.Deadline,
	}
}

// Event is something that happened to a run.
type Event struct {
	// Number counts the events of a run from 1 without gaps.
	Number int64
	// Kind is created, asked, decided, expired, withdrawn, effect_begun, effect_ended, or the
	// status that the run has now.
	Kind string
	// Request is the id of the request that the event is about; "" if there is none.
	Request string
	At      time.Time
}

// Events returns the events of a run as they happen, from the first one. It ends after the run has
// ended, and when ctx ends.
func (e *Executor) Events(ctx context.Context, account, stateKey string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for event, err := range e.parts.Executor.FollowEvents(ctx, account, stateKey, storeport.Event{}) {
			if !yield(Event{Number: event.Seq, Kind: string(event.Kind), Request: event.Interrupt, At: event.At}, err) {
				return
			}
		}
	}
}
