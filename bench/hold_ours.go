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
	piece    piece
	closing  func() error
}

// newExecuting makes an executor as a server has one: it also looks for work by itself. The config says with which store and box. closing is what
// comes after it was stopped.
func newExecuting(config executor.Config, p piece, closing func() error) (*executing, error) {
	plays, err := p.provider(p.text)
	if err != nil {
		return nil, err
	}
	config.Providers, config.Wait, config.Log = []provider.Provider{plays}, time.Minute, slog.New(slog.NewTextHandler(io.Discard, nil))
	e, err := executor.New(config)
	if err != nil {
		return nil, err
	}
	e.Start()
	return &executing{executor: e, store: config.Store, piece: p, closing: closing}, nil
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
	outcome, err := e.executor.Run(ctx, executor.Request{Account: benchAccount, StateKey: key, Graph: e.piece.graph, Input: json.RawMessage(reviewInput)})
	if err != nil {
		return err
	}
	return checkAsked(outcome, e.piece.shown)
}

func (e *executing) decide(ctx context.Context, key string) error {
	outcome, err := e.executor.Run(ctx, executor.Request{
		Account: benchAccount, StateKey: key, ResumeID: key, Actor: benchActor, Via: "bench", Value: json.RawMessage(`"` + reviewVerdict + `"`),
	})
	if err != nil {
		return err
	}
	return e.piece.over(outcome, e.piece.text)
}

func (e *executing) close() error {
	if err := e.executor.Stop(context.Background()); err != nil {
		return err
	}
	return e.closing()
}
