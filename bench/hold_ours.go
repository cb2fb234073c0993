package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

const (
	benchAccount = "acme"
	benchActor   = "ann"
)

// executorSide is our side.
type executorSide struct {
	executor *executor.Executor
	store    store.Store
	workload workload
	closing  func() error
}

// newExecutorSide creates an executor as in a server, with workers. The config sets the store and
// the sealer. closing is called after it was stopped.
func newExecutorSide(config executor.Config, p workload, closing func() error) (*executorSide, error) {
	work, err := p.provider(p.text)
	if err != nil {
		return nil, err
	}
	config.Providers, config.Wait, config.Log = []provider.Provider{work}, time.Minute, slog.New(slog.NewTextHandler(io.Discard, nil))
	e, err := executor.New(config)
	if err != nil {
		return nil, err
	}
	e.StartWorkers()
	return &executorSide{executor: e, store: config.Store, workload: p, closing: closing}, nil
}

// newSealer encrypts with a new key.
func newSealer() (*seal.Sealer, error) {
	key, err := seal.NewKey()
	if err != nil {
		return nil, err
	}
	return seal.New(key)
}

func (e *executorSide) start(ctx context.Context, key string) error {
	return e.startIn(ctx, benchAccount, key)
}

func (e *executorSide) startIn(ctx context.Context, account, key string) error {
	outcome, err := e.executor.Run(ctx, executor.RunRequest{Account: account, StateKey: key, Graph: e.workload.graph, Input: json.RawMessage(reviewInput)})
	if err != nil {
		return err
	}
	return checkAsked(outcome, e.workload.shown)
}

func (e *executorSide) decide(ctx context.Context, key string) error {
	outcome, err := e.executor.Run(ctx, executor.RunRequest{
		Account: benchAccount, StateKey: key, ResumeID: key, Actor: benchActor, Via: "bench", Value: json.RawMessage(`"` + reviewVerdict + `"`),
	})
	if err != nil {
		return err
	}
	return e.workload.checkDone(outcome, e.workload.text)
}

func (e *executorSide) close() error {
	if err := e.executor.Stop(context.Background()); err != nil {
		return err
	}
	return e.closing()
}
