package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

const (
	benchAccount = "acme"
	benchActor   = "ann"
)

// executing is our side.
type executing struct {
	executor *executor.Executor
	store    store.Store
	text     string
	closing  func() error
}

// newExecuting makes an executor as a server has one: it also looks for work by itself. closing is what comes after it was stopped.
func newExecuting(s store.Store, sealer executor.Box, text string, closing func() error) (*executing, error) {
	p, err := reviewProvider(text)
	if err != nil {
		return nil, err
	}
	e, err := executor.New(executor.Config{
		Store: s, Providers: []provider.Provider{p}, Box: sealer, Wait: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	e.Start()
	return &executing{executor: e, store: s, text: text, closing: closing}, nil
}

// newBox seals with a key that nobody else has.
func newBox() (*box.Box, error) {
	key, err := box.NewKey()
	if err != nil {
		return nil, err
	}
	return box.New(key)
}

func (e *executing) start(ctx context.Context, key string) error {
	outcome, err := e.executor.Run(ctx, executor.Request{Account: benchAccount, StateKey: key, Graph: reviewGraph, Input: json.RawMessage(reviewInput)})
	if err != nil {
		return err
	}
	return checkAsked(outcome, e.text)
}

func (e *executing) decide(ctx context.Context, key string) error {
	outcome, err := e.executor.Run(ctx, executor.Request{
		Account: benchAccount, StateKey: key, ResumeID: key, Actor: benchActor, Via: "bench", Value: json.RawMessage(`"` + reviewVerdict + `"`),
	})
	if err != nil {
		return err
	}
	return checkPublished(outcome, e.text)
}

func (e *executing) close() error {
	if err := e.executor.Stop(context.Background()); err != nil {
		return err
	}
	return e.closing()
}
