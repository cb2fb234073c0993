package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
)

// Option configures one call of [Flow.Run], [Flow.Resume], [Flow.Inspect] or [Flow.Check].
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
	onStep     func(Step)   // nil if there is no observer
	onOutput   func(Output) // nil if there is no observer
	answers    map[string]any
	duplicates []string // interrupts that were answered more than once
}

// WithStore sets the store for the run. A run without a store cannot wait.
func WithStore(s store.Checkpoints) Option { return func(o *options) { o.store = s } }

// WithRun sets the id of a new run. The default, and "", is a random id. [Flow.Resume] takes the id
// as an argument instead; another id there is an error.
func WithRun(id string) Option { return func(o *options) { o.run = id } }

// WithAccount sets the account of the run. The default is "".
func WithAccount(account string) Option { return func(o *options) { o.account = account } }

// WithPolicy sets the policy for [fermata.Approve]. By default a person is asked about every
// action.
func WithPolicy(p fermata.Policy) Option { return func(o *options) { o.policy = p } }

// WithLedger records approved effects in a ledger in addition to the run's journal: see
// [fermata.Ledger].
func WithLedger(l fermata.Ledger) Option { return func(o *options) { o.ledger = l } }

// WithClock replaces time.Now, for tests.
func WithClock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// SaveOnWait saves the run only when it waits, ends or begins an effect, and not after every step.
// It is faster, but a crash loses the work since the last save. Before the first save there is no
// run to resume.
func SaveOnWait() Option { return func(o *options) { o.saveOnWait = true } }

// TakeOver resumes a run that is marked as running. Use it only if the other process is known to be
// dead: if it is not, its next save fails and its work since the last save is repeated.
func TakeOver() Option { return func(o *options) { o.takeOver = true } }

// Answer answers one interrupt, like [fermata.ResumeWithData]. Answering an interrupt twice in one
// call is an error, and so is an answer for [Flow.Run].
func Answer(interruptID string, answer any) Option {
	return func(o *options) {
		if o.answers == nil {
			o.answers = make(map[string]any)
		}
		if _, duplicate := o.answers[interruptID]; duplicate {
			o.duplicates = append(o.duplicates, interruptID)
		}
		o.answers[interruptID] = answer
	}
}

// StateModifier changes the saved state of a graph before a run is resumed. state points to it; at
// is the address of the graph.
type StateModifier func(at fermata.Address, state any) error

// WithStateModifier sets a function that is called for the state of each graph that is resumed,
// outermost first. It can change the state that nodes see. It cannot answer interrupts or change
// the list of an active fan-out.
func WithStateModifier(m StateModifier) Option {
	return func(o *options) { o.modifiers = append(o.modifiers, m) }
}

// Run starts a run and executes it until it ends or waits. It returns the final state, a
// [*fermata.InterruptError] if the run waits (see [fermata.ExtractInterruptInfo]), or another
// error. After an error the run can be resumed.
//
// With the context of a node and without a store, it runs as part of that node's run: its
// interrupts belong to that run, and when the node is entered again it continues.
func (fl *Flow[S]) Run(ctx context.Context, input S, list ...Option) (S, error) {
	return typedState[S](fl.run(ctx, &input, list))
}

func (fl *compiled) run(ctx context.Context, input statePtr, list []Option) (statePtr, error) {
	s := newExecution(list)
	targets, ctx := activation.TakeResumeTargets(ctx)
	if len(targets)+len(s.answers) > 0 {
		return nil, fmt.Errorf("%w: use Resume to answer a run of %s that waits", ErrAnswersForNewRun, fl.name)
	}
	if scope := activation.FromContext(ctx); scope != nil && s.store == nil {
		return fl.runInside(ctx, scope.Child(fl.address), input)
	}
	if err := fl.checkProtectedInput(input); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s.run) {
		return nil, fmt.Errorf("graph: invalid run id %q: not UTF-8", s.run)
	}
	if stopRequested(ctx, stopChannel(ctx)) == ErrStopped {
		return nil, fmt.Errorf("%w before it began", ErrStopped)
	}
	if s.run == "" && s.store != nil {
		s.run = ident.Random("run")
	} else if s.store != nil {
		switch _, err := s.store.Load(ctx, s.key()); {
		case err == nil:
			return nil, fmt.Errorf("%w: %s", ErrRunExists, s.run)
		case !errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("graph: run %s: load: %w", s.run, err)
		}
	}
	s.head = head{Format: format, Graph: fl.name, Run: s.run}
	s.begin(nil)
	s.setStatus(StatusRunning, nil)
	state, err := fl.execute(ctx, s, input)
	if s.version == 0 && errors.Is(err, ErrTakenOver) {
		return nil, fmt.Errorf("%w: %s", ErrRunExists, s.run)
	}
	return state, err
}

// Resume continues a run with the answers in the context ([fermata.ResumeWithData]) and the options
// ([Answer]), or without answers after a stop, a failure or a crash. If any answer is invalid,
// unknown or late, nothing runs. Unanswered interrupts stay open. It returns what [Flow.Run]
// returns.
func (fl *Flow[S]) Resume(ctx context.Context, run string, list ...Option) (S, error) {
	loaded, err := fl.Load(ctx, run, list...)
	if err != nil {
		var zero S
		return zero, err
	}
	return loaded.Resume(ctx)
}

// resume continues a loaded run. An AnswerError means that nothing has run or changed.
func (fl *compiled) resume(ctx context.Context, s *execution) (statePtr, error) {
	run := s.run
	switch {
	case s.head.Status == StatusFinished:
		return nil, fl.finishedError(s)
	case s.head.Status == StatusRunning && !s.takeOver: //mutate:no-second-execution
		return nil, fmt.Errorf("%w: %s", ErrRunning, run)
	}
	if err := fl.checkResumable(s.loaded); err != nil { //mutate:waiting-node-exists
		return nil, err
	}
	targets, ctx := activation.TakeResumeTargets(ctx)
	duplicates := s.duplicates
	for id := range targets {
		if _, duplicate := s.answers[id]; duplicate {
			duplicates = append(slices.Clip(duplicates), id)
		}
	}
	if len(duplicates) > 0 { //mutate:one-answer-per-interrupt
		return nil, &fermata.AnswerError{ID: duplicates[0], Err: errors.New("it is answered twice in one call")}
	}
	checked, err := s.checkAnswers(fl, targets, s.answers)
	if err != nil {
		return nil, err
	}
	if err := fl.callModifiers(s, "", fl.address, checked); err != nil { //mutate:modifiers-before-answers
		return nil, err
	}
	if err := s.saveAnswers(ctx, checked); err != nil {
		return nil, err
	}
	return fl.execute(ctx, s, nil)
}

// finishedError returns the error of a run that has finished, with its final state.
func (fl *compiled) finishedError(s *execution) error {
	state, err := fl.readState(s.loaded, "", nil)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %s", ErrFinished, s.run), err)
	}
	return &FinishedError{Run: s.run, State: fl.stateType.valueOf(state)}
}

// open loads a run of this graph.
func (fl *compiled) open(ctx context.Context, run string, list []Option) (*execution, error) {
	s := newExecution(list)
	if s.run != "" && s.run != run {
		return nil, fmt.Errorf("graph: WithRun(%q) is for a new run; Resume, Load and Inspect take the id as an argument, which is %q", s.run, run)
	}
	if s.run = run; s.store == nil {
		return nil, fmt.Errorf("%w: pass WithStore to load run %s", ErrNoStore, run)
	}
	saved, err := s.store.Load(ctx, s.key())
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknownRun, run)
	}
	if err != nil {
		return nil, fmt.Errorf("graph: run %s: load: %w", run, err)
	}
	loaded, err := readCheckpoint(run, saved)
	if err != nil {
		return nil, err
	}
	if loaded.head.Graph != fl.name { //mutate:checkpoint-of-this-graph
		return nil, fmt.Errorf("%w: run %s belongs to graph %q, not %q", ErrWrongGraph, run, loaded.head.Graph, fl.name)
	}
	if loaded.at("").instance == nil { // without it the run would start from the beginning
		return nil, fmt.Errorf("%w: run %s: part %q is missing", ErrCorrupt, run, partInstance)
	}
	s.begin(loaded)
	return s, nil
}

// execute advances the outermost instance as far as possible and saves the result.
func (fl *compiled) execute(ctx context.Context, exec *execution, input statePtr) (statePtr, error) {
	ended := false
	defer func() {
		//mutate:goexit-detected
		// the goroutine exited (runtime.Goexit): record that the run is not being executed
		if !ended && exec.version > 0 {
			_ = exec.saveFailure(ctx, recovery.ErrExited)
		}
	}()
	state, err := fl.advance(ctx, exec, input)
	ended = true
	return state, err
}

func (fl *compiled) advance(ctx context.Context, exec *execution, input statePtr) (statePtr, error) {
	f, err := fl.instanceAt(exec, activation.Instance{Address: fl.address}, input)
	if err != nil && exec.loaded == nil {
		return nil, err // nothing has begun, and nothing is saved
	}
	if err == nil && exec.loaded == nil {
		err = f.save(ctx) // from here on the run id is taken
	}
	if err == nil {
		err = f.run(ctx)
	}
	if err == nil {
		return fl.finish(ctx, exec, f)
	}
	signals, failure := (&activation.Scope{}).Collect(err)
	switch {
	case signals != nil && failure == nil:
		shown, err := fl.stateType.copyValue(f.state)
		if err != nil {
			return nil, exec.saveFailure(ctx, err)
		}
		return nil, exec.saveWaiting(ctx, fl, shown)
	}
	return nil, fl.withOpen(exec, exec.saveFailure(ctx, failure))
}

// withOpen adds the open interrupts to the error of a failed run: a failure next to a question does
// not hide it.
func (fl *compiled) withOpen(exec *execution, failure error) error {
	if exec.store == nil || exec.saveErr != nil {
		return failure
	}
	open := exec.openInterrupts(fl)
	if len(open) == 0 {
		return failure
	}
	return &fermata.FailedError{Info: &fermata.InterruptInfo{Run: exec.Run(), Interrupts: open}, Err: failure}
}

func (fl *compiled) finish(ctx context.Context, exec *execution, inst *instance) (statePtr, error) {
	exec.setStatus(StatusFinished, nil)
	if err := exec.flush(ctx); err != nil {
		return nil, exec.saveFailure(ctx, err)
	}
	return fl.stateType.copyIfShared(inst.state)
}

// saveWaiting saves the run before it reports that the run waits.
func (exec *execution) saveWaiting(ctx context.Context, root *compiled, state any) error {
	open := exec.openInterrupts(root)
	//mutate:store-required
	if exec.store == nil { // only the text: without a store the interrupts cannot be answered
		return fmt.Errorf("%w: pass WithStore: %v", ErrNoStore, &fermata.InterruptError{Info: &fermata.InterruptInfo{Run: exec.Run(), Interrupts: open}})
	}
	exec.setStatus(StatusWaiting, nil)
	if err := exec.flush(ctx); err != nil { //mutate:wait-saved-first
		return exec.saveFailure(ctx, err)
	}
	return &fermata.InterruptError{
		Info:       &fermata.InterruptInfo{Run: exec.Run(), Interrupts: open, State: state},
		BadAnswers: exec.badAnswers,
	}
}

// saveFailure records that the run stopped or failed, if the store allows it.
func (exec *execution) saveFailure(ctx context.Context, failure error) error {
	if exec.saveErr != nil {
		return failure
	}
	status := StatusFailed
	if errors.Is(failure, ErrStopped) || ctx.Err() != nil {
		status = StatusStopped
	}
	for _, bad := range exec.badAnswers {
		failure = errors.Join(failure, bad)
	}
	exec.setStatus(status, failure)
	err := exec.flush(ctx)
	if _, unsavable := errors.AsType[*fermata.EncodeError](err); unsavable {
		exec.discardUnsaved() // unsavable changes must not prevent saving the failure
		exec.setStatus(status, failure)
		err = errors.Join(err, exec.flush(ctx))
	}
	return errors.Join(failure, err)
}
