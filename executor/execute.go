package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// settleTimeout is how long writing down the end of an execution may take after everything else is over.
const settleTimeout = 30 * time.Second

// flight is an execution in this process that a caller may wait for.
type flight struct {
	done    chan struct{}
	outcome fermata.Outcome // set when it is done; nil if the execution was not finished, or did not apply all decisions
}

// atHand is what the caller has already read of a run that is executed. What is nil is read from the store when it is needed.
type atHand struct {
	dossier *dossier
	state   *store.Checkpoint // which must not be changed
}

// launch executes a claimed run in the background, however long the caller's context lasts. It returns nil if the executor was stopped since the run
// was claimed; the run is handed back then, so that another process can take it at once.
func (e *Executor) launch(ctx context.Context, work *store.Work, known atHand) *flight {
	f := &flight{done: make(chan struct{})}
	if e.begins(func() {
		defer close(f.done)
		f.outcome = e.execute(work, known)
	}) {
		return f
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = e.release(lasting, work.Lease, store.Release{})
	return nil
}

func (e *Executor) release(ctx context.Context, lease store.Lease, how store.Release) error {
	err := e.store.Release(ctx, lease, how)
	if err != nil && !errors.Is(err, store.ErrFenced) {
		e.config.Log.Warn("a run could not be handed back; its lease will end", "account", lease.Account, "run", lease.Run)
	}
	return err
}

// begins calls work in the background and returns true, unless the executor was stopped.
func (e *Executor) begins(work func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.work.Go(work)
	}
	return !e.stopped
}

// follow executes the run after a decision, if this process owns the run now. A repeated decision claims the run if nobody else has: the process that
// recorded the decision may have died.
func (e *Executor) follow(ctx context.Context, l *looked, request Request, receipt store.Receipt) *flight {
	switch {
	case receipt.Work != nil:
		return e.launch(ctx, receipt.Work, atHand{dossier: l.dossier, state: l.stateFor(receipt.Work)})
	case receipt.Replayed:
		return e.claim(ctx, l.Run, request)
	}
	return nil // the owner of the run sees the decision when the run comes to rest
}

// claim takes the run that was decided on, if nobody else has. It returns the execution only if that applies this decision: if the run has come
// further meanwhile, the execution applies a later decision, and its outcome is not the answer to this one.
func (e *Executor) claim(ctx context.Context, run store.Run, request Request) *flight {
	if e.keepOwn(ctx) != nil {
		return nil
	}
	work, err := e.store.Claim(ctx, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease, Account: run.Account, Run: run.ID})
	if err != nil || work == nil {
		return nil // a worker finds it
	}
	flight := e.launch(ctx, work, atHand{})
	for _, i := range work.Decided {
		if i.ResumeID == request.ResumeID && i.By == request.Actor {
			return flight
		}
	}
	return nil
}

// execute executes a claimed run until it comes to rest, and saves the result. It returns nil if that could not be finished; the run is tried again
// then, from its last saved state.
func (e *Executor) execute(work *store.Work, known atHand) fermata.Outcome {
	ctx, cancel := context.WithCancel(e.life)
	defer cancel()
	defer e.stats.begin(work)()
	stop := e.renew(ctx, cancel, work.Lease)
	defer stop() // coming to rest may take longer than a lease, too
	c, state := &filing{run: work.Run}, e.newDraft(work, known.state)
	result, span, err := e.attempt(ctx, work, c, known.dossier, state)
	end, broken := state.close() //mutate:heartbeat-until-settled
	var outcome fermata.Outcome
	if err == nil {
		err = broken
	}
	if err == nil {
		outcome, err = e.settle(ctx, work, c, result, end)
	}
	if err == nil {
		e.traceWaits(span, work, c.dossier, result.Applied)
	}
	traceOutcome(span, outcome, err)
	e.stats.ended(work, result.Applied, err)
	if err == nil {
		return outcome
	}
	fenced := errors.Is(err, store.ErrFenced)
	if !fenced {
		e.handBack(ctx, work, end.sealed(), err) //mutate:hand-back-after-error
	}
	// Whoever takes over goes on from what is saved. The error may hold data of the run, so only its class is logged.
	e.config.Log.Warn("an execution was not finished", "account", work.Run.Account, "run", work.Run.ID, "attempt", work.Run.Attempts, "fenced", fenced, "why", className(err))
	return nil
}

// attempt calls the provider, after the dossier was read, within the span of the execution.
func (e *Executor) attempt(ctx context.Context, work *store.Work, c *filing, known *dossier, state *draft) (provider.Result, trace.Span, error) {
	if known == nil {
		d, err := e.dossierOf(ctx, work.Run.Account, work.Run.ID)
		if err != nil {
			return provider.Result{}, noop.Span{}, err
		}
		known = &d
	}
	c.dossier = *known
	ctx, span := e.traceExecution(ctx, work, c.dossier)
	result, err := e.provide(ctx, work, c, state)
	return result, span, err
}

// provide hands the run, its input and the new answers to the provider.
func (e *Executor) provide(ctx context.Context, work *store.Work, c *filing, state *draft) (result provider.Result, err error) {
	defer safely.Recover(&err) //mutate:provider-panic-recovered
	run := work.Run
	if run.Attempts >= e.config.MaxAttempts { //mutate:max-attempts
		return result, provider.ErrGiveUp // perhaps the run itself makes processes crash
	}
	p, err := e.providerOf(run)
	if err != nil {
		return result, err
	}
	x := provider.Execution{Owner: &owner{executor: e, lease: work.Lease, filing: c, state: state}, Policy: e.rules(run, c.dossier, state), Attempt: run.Attempts, Report: e.live.reporter(run)}
	if x.Run, err = e.runOf(run, state); err != nil {
		return result, err
	}
	if x.Input, err = e.open(run.Account, store.SealedInput, run.ID, run.Input); err != nil {
		return result, err
	}
	for _, i := range work.Decided {
		answer, err := e.answerOf(ctx, i)
		if err != nil {
			return result, err
		}
		x.Answers = append(x.Answers, answer)
	}
	return p.Execute(ctx, x)
}

// answerOf is what became of a question, as the provider is told.
func (e *Executor) answerOf(ctx context.Context, i store.Interrupt) (answer provider.Answer, err error) {
	//mutate:expiry-reaches-provider
	answer = provider.Answer{Interrupt: questionID(i.ID), Expired: i.Verdict == store.Expired, By: i.By, At: i.At}
	since, err := e.settledSince(ctx, i)
	if err != nil {
		return answer, err
	}
	if since != nil {
		answer.Data, answer.Expired = since, false
		return answer, nil
	}
	answer.Data, err = e.open(i.Account, store.SealedAnswer, i.ID, i.Answer)
	return answer, err
}

// runOf is a run as its provider sees it.
func (e *Executor) runOf(run store.Run, state store.Checkpoints) (provider.Run, error) {
	ref, err := e.open(run.Account, store.SealedRef, run.ID, run.Ref)
	return provider.Run{Account: run.Account, ID: run.ID, StateKey: run.StateKey, Ref: string(ref), Graph: run.Graph, State: state}, err
}

// stateOf is for reading the state of runs that are not being executed here. It has no fence.
func (e *Executor) stateOf() *sealedState { return &sealedState{e.store, e} }

// settle ends the execution in the store: the outcome, the last changes of the state, and which decisions were applied. The state of a completed run is
// deleted if the provider says that the outcome has all of it.
func (e *Executor) settle(ctx context.Context, work *store.Work, c *filing, result provider.Result, end ending) (outcome fermata.Outcome, err error) {
	defer safely.Recover(&err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	rest := store.Rest{Status: store.Waiting}
	//mutate:checkpoint-dropped-if-spent
	if done, over := result.Rest.(provider.Completed); over && done.Spent {
		rest.State = end.spent
	} else {
		rest.State = end.sealed() //mutate:settle-saves-buffer
	}
	for _, i := range work.Decided {
		if slices.Contains(result.Applied, questionID(i.ID)) { //mutate:applied-by-provider
			rest.Applied = append(rest.Applied, i.ID)
		}
	}
	outcome, err = e.rest(ctx, work, c, result, rest)
	for try := 0; errors.Is(err, store.ErrStale) && backOff(ctx, try) == nil; try++ { // or people did something
		c.maybeAsked = true
		outcome, err = e.rest(ctx, work, c, result, rest)
	}
	if err == nil && len(rest.Applied) < len(work.Decided) {
		return nil, nil // a decision was not applied yet: this outcome is not the answer to it
	}
	return outcome, err
}

// rest is one try to write the outcome. It returns ErrStale if what the run asks was asked before, or people changed a request meanwhile.
func (e *Executor) rest(ctx context.Context, work *store.Work, c *filing, result provider.Result, rest store.Rest) (fermata.Outcome, error) {
	run := work.Run
	c = &filing{run: run, dossier: c.dossier, maybeAsked: c.maybeAsked} // nothing that was read or filed for the last try counts
	outcome, err := e.came(ctx, c, result.Rest, &rest)
	if err != nil {
		return nil, err
	}
	switch outcome.(type) {
	case fermata.Completed:
		rest.Status = store.Completed
	case fermata.Failed:
		rest.Status, rest.Open, c.Beside = store.Failed, nil, c.stands
	case fermata.NeedsInput:
	}
	if err := e.withdrawUnasked(ctx, c, rest); err != nil {
		return nil, err
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	if !rest.Status.Alive() {
		if err := c.line(theSystem, c.place(), audit.RunEnded{Status: string(rest.Status), Outcome: c.digest(string(data))}); err != nil {
			return nil, err
		}
	}
	rest.Outcome, rest.Beside = e.seal(run.Account, store.SealedOutcome, run.ID, data), c.Beside
	status, err := e.store.Rest(ctx, work.Lease, rest)
	if status == store.Ready {
		e.nudge()
	}
	return outcome, err
}

// withdrawUnasked withdraws the requests of questions that the run asked when it came to rest last, and asks no longer.
func (e *Executor) withdrawUnasked(ctx context.Context, c *filing, rest store.Rest) error {
	before, err := e.lastOpen(c.run)
	if err != nil {
		return err
	}
	var gone []string
	for _, known := range before {
		still := slices.ContainsFunc(rest.Open, func(n store.NewInterrupt) bool { return n.ID == known.ID })
		if !still && !slices.Contains(rest.Applied, known.ID) {
			gone = append(gone, known.ID)
		}
	}
	return e.withdraw(ctx, c, gone, "no longer asked")
}

// came is the outcome that a provider's result means for those outside. If the run waits, its questions are added to rest.
func (e *Executor) came(ctx context.Context, c *filing, came provider.Rest, rest *store.Rest) (fermata.Outcome, error) {
	run := c.run
	switch r := came.(type) {
	case provider.Completed:
		return fermata.Completed{Run: run.ID, Content: r.Content, Output: r.Output, Usage: r.Usage, FinishReason: r.FinishReason}, nil
	case provider.Failed:
		return failed(run, r.Code, r.Message), nil
	case provider.Waiting:
		if len(r.Questions) == 0 {
			return failed(run, badQuestion, "the run waits, and nobody knows for what"), nil
		}
		if err := e.tellTime(ctx, c); err != nil {
			return nil, err
		}
		return e.ask(ctx, c, r.Questions, rest)
	}
	return failed(run, "bad_provider", "the provider came back with nothing"), nil
}

func failed(run store.Run, code, message string) fermata.Failed {
	return fermata.Failed{Run: run.ID, Code: code, Message: message}
}

// handBack releases a run whose execution could not be finished, so that it is tried again, here or elsewhere, after a delay that grows with the
// attempts. last is what of its state was not saved yet. After a stop there is no delay. The time to settle may be over, so it has its own.
func (e *Executor) handBack(ctx context.Context, work *store.Work, last *store.Save, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if last != nil { //mutate:hand-back-saves-buffer
		key := store.Key{Account: work.Run.Account, Run: work.Run.ID}
		if _, err := e.store.Fenced(work.Lease).Save(ctx, key, last.Base, last.Delta); err != nil {
			e.config.Log.Warn("what a run did last could not be saved; it is done again", "account", work.Run.Account, "run", work.Run.ID)
		}
	}
	release := store.Release{Delay: afterAttempts(work.Run.Attempts)}
	later, hasTime := errors.AsType[*provider.RetryError](why)
	switch {
	case errors.Is(why, provider.ErrGiveUp):
		release = e.park(ctx, work)
	case e.life.Err() != nil:
		release.Delay = 0
	case hasTime:
		release.Delay = later.After
	}
	if err := e.release(ctx, work.Lease, release); err == nil && release.Park {
		e.parked(work.Run, why)
	}
}

// afterAttempts is how long a run rests that was tried so often before.
func afterAttempts(attempts int) time.Duration {
	return min(time.Second<<min(attempts, 10), 5*time.Minute)
}
