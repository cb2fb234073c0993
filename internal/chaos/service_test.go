//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// fermataService is an executor behind the HTTP handler.
type fermataService struct {
	executor *executor.Executor
	store    closableStore
}

// openTimeout is how long a replica waits for an unavailable database at startup.
const openTimeout = time.Minute

func openFermata(config replicaConfig) (service, error) {
	flow, err := newFlow(&outside{url: config.Sink, life: config.Life})
	if err != nil {
		return nil, err
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[order]{}))
	if err != nil {
		return nil, err
	}
	s, e, err := openExecutor(config, p, executor.DeskConfig{})
	if err != nil {
		return nil, err
	}
	e.StartWorkers()
	return &fermataService{executor: e, store: s}, nil
}

// openExecutor retries until the database is available: it may be restarting.
func openExecutor(config replicaConfig, p provider.Provider, d executor.DeskConfig) (s closableStore, e *executor.Executor, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	for {
		if s, err = openStore(ctx, config.Store); err == nil {
			e, err = executor.New(executor.Config{
				Store: s, Providers: []provider.Provider{p}, Sealer: plaintextSealer{}, Lease: config.Lease, Workers: 3, Poll: 50 * time.Millisecond,
				Wait: 400 * time.Millisecond, RequestTimeout: config.Timeout, Desk: d, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			})
			if err == nil {
				return s, e, nil
			}
			err = errors.Join(err, s.Close())
		}
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (f *fermataService) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_ = f.executor.Stop(ctx)
	_ = f.store.Close()
}

func (f *fermataService) start(ctx context.Context, r request) (answer, error) {
	input, err := json.Marshal(order{Key: r.Key, Amount: r.Amount})
	if err != nil {
		return answer{}, err
	}
	return answerOf(f.executor.Run(ctx, executor.RunRequest{Account: r.Account, StateKey: r.Key, Graph: inproc.Name + ":" + flowName, Input: input}))
}

func (f *fermataService) decide(ctx context.Context, r request) (answer, error) {
	asked := executor.RunRequest{Account: r.Account, StateKey: r.Key, ResumeID: r.ResumeID, Actor: r.Actor, Via: "chaos", Targets: make(map[string]executor.Answer)}
	for id, value := range r.Targets {
		asked.Targets[id] = executor.Answer{Value: value, Shown: r.Shown}
	}
	return answerOf(f.executor.Run(ctx, asked))
}

// answerOf converts the outcome of a request. An unexpected error means that the result is unknown.
func answerOf(outcome fermata.Outcome, err error) (answer, error) {
	if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
		return answer{Kind: saidRefused, Result: refused.Result, Interrupt: refused.Interrupt, By: refused.By, Verdict: refused.Verdict}, nil
	}
	if unfit, ok := errors.AsType[*fermata.AnswerError](err); ok {
		return answer{Kind: saidUnfit, Interrupt: unfit.ID, Error: unfit.Error()}, nil
	}
	switch {
	case err == nil:
		data, err := json.Marshal(outcome)
		return answer{Kind: saidOutcome, Outcome: data}, err
	case errors.Is(err, executor.ErrPending):
		return answer{Kind: saidPending}, nil
	case errors.Is(err, executor.ErrResumeIDReused):
		return answer{Kind: saidReused}, nil
	case errors.Is(err, executor.ErrRunNotFound):
		return answer{Kind: saidNoRun}, nil
	case errors.Is(err, executor.ErrInvalid):
		return answer{Kind: saidUnfit, Error: err.Error()}, nil
	}
	return answer{}, err
}

func (f *fermataService) look(ctx context.Context, r request) (answer, error) {
	run, err := f.store.Get(ctx, r.Account, r.Key)
	if errors.Is(err, store.ErrNotFound) {
		return answer{Kind: saidNoRun}, nil
	}
	if err != nil {
		return answer{}, err
	}
	asked, err := f.store.Interrupts(ctx, r.Account, run.ID)
	if err != nil {
		return answer{}, err
	}
	v := &view{Run: run.ID, Status: run.Status}
	for _, i := range asked {
		v.Questions = append(v.Questions, questionOf(i))
	}
	return answer{Kind: saidView, View: v}, nil
}

func questionOf(i store.Interrupt) question {
	return question{
		ID: i.ID, Kind: i.Kind, Data: unseal(i.Data), Deadline: i.Deadline, State: i.State, Verdict: i.Verdict, By: i.DecidedBy, Source: i.Source,
		ResumeID: i.ResumeID,
	}
}

func (f *fermataService) cancel(ctx context.Context, r request) (answer, error) {
	return didOrOver(f.executor.Cancel(ctx, r.Account, r.Key, desk.From{}))
}

func (f *fermataService) retry(ctx context.Context, r request) (answer, error) {
	return didOrOver(f.executor.Retry(ctx, r.Account, r.Key, desk.From{}))
}

// act is not supported: orders do not use the desk.
func (f *fermataService) act(context.Context, request) (answer, error) {
	return answer{Kind: saidNoRun}, nil
}

func didOrOver(err error) (answer, error) {
	switch {
	case err == nil:
		return answer{Kind: saidDone}, nil
	case errors.Is(err, executor.ErrRunEnded), errors.Is(err, executor.ErrNotRetryable):
		return answer{Kind: saidOver}, nil
	case errors.Is(err, executor.ErrRunNotFound):
		return answer{Kind: saidNoRun}, nil
	}
	return answer{}, err
}
