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
	"github.com/fermata-go/fermata/executor/internal/background"
	"github.com/fermata-go/fermata/executor/internal/ids"
	"github.com/fermata-go/fermata/executor/internal/retry"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// execution is an execution in this process that a caller may wait for.
type execution struct {
	done    chan struct{}
	outcome fermata.Outcome // set when it is done; nil if the execution was not finished, or did not apply all decisions
}

// preloaded is what the caller has already read of a run that is executed. What is nil is read from the store when it is needed.
type preloaded struct {
	meta  *runMeta
	input json.RawMessage   // in the clear
	state *store.Checkpoint // which must not be changed
}

// launch executes a claimed run in the background, however long the caller's context lasts. It returns nil if the executor was stopped since the run
// was claimed; the run is handed back then, so that another process can take it at once.
func (e *Executor) launch(ctx context.Context, work *store.ClaimedRun, known preloaded) *execution {
	f := &execution{done: make(chan struct{})}
	if e.background.Go(func() {
		defer close(f.done)
		f.outcome = e.execute(work, known)
	}) {
		return f
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
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

// follow executes the run after a decision, if this process owns the run now. A repeated decision claims the run if nobody else has: the process that
// recorded the decision may have died.
func (e *Executor) executeAfterDecision(ctx context.Context, run store.Run, resumeID, actor string, receipt store.DecisionReceipt, known preloaded) *execution {
	switch {
	case receipt.Claimed != nil:
		return e.launch(ctx, receipt.Claimed, known)
	case receipt.Replayed:
		return e.claimDecided(ctx, run, resumeID, actor)
	}
	return nil // the owner of the run sees the decision when the run comes to rest
}

// claim takes the run that was decided on, if nobody else has. It returns the execution only if that applies this decision: if the run has come
// further meanwhile, the execution applies a later decision, and its outcome is not the answer to this one.
func (e *Executor) claimDecided(ctx context.Context, run store.Run, resumeID, actor string) *execution {
	if e.renewOverdue(ctx) != nil {
		return nil
	}
	work, err := e.store.Claim(ctx, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease, Account: run.Account, Run: run.ID})
	if err != nil || work == nil {
		return nil // a worker finds it
	}
	execution := e.launch(ctx, work, preloaded{})
	for _, i := range work.Decided {
		if i.ResumeID == resumeID && i.DecidedBy == actor {
			return execution
		}
	}
	return nil
}

// execute executes a claimed run until it comes to rest, and saves the result. It returns nil if that could not be finished; the run is tried again
// then, from its last saved state.
func (e *Executor) execute(work *store.ClaimedRun, known preloaded) fermata.Outcome {
	ctx, cancel := context.WithCancel(e.background.Ctx)
	defer cancel()
	defer e.stats.NoteStarted(work)()
	stop := e.keepLease(ctx, cancel, work.Lease)
	defer stop() // coming to rest may take longer than a lease, too
	state := e.newDraft(work, known.state)
	result, meta, span, err := e.runProvider(ctx, work, known, state)
	end, broken := state.close() //mutate:heartbeat-until-settled
	var outcome fermata.Outcome
	if err == nil {
		err = broken
	}
	if err == nil {
		outcome, err = e.commitExecution(ctx, work, meta, result, end)
	}
	if err == nil {
		e.traceWaits(span, work, meta, result.Applied)
	}
	traceOutcome(span, outcome, err)
	e.stats.NoteEnded(work, result.Applied, err)
	if err == nil {
		return outcome
	}
	fenced := errors.Is(err, store.ErrFenced)
	if !fenced {
		e.releaseUnfinished(ctx, work, end.unsaved, err) //mutate:hand-back-after-error
	}
	// Whoever takes over goes on from what is saved. The error may hold data of the run, so only its class is logged.
	e.config.Log.Warn("an execution was not finished", "account", work.Run.Account, "run", work.Run.ID, "attempt", work.Run.Attempts, "fenced", fenced, "why", background.ErrorClass(err))
	return nil
}

// attempt calls the provider, after the dossier was read, within the span of the execution.
func (e *Executor) runProvider(ctx context.Context, work *store.ClaimedRun, known preloaded, state *checkpointBuffer) (provider.Result, runMeta, trace.Span, error) {
	if known.meta == nil {
		d, err := e.metaOf(ctx, work.Run.Account, work.Run.ID)
		if err != nil {
			return provider.Result{}, runMeta{}, noop.Span{}, err
		}
		known.meta = &d
	}
	ctx, span := e.traceExecution(ctx, work, *known.meta)
	result, err := e.callProvider(ctx, work, known, state)
	return result, *known.meta, span, err
}

// provide hands the run, its input and the new answers to the provider.
func (e *Executor) callProvider(ctx context.Context, work *store.ClaimedRun, known preloaded, state *checkpointBuffer) (result provider.Result, err error) {
	defer recovery.Recover(&err) //mutate:provider-panic-recovered
	run := work.Run
	if run.Attempts >= e.config.MaxAttempts { //mutate:max-attempts
		return result, provider.ErrPark // perhaps the run itself makes processes crash
	}
	p, err := e.providerOf(run)
	if err != nil {
		return result, err
	}
	x := provider.Execution{Owner: &executionOwner{executor: e, lease: work.Lease, tx: newTx(run, *known.meta, time.Time{}), state: state}, Policy: e.executionPolicy(run, *known.meta, state.flush), Attempt: run.Attempts, Report: e.progress.Reporter(run)}
	if x.Run, err = e.providerRun(run, state); err != nil {
		return result, err
	}
	if x.Input = known.input; x.Input == nil {
		if x.Input, err = e.store.Input(run); err != nil {
			return result, err
		}
	}
	for _, i := range work.Decided {
		answer, err := e.providerAnswer(ctx, i)
		if err != nil {
			return result, err
		}
		x.Answers = append(x.Answers, answer)
	}
	return p.Execute(ctx, x)
}

// answerOf is what became of a question, as the provider is told.
func (e *Executor) providerAnswer(ctx context.Context, i store.Interrupt) (answer provider.Answer, err error) {
	//mutate:expiry-reaches-provider
	answer = provider.Answer{InterruptID: ids.ProviderID(i.ID), Expired: i.Verdict == store.VerdictExpire, By: i.DecidedBy, At: i.DecidedAt}
	since, err := e.answerFromLedger(ctx, i)
	if err != nil {
		return answer, err
	}
	if since != nil {
		answer.Data, answer.Expired = since, false
		return answer, nil
	}
	answer.Data, err = e.store.Answer(i)
	return answer, err
}

// runOf is a run as its provider sees it.
func (e *Executor) providerRun(run store.Run, state store.Checkpoints) (provider.Run, error) {
	ref, err := e.store.Ref(run)
	return provider.Run{Account: run.Account, ID: run.ID, StateKey: run.StateKey, Ref: string(ref), Graph: run.Graph, State: state}, err
}

// settle ends the execution in the store: the outcome, the last changes of the state, and which decisions were applied. The state of a completed run is
// deleted if the provider says that the outcome has all of it.
func (e *Executor) commitExecution(ctx context.Context, work *store.ClaimedRun, meta runMeta, result provider.Result, end finalState) (outcome fermata.Outcome, err error) {
	defer recovery.Recover(&err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	rest := store.ExecutionEnd{Status: store.StatusWaiting}
	//mutate:checkpoint-dropped-if-spent
	if done, over := result.Outcome.(provider.Completed); over && done.DiscardState {
		rest.Checkpoint = end.drop
	} else {
		rest.Checkpoint = end.unsaved //mutate:settle-saves-buffer
	}
	for _, i := range work.Decided {
		if slices.Contains(result.Applied, ids.ProviderID(i.ID)) { //mutate:applied-by-provider
			rest.Applied = append(rest.Applied, i.ID)
		}
	}
	outcome, err = e.tryCommit(ctx, work, meta, result, rest, false)
	for try := 0; errors.Is(err, store.ErrStale) && retry.BackOff(ctx, try) == nil; try++ { // or people did something
		outcome, err = e.tryCommit(ctx, work, meta, result, rest, true)
	}
	if err == nil && len(rest.Applied) < len(work.Decided) {
		return nil, nil // a decision was not applied yet: this outcome is not the answer to it
	}
	return outcome, err
}

// rest is one try to write the outcome. It returns ErrStale if what the run asks was asked before, or people changed a request meanwhile.
func (e *Executor) tryCommit(ctx context.Context, work *store.ClaimedRun, meta runMeta, result provider.Result, rest store.ExecutionEnd, retried bool) (fermata.Outcome, error) {
	run := work.Run
	c := newTx(run, meta, time.Time{}) // nothing that was read or added for the last try counts
	outcome, onFailure, err := e.toOutcome(ctx, c, result.Outcome, &rest, retried)
	if err != nil {
		return nil, err
	}
	switch outcome.(type) {
	case fermata.Completed:
		rest.Status = store.StatusCompleted
	case fermata.Failed:
		rest.Status, rest.Open, c.Writes = store.StatusFailed, nil, onFailure
	case fermata.NeedsInput:
	}
	if err := e.withdrawDropped(ctx, c, rest); err != nil {
		return nil, err
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	if !rest.Status.Active() {
		if err := c.addAudit(systemActor, c.auditPlace(), audit.RunEnded{Status: string(rest.Status), Outcome: c.digest(string(data))}); err != nil {
			return nil, err
		}
	}
	rest.Outcome, rest.Writes = data, c.Writes
	status, err := e.store.EndExecution(ctx, work.Lease, rest)
	if status == store.StatusReady {
		e.wakeWorker()
	}
	return outcome, err
}

// withdrawUnasked withdraws the requests of questions that the run asked when it came to rest last, and asks no longer.
func (e *Executor) withdrawDropped(ctx context.Context, c *unitOfWork, rest store.ExecutionEnd) error {
	before, err := e.lastOpenInterrupts(c.run)
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
	return e.withdrawRequests(ctx, c, gone, "no longer asked")
}

// came is the outcome that a provider's result means for those outside. If the run waits, its questions are added to rest.
func (e *Executor) toOutcome(ctx context.Context, c *unitOfWork, came provider.Outcome, rest *store.ExecutionEnd, retried bool) (outcome fermata.Outcome, onFailure store.Writes, err error) {
	run := c.run
	switch r := came.(type) {
	case provider.Completed:
		return fermata.Completed{Run: run.ID, Content: r.Content, Output: r.Output, Usage: r.Usage, FinishReason: r.FinishReason}, onFailure, nil
	case provider.Failed:
		return failedOutcome(run, r.Code, r.Message), onFailure, nil
	case provider.Waiting:
		if len(r.Interrupts) == 0 {
			return failedOutcome(run, codeBadQuestion, "the run waits, and nobody knows for what"), onFailure, nil
		}
		if err := e.setTime(ctx, c); err != nil {
			return nil, onFailure, err
		}
		return e.publishQuestions(ctx, c, r.Interrupts, rest, retried)
	}
	return failedOutcome(run, "bad_provider", "the provider came back with nothing"), onFailure, nil
}

func failedOutcome(run store.Run, code, message string) fermata.Failed {
	return fermata.Failed{Run: run.ID, Code: code, Message: message}
}

// handBack releases a run whose execution could not be finished, so that it is tried again, here or elsewhere, after a delay that grows with the
// attempts. last is what of its state was not saved yet. After a stop there is no delay. The time to settle may be over, so it has its own.
func (e *Executor) releaseUnfinished(ctx context.Context, work *store.ClaimedRun, last *store.CheckpointSave, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	if last != nil { //mutate:hand-back-saves-buffer
		key := store.Key{Account: work.Run.Account, Run: work.Run.ID}
		if _, err := e.store.Fenced(work.Lease).Save(ctx, key, last.BaseVersion, last.Delta); err != nil {
			e.config.Log.Warn("what a run did last could not be saved; it is done again", "account", work.Run.Account, "run", work.Run.ID)
		}
	}
	release := store.Release{Delay: retry.DelayAfter(work.Run.Attempts)}
	later, hasTime := errors.AsType[*provider.RetryError](why)
	switch {
	case errors.Is(why, provider.ErrPark):
		release = e.park(ctx, work)
	case e.background.Ctx.Err() != nil:
		release.Delay = 0
	case hasTime:
		release.Delay = later.After
	}
	if err := e.release(ctx, work.Lease, release); err == nil && release.Park {
		e.noteParked(work.Run, why)
	}
}
