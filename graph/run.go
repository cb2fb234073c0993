package graph

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/store"
)

// Option changes one call of [Flow.Run], [Flow.Resume], [Flow.Inspect] or [Flow.Check].
type Option func(*options)

type options struct {
	store      store.Checkpoints
	account    string
	run        string
	policy     fermata.Policy
	ledger     fermata.Ledger
	saveOnWait bool
	takeOver   bool
	clock      func() time.Time
	modifiers  []StateModifier
	onStep     func(Step) // nil if nobody watches
	answers    map[string]any
	duplicates []string // interrupts that were answered more than once
}

// WithStore keeps the run in a store. Without one a run cannot wait.
func WithStore(s store.Checkpoints) Option { return func(o *options) { o.store = s } }

// WithRun names a new run. The default, and "", is a random id. [Flow.Resume] takes the name as an argument instead.
func WithRun(id string) Option { return func(o *options) { o.run = id } }

// WithAccount says whose run it is. The default is the account "".
func WithAccount(account string) Option { return func(o *options) { o.account = account } }

// WithPolicy is asked by [fermata.Approve]. The default asks a person about everything.
func WithPolicy(p fermata.Policy) Option { return func(o *options) { o.policy = p } }

// WithLedger has the effects that people approve begun in a ledger, beside the run's own journal: see [fermata.Ledger].
func WithLedger(l fermata.Ledger) Option { return func(o *options) { o.ledger = l } }

// WithClock replaces time.Now, for tests.
func WithClock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// SaveOnWait saves the run only when it waits, ends or begins an effect, and not after every step. It is faster, and a crash
// loses what happened since; before the first save there is no run to resume.
func SaveOnWait() Option { return func(o *options) { o.saveOnWait = true } }

// TakeOver resumes a run that is marked as being run. Only for a caller who knows that whoever ran it is dead: if it is not,
// its next save fails and what it did since the last one is done again.
func TakeOver() Option { return func(o *options) { o.takeOver = true } }

// Answer answers one interrupt, like [fermata.ResumeWithData]. Answering one twice in one call is an error.
func Answer(interruptID string, answer any) Option {
	return func(o *options) {
		if o.answers == nil {
			o.answers = make(map[string]any)
		}
		if _, twice := o.answers[interruptID]; twice {
			o.duplicates = append(o.duplicates, interruptID)
		}
		o.answers[interruptID] = answer
	}
}

// StateModifier changes the saved state of a graph before a run goes on. state points to it; at is the address of the graph.
type StateModifier func(at fermata.Address, state any) error

// WithStateModifier is called for the state of each graph that a resumed run goes on with, the outermost first. It can
// change what nodes see; it cannot answer anything, nor change the list that a fan-out is at work on.
func WithStateModifier(m StateModifier) Option {
	return func(o *options) { o.modifiers = append(o.modifiers, m) }
}

// Run starts a run and takes it as far as it gets. It returns the final state; or a [*fermata.InterruptError] if the run
// waits, which [fermata.ExtractInterruptInfo] takes apart and which has the state so far; or an error. After an error the
// run can be resumed.
//
// Called with the context of a node and without a store, it runs as a part of that node's run: what it asks is asked there,
// and when the node is entered again it goes on where it was.
func (fl *Flow[S]) Run(ctx context.Context, input S, list ...Option) (S, error) {
	return typedState[S](fl.run(ctx, &input, list))
}

func (fl *compiled) run(ctx context.Context, input statePtr, list []Option) (statePtr, error) {
	s := newExecution(list)
	if scope := activation.FromContext(ctx); scope != nil && s.store == nil {
		return fl.runInside(ctx, scope.Child(fl.address), input)
	}
	if !utf8.ValidString(s.run) {
		return nil, fmt.Errorf("graph: a run cannot be named %q: it is not UTF-8", s.run)
	}
	if s.run == "" && s.store != nil {
		s.run = ident.Random("run")
	} else if s.store != nil {
		switch _, err := s.store.Load(ctx, s.key()); {
		case err == nil:
			return nil, fmt.Errorf("%w: %s", ErrRunExists, s.run)
		case !errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("graph: run %s: loading: %w", s.run, err)
		}
	}
	_, ctx = fermata.TakeResumeTargets(ctx)
	s.head = head{Format: format, Graph: fl.name, Run: s.run}
	s.begin(nil)
	s.setStatus(StatusRunning, nil)
	state, err := fl.execute(ctx, s, input)
	if s.version == 0 && errors.Is(err, ErrTakenOver) {
		return nil, fmt.Errorf("%w: %s", ErrRunExists, s.run)
	}
	return state, err
}

// Resume goes on with a run: with the answers that the context ([fermata.ResumeWithData]) and the options ([Answer]) carry,
// or with none after a stop, a failure or a crash. Nothing runs if any answer is wrong, unknown or late. What is not
// answered stays as it is. It returns what [Flow.Run] does.
func (fl *Flow[S]) Resume(ctx context.Context, run string, list ...Option) (S, error) {
	return typedState[S](fl.resume(ctx, run, list))
}

func (fl *compiled) resume(ctx context.Context, run string, list []Option) (statePtr, error) {
	s, err := fl.open(ctx, run, list)
	if err != nil {
		return nil, err
	}
	switch {
	case s.head.Status == StatusFinished:
		return nil, fmt.Errorf("%w: %s", ErrFinished, run)
	case s.head.Status == StatusRunning && !s.takeOver: //mutate:no-second-execution
		return nil, fmt.Errorf("%w: %s", ErrRunning, run)
	}
	if err := fl.checkResumable(s.loaded); err != nil { //mutate:waiting-node-exists
		return nil, err
	}
	targets, ctx := fermata.TakeResumeTargets(ctx)
	for id := range targets {
		if _, twice := s.answers[id]; twice {
			s.duplicates = append(s.duplicates, id)
		}
	}
	if len(s.duplicates) > 0 { //mutate:one-answer-per-interrupt
		return nil, &fermata.AnswerError{ID: s.duplicates[0], Err: errors.New("it is answered twice in one call: which one counts?")}
	}
	checked, err := s.checkAnswers(fl, targets, s.answers)
	if err != nil {
		return nil, err
	}
	if err := s.saveAnswers(ctx, checked); err != nil {
		return nil, err
	}
	return fl.execute(ctx, s, nil)
}

// open loads a run of this graph.
func (fl *compiled) open(ctx context.Context, run string, list []Option) (*execution, error) {
	s := newExecution(list)
	if s.run = run; s.store == nil {
		return nil, fmt.Errorf("%w: pass WithStore to say where run %s is kept", ErrNoStore, run)
	}
	saved, err := s.store.Load(ctx, s.key())
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknownRun, run)
	}
	if err != nil {
		return nil, fmt.Errorf("graph: run %s: loading: %w", run, err)
	}
	loaded, err := readCheckpoint(run, saved)
	if err != nil {
		return nil, err
	}
	if loaded.head.Graph != fl.name { //mutate:checkpoint-of-this-graph
		return nil, fmt.Errorf("%w: run %s is of graph %q, not %q", ErrWrongGraph, run, loaded.head.Graph, fl.name)
	}
	if loaded.at("").instance == nil { // without it the run would begin anew
		return nil, fmt.Errorf("%w: run %s: part %q is missing", ErrCorrupt, run, partInstance)
	}
	s.begin(loaded)
	return s, nil
}

// execute takes the outermost frame as far as it gets, and writes down how that ended.
func (fl *compiled) execute(ctx context.Context, s *execution, input statePtr) (statePtr, error) {
	ended := false
	defer func() {
		//mutate:goexit-detected
		if !ended && s.version > 0 { // nobody is left to return to, and nobody runs it any more
			_ = s.saveFailure(ctx, recovery.ErrExited)
		}
	}()
	state, err := fl.advance(ctx, s, input)
	ended = true
	return state, err
}

func (fl *compiled) advance(ctx context.Context, s *execution, input statePtr) (statePtr, error) {
	f, err := fl.instanceAt(s, activation.Instance{Address: fl.address}, input)
	if err != nil && s.loaded == nil {
		return nil, err // noSavedPlace has begun, and nothing is saved
	}
	if err == nil && s.loaded == nil {
		err = f.save(ctx) // from here on nobody else can start a run of this id
	}
	if err == nil {
		err = f.run(ctx)
	}
	if err == nil {
		return fl.finish(ctx, s, f)
	}
	signals, failure := (&activation.Scope{}).Collect(err)
	switch {
	case signals != nil && failure == nil:
		shown, err := fl.stateType.copyValue(f.state)
		if err != nil {
			return nil, s.saveFailure(ctx, err)
		}
		return nil, s.saveWaiting(ctx, fl, shown)
	}
	return nil, s.saveFailure(ctx, failure)
}

func (fl *compiled) finish(ctx context.Context, s *execution, f *instance) (statePtr, error) {
	s.setStatus(StatusFinished, nil)
	if err := s.flush(ctx); err != nil {
		return nil, s.saveFailure(ctx, err)
	}
	return fl.stateType.copyIfShared(f.state)
}

// wait saves the run and only then says that it waits.
func (s *execution) saveWaiting(ctx context.Context, root *compiled, state any) error {
	open := s.openInterrupts(root)
	//mutate:store-required
	if s.store == nil { // the text, not the error itself: nobody must take it for a question that can be answered
		return fmt.Errorf("%w: pass WithStore: %v", ErrNoStore, &fermata.InterruptError{Info: &fermata.InterruptInfo{Run: s.Run(), Interrupts: open}})
	}
	s.setStatus(StatusWaiting, nil)
	if err := s.flush(ctx); err != nil { //mutate:wait-saved-first
		return s.saveFailure(ctx, err)
	}
	return &fermata.InterruptError{
		Info:       &fermata.InterruptInfo{Run: s.Run(), Interrupts: open, State: state},
		BadAnswers: s.badAnswers,
	}
}

// fail writes down that the run stopped or failed, as far as the store lets it.
func (s *execution) saveFailure(ctx context.Context, failure error) error {
	if s.saveErr != nil {
		return failure
	}
	status := StatusFailed
	if errors.Is(failure, ErrStopped) || ctx.Err() != nil {
		status = StatusStopped
	}
	for _, bad := range s.badAnswers {
		failure = errors.Join(failure, bad)
	}
	s.setStatus(status, failure)
	err := s.flush(ctx)
	if _, unsavable := errors.AsType[*fermata.EncodeError](err); unsavable {
		s.discardUnsaved() // what cannot be saved must not keep the news of it from being saved
		s.setStatus(status, failure)
		err = errors.Join(err, s.flush(ctx))
	}
	return errors.Join(failure, err)
}
