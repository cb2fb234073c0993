package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/tracing"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Preloaded is what the caller has already read of a run that is executed. Nil fields are read
// from the store when they are needed.
type Preloaded struct {
	Meta  *docs.RunMeta
	input json.RawMessage   // in the clear
	State *store.Checkpoint // which must not be changed
}

// launch executes a claimed run in the background, independent of the caller's context. It returns
// nil if the executor was stopped since the run was claimed; the run is released then, so that
// another process can take it at once.
func (w *Worker) launch(ctx context.Context, work *store.ClaimedRun, known Preloaded) *await.Execution {
	f := &await.Execution{Done: make(chan struct{})}
	if w.background.Go(func() {
		defer close(f.Done)
		f.Outcome = w.execute(work, known)
	}) {
		return f
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	_ = w.release(lasting, work.Lease, store.Release{})
	return nil
}

func (w *Worker) release(ctx context.Context, lease store.Lease, how store.Release) error {
	err := w.store.Release(ctx, lease, how)
	if err != nil && !errors.Is(err, store.ErrFenced) {
		w.config.Log.Warn("run not released; waiting for its lease to expire", "account", lease.Account, "run", lease.Run)
	}
	return err
}

// ExecuteAfterDecision executes the run after a decision, if this process owns the run now. A
// repeated decision claims the run if it has no owner: the process that recorded the decision may
// have failed.
func (w *Worker) ExecuteAfterDecision(ctx context.Context, run store.Run, resumeID, actor string, receipt store.DecisionReceipt, known Preloaded) *await.Execution {
	switch {
	case receipt.Claimed != nil:
		return w.launch(ctx, receipt.Claimed, known)
	case receipt.Replayed:
		return w.claimDecided(ctx, run, resumeID, actor)
	}
	return nil // the owner of the run sees the decision when its execution ends
}

// claimDecided claims a decided run without an owner. It returns the execution only if that applies
// this decision: if the run has advanced since, the execution applies a later decision, and its
// outcome is not the answer to this one.
func (w *Worker) claimDecided(ctx context.Context, run store.Run, resumeID, actor string) *await.Execution {
	if w.RenewOverdue(ctx) != nil {
		return nil
	}
	work, err := w.store.Claim(ctx, store.Claim{Owner: w.config.Owner, Lease: w.config.Lease, Account: run.Account, Run: run.ID})
	if err != nil || work == nil {
		return nil // a worker finds it
	}
	execution := w.launch(ctx, work, Preloaded{})
	for _, i := range work.Decided {
		if i.ResumeID == resumeID && i.DecidedBy == actor {
			return execution
		}
	}
	return nil
}

// execute executes a claimed run until it ends or waits, and saves the result. It returns nil if
// that could not be finished; the run is tried again then, from its last saved state.
func (w *Worker) execute(work *store.ClaimedRun, known Preloaded) fermata.Outcome {
	ctx, cancel := context.WithCancel(w.background.Ctx)
	defer cancel()
	stop := w.keepLease(ctx, cancel, work.Lease)
	defer stop() // coming to rest may take longer than a lease, too
	leave := w.prepare(ctx, work)
	if leave == nil {
		return nil
	}
	defer leave()
	defer w.stats.NoteStarted(work)()
	state := w.newCheckpointBuffer(work, known.State)
	var answers collection
	result, meta, span, err := w.runProvider(ctx, work, known, state, &answers)
	end, broken := state.close() //mutate:heartbeat-until-settled
	var outcome fermata.Outcome
	if err == nil {
		err = broken
	}
	if err == nil {
		outcome, err = w.commitExecution(ctx, work, meta, result, end, &answers)
	}
	if err == nil {
		w.tracing.TraceWaits(span, work, meta, result.Applied)
	}
	tracing.TraceOutcome(span, outcome, err)
	w.stats.NoteEnded(work, result.Applied, err)
	if err == nil {
		return outcome
	}
	fenced := errors.Is(err, store.ErrFenced)
	if !fenced {
		w.releaseUnfinished(ctx, work, end.unsaved, err) //mutate:hand-back-after-error
	}
	// The next owner continues from the saved state. The error may hold data of the run, so only
	// its class is logged.
	w.config.Log.Warn("execution not finished", "account", work.Run.Account, "run", work.Run.ID, "attempt", work.Run.Attempts, "fenced", fenced, "why", background.ErrorClass(err))
	return nil
}

// prepare decides whether a claimed run is executed now, and waits until it may be. leave must be
// called at the end of the execution. It is nil if the run is not executed now; then the run was
// released or parked.
func (w *Worker) prepare(ctx context.Context, work *store.ClaimedRun) (leave func()) {
	v, err := w.assessCrashes(ctx, work)
	if err == nil && v.park == nil && v.failures >= w.config.MaxAttempts { //mutate:max-attempts
		v.park = &parkReason{codeTooManyAttempts, fmt.Sprintf("the run was attempted %d times without success", v.failures)}
	}
	switch {
	case err != nil:
	case v.park != nil:
		err = v.park
	case v.delay > 0:
		w.releaseLater(ctx, work, v.delay)
		return nil
	default:
		leave, err = w.admit(ctx, work, v)
	}
	switch {
	case err == nil:
		return leave
	case errors.Is(err, errBusy):
		w.releaseLater(ctx, work, w.config.Lease)
	case !errors.Is(err, store.ErrFenced):
		w.releaseUnfinished(ctx, work, nil, err)
	}
	return nil
}

// releaseLater releases a run that was not executed.
func (w *Worker) releaseLater(ctx context.Context, work *store.ClaimedRun, delay time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	_ = w.release(ctx, work.Lease, store.Release{Delay: delay})
}

// runProvider calls the provider, after the metadata were read, within the span of the execution.
func (w *Worker) runProvider(ctx context.Context, work *store.ClaimedRun, known Preloaded, state *checkpointBuffer, answers *collection) (provider.Result, docs.RunMeta, trace.Span, error) {
	if known.Meta == nil {
		d, err := w.docs.MetaOf(ctx, work.Run.Account, work.Run.ID)
		if err != nil {
			return provider.Result{}, docs.RunMeta{}, noop.Span{}, err
		}
		known.Meta = &d
	}
	ctx, span := w.tracing.TraceExecution(ctx, work, *known.Meta)
	result, err := w.callProvider(ctx, work, known, state, answers)
	return result, *known.Meta, span, err
}

// callProvider hands the run, its input and the new answers to the provider. For a provider without
// partial resume it collects the answers until there are all.
func (w *Worker) callProvider(ctx context.Context, work *store.ClaimedRun, known Preloaded, state *checkpointBuffer, answers *collection) (result provider.Result, err error) {
	defer recovery.Recover(&err) //mutate:provider-panic-recovered
	run := work.Run
	p, err := w.providers.Of(run)
	if err != nil {
		return result, err
	}
	x := provider.Execution{Owner: &executionOwner{worker: w, lease: work.Lease, tx: txn.New(run, *known.Meta, time.Time{}), state: state}, Policy: w.governor.ExecutionPolicy(run, *known.Meta, state.flush), Attempt: run.Attempts, EndUser: known.Meta.EndUser, Report: w.progress.Reporter(run)}
	if x.Run, err = w.providers.RunView(run, state); err != nil {
		return result, err
	}
	if x.Input = known.input; x.Input == nil {
		if x.Input, err = w.store.Input(run); err != nil {
			return result, err
		}
	}
	for _, i := range work.Decided {
		answer, err := w.providerAnswer(ctx, i)
		if err != nil {
			return result, err
		}
		x.Answers = append(x.Answers, answer)
	}
	if collects(p) {
		if err := answers.load(ctx, w.docs, run); err != nil {
			return result, err
		}
		if result, waits, err := w.waitsForOthers(run, x.Answers); err != nil || waits {
			answers.add(x.Answers)
			return result, err
		}
		x.Answers = slices.Concat(answers.answers, x.Answers)
	}
	result, err = p.Execute(ctx, x)
	if err != nil {
		return result, err
	}
	answers.delivered(result.Applied)
	return w.continueByRule(ctx, p, x, run, *known.Meta, state.flush, result, answers)
}

// providerAnswer returns the answer to an interrupt, as the provider gets it.
func (w *Worker) providerAnswer(ctx context.Context, i store.Interrupt) (answer provider.Answer, err error) {
	//mutate:expiry-reaches-provider
	answer = provider.Answer{InterruptID: ids.ProviderID(i.ID), Expired: i.Verdict == store.VerdictExpire}
	request, err := w.decidedRequest(ctx, i)
	if err != nil {
		return answer, err
	}
	by := docs.Attestation(i, request)
	answer.By, answer.At, answer.Auth, answer.Rule = by.By, by.At, by.Auth, by.Rule
	since, err := w.requests.AnswerFromLedger(ctx, i)
	if err != nil {
		return answer, err
	}
	if since != nil {
		answer.Data, answer.Expired = since, false
		return answer, nil
	}
	if answer.Expired {
		decided, err := w.requests.DecidedByClock(ctx, i)
		if err != nil || decided != nil {
			return answerByClock(answer, i.Kind, decided), err
		}
	}
	if answer.Data, err = w.store.Answer(i); err == nil {
		answer.Data, answer.Refusal, err = docs.ReadAnswer(i, request, answer.Data)
	}
	return answer, err
}

// decidedRequest returns the request that people decided: it knows all whose votes counted, and how
// they were authenticated. It is nil without a decision.
func (w *Worker) decidedRequest(ctx context.Context, i store.Interrupt) (*desk.Request, error) {
	if i.Source != store.SourcePerson {
		return nil, nil
	}
	known, err := w.docs.Request(ctx, i.Account, i.ID)
	if err != nil || known == nil {
		return nil, err
	}
	return &known.Request, nil
}

// answerByClock returns the answer that a rule gives at the deadline: a rejection, or the default
// answer of the question. It is the answer unchanged if nothing was decided.
func answerByClock(answer provider.Answer, kind string, decided *docs.ClockDecision) provider.Answer {
	switch {
	case decided == nil:
		return answer
	case decided.Rejection == nil:
		answer.Data = decided.Answer
	case kind == fermata.Approval.Name():
		answer.Data = decided.Answer
	default:
		answer.Refusal = &fermata.Refusal{Decision: *decided.Rejection}
	}
	answer.Expired, answer.By = false, desk.ClockName
	return answer
}

// commitExecution ends the execution in the store: the outcome, the last changes of the state, and
// which decisions were applied. The state of a completed run is deleted if the provider says that
// the outcome has all of it.
func (w *Worker) commitExecution(ctx context.Context, work *store.ClaimedRun, meta docs.RunMeta, result provider.Result, end finalState, answers *collection) (outcome fermata.Outcome, err error) {
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
	outcome, err = w.tryCommit(ctx, work, meta, result, rest, answers, false)
	// or people did something
	for try := 0; errors.Is(err, store.ErrStale) && retry.BackOff(ctx, try) == nil; try++ {
		outcome, err = w.tryCommit(ctx, work, meta, result, rest, answers, true)
	}
	if err == nil && len(rest.Applied) < len(work.Decided) {
		return nil, nil // a decision was not applied yet: this outcome is not the answer to it
	}
	return outcome, err
}

// tryCommit tries once to write the outcome. It returns ErrStale if an interrupt was published
// before, or people changed a request in the meantime.
func (w *Worker) tryCommit(ctx context.Context, work *store.ClaimedRun, meta docs.RunMeta, result provider.Result, rest store.ExecutionEnd, answers *collection, retried bool) (fermata.Outcome, error) {
	run := work.Run
	c := txn.New(run, meta, time.Time{}) // nothing that was read or added for the last try counts
	outcome, onFailure, err := w.toOutcome(ctx, c, result.Outcome, &rest, retried)
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
	if err := w.addProblem(ctx, c, outcome, result.Outcome); err != nil {
		return nil, err
	}
	if err := answers.addTo(c); err != nil {
		return nil, err
	}
	if err := w.withdrawDropped(ctx, c, rest); err != nil {
		return nil, err
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	if !rest.Status.Active() {
		if err := c.AddAudit(auditrec.SystemActor, c.AuditPlace(), audit.RunEnded{Status: string(rest.Status), Outcome: c.Digest(string(data))}); err != nil {
			return nil, err
		}
	}
	rest.Outcome, rest.Writes = data, c.Writes
	status, err := w.store.EndExecution(ctx, work.Lease, rest)
	if status == store.StatusReady {
		w.WakeWorker()
	}
	return outcome, err
}

// withdrawDropped withdraws the requests of interrupts that the run no longer raises.
func (w *Worker) withdrawDropped(ctx context.Context, c *txn.Tx, rest store.ExecutionEnd) error {
	before, err := w.lastOpenInterrupts(c.Run)
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
	return w.requests.WithdrawRequests(ctx, c, gone, "no longer asked")
}

// toOutcome converts a provider result to the public outcome. If the run waits, its interrupts are
// added to rest. onFailure is written if the outcome is a failure.
func (w *Worker) toOutcome(ctx context.Context, c *txn.Tx, came provider.Outcome, rest *store.ExecutionEnd, retried bool) (outcome fermata.Outcome, onFailure store.Writes, err error) {
	run := c.Run
	switch r := came.(type) {
	case provider.Completed:
		return fermata.Completed{Run: run.ID, Content: r.Content, Output: r.Output, Usage: r.Usage, FinishReason: r.FinishReason}, onFailure, nil
	case provider.Failed:
		return await.FailedOutcome(run, r.Code, r.Message), onFailure, nil
	case provider.Waiting:
		if len(r.Interrupts) == 0 {
			return await.FailedOutcome(run, codeBadQuestion, "provider returned waiting without interrupts"), onFailure, nil
		}
		if err := w.requests.SetTime(ctx, c); err != nil {
			return nil, onFailure, err
		}
		return w.publishInterrupts(ctx, c, r, rest, retried)
	}
	return await.FailedOutcome(run, "bad_provider", "the provider came back with nothing"), onFailure, nil
}

// releaseUnfinished releases a run whose execution could not be finished, so that it is tried again
// after a delay that grows with the attempts. last is the state that was not saved yet. After a
// stop there is no delay. It has its own timeout, because that of the commit may have passed.
func (w *Worker) releaseUnfinished(ctx context.Context, work *store.ClaimedRun, last *store.CheckpointSave, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	if last != nil { //mutate:hand-back-saves-buffer
		key := store.Key{Account: work.Run.Account, Run: work.Run.ID}
		if _, err := w.store.Fenced(work.Lease).Save(ctx, key, last.BaseVersion, last.Delta); err != nil {
			w.config.Log.Warn("last checkpoint not saved; the work will be repeated", "account", work.Run.Account, "run", work.Run.ID)
		}
	}
	if w.background.Ctx.Err() == nil {
		w.recordProblem(ctx, work.Run, why)
	}
	release := store.Release{Delay: retry.DelayAfter(work.Run.Attempts)}
	later, hasTime := errors.AsType[*fermata.RetryError](why)
	switch {
	case errors.Is(why, provider.ErrPark):
		release = w.park(ctx, work)
	case w.background.Ctx.Err() != nil:
		release.Delay = 0
	case hasTime && later.After > 0:
		release.Delay = later.After
	}
	if err := w.release(ctx, work.Lease, release); err == nil && release.Park {
		w.noteParked(work.Run, why)
	}
}
