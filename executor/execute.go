package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// settleTimeout is how long writing down the end of an execution may take after everything else is over.
const settleTimeout = 30 * time.Second

// execute works on a claimed run until it rests, and writes down how that ended.
func (e *Executor) execute(work *store.Work) {
	done := e.begins(work)
	defer done()
	ctx, cancel := context.WithCancel(e.life)
	defer cancel()
	stop := e.renew(ctx, cancel, work.Lease)
	result, err := e.provide(ctx, work)
	stop()
	settle, release := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer release()
	if err == nil {
		err = e.settle(settle, work, result)
	} else if !errors.Is(err, store.ErrFenced) {
		err = errors.Join(err, e.handBack(settle, work))
	}
	if err != nil {
		// Whoever takes over goes on from what is saved. The error may hold what the run works on, so only its kind is told.
		e.config.Log.Warn("an execution was not finished", "run", work.Run.ID, "fenced", errors.Is(err, store.ErrFenced))
	}
}

// begins notes that a run is at work here, for those who wait for it.
func (e *Executor) begins(work *store.Work) (done func()) {
	key := store.Key{Account: work.Lease.Account, Run: work.Lease.Run}
	rest := make(chan struct{})
	e.mu.Lock()
	e.resting[key] = rest
	e.mu.Unlock()
	return func() {
		e.mu.Lock()
		delete(e.resting, key)
		e.mu.Unlock()
		close(rest)
	}
}

// renew keeps the lease for as long as the execution takes, and ends the execution when somebody else has the run.
func (e *Executor) renew(ctx context.Context, cancel context.CancelFunc, lease store.Lease) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(e.config.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := e.config.Runs.Renew(ctx, lease, e.config.Lease); errors.Is(err, store.ErrFenced) {
				cancel()
				return
			}
		}
	}()
	return func() { end(); <-over }
}

// provide lets the provider work.
func (e *Executor) provide(ctx context.Context, work *store.Work) (result provider.Result, err error) {
	defer safely.Recover(&err)
	run := work.Run
	p := e.providers[run.Provider]
	if p == nil {
		return result, fmt.Errorf("%w: this process has no provider %q", ErrUnknownGraph, run.Provider)
	}
	x := provider.Execution{Owner: &owner{e, work.Lease}}
	if x.Run, err = e.runOf(run); err != nil {
		return result, err
	}
	if x.Input, err = e.config.Box.Open(label(run.Account, run.ID, "input"), run.Input); err != nil {
		return result, err
	}
	for _, i := range work.Decided {
		data, err := e.config.Box.Open(label(run.Account, i.ID, "answer"), i.Answer)
		if err != nil {
			return result, err
		}
		x.Answers = append(x.Answers, provider.Answer{Interrupt: i.ID, Data: data})
	}
	return p.Execute(ctx, x)
}

// runOf names the run for its provider.
func (e *Executor) runOf(run store.Run) (provider.Run, error) {
	ref, err := e.config.Box.Open(label(run.Account, run.ID, "ref"), run.Ref)
	return provider.Run{Account: run.Account, ID: run.ID, Ref: string(ref), Graph: run.Graph}, err
}

// label binds a sealed value to its place.
func label(account, id, what string) string { return fmt.Sprintf("%q/%q/%s", account, id, what) }

// settle gives the run back, with what it came to.
func (e *Executor) settle(ctx context.Context, work *store.Work, result provider.Result) error {
	run := work.Run
	rest := store.Rest{Applied: result.Applied}
	var outcome fermata.Outcome
	switch r := result.Rest.(type) {
	case provider.Completed:
		rest.Status = store.Completed
		outcome = fermata.Completed{Run: run.ID, Content: r.Content, Output: r.Output, Usage: r.Usage, FinishReason: r.FinishReason}
	case provider.Failed:
		rest.Status = store.Failed
		outcome = fermata.Failed{Run: run.ID, Code: r.Code, Message: r.Message}
	case provider.Waiting:
		rest.Status = store.Waiting
		waiting := fermata.NeedsInput{Run: run.ID, StateKey: run.StateKey}
		for _, q := range r.Questions {
			shown, err := e.show(run, q)
			if err != nil {
				return err
			}
			rest.Open = append(rest.Open, shown)
			waiting.Interrupts = append(waiting.Interrupts, fermata.OpenInterrupt{ID: q.ID, Address: q.Address, Envelope: q.Envelope, AnswerSchema: q.AnswerSchema})
		}
		outcome = waiting
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return err
	}
	rest.Outcome = e.config.Box.Seal(label(run.Account, run.ID, "outcome"), data)
	status, err := e.config.Runs.Rest(ctx, work.Lease, rest)
	if status == store.Ready {
		e.nudge()
	}
	return err
}

// handBack lets others try: the execution could not be finished, and it is not the run's fault. After a stop they may at once.
func (e *Executor) handBack(ctx context.Context, work *store.Work) error {
	var delay time.Duration
	if e.life.Err() == nil {
		delay = min(time.Second<<min(work.Run.Attempts, 10), 5*time.Minute)
	}
	return e.config.Runs.Release(ctx, work.Lease, delay)
}

// owner is the right to a run, as its provider sees it.
type owner struct {
	executor *Executor
	lease    store.Lease
}

func (o *owner) SetRef(ctx context.Context, ref string) error {
	sealed := o.executor.config.Box.Seal(label(o.lease.Account, o.lease.Run, "ref"), []byte(ref))
	return o.executor.config.Runs.SetRef(ctx, o.lease, sealed)
}

func (o *owner) Checkpoints() store.Checkpoints { return o.executor.config.Runs.Fenced(o.lease) }
