package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
)

// Explainer is an optional interface of providers whose runs can answer clarification requests.
type Explainer interface {
	// Explain returns the reply of the run, or "" if it has none or replies later by itself. It
	// does not change the run and may be called again with the same clarification. Its errors are
	// like those of Execute.
	Explain(ctx context.Context, run Run, clarification Clarification) (string, error)
}

// Clarification is a question of an approver about an open request.
type Clarification struct {
	// InterruptID identifies the interrupt; the Envelope is its question. Input is the input of the
	// run.
	InterruptID string
	fermata.Envelope
	Input json.RawMessage
	// Number counts the clarifications of the request from 1. Text is the question that By asked at
	// the time At.
	Number int
	Text   string
	By     string
	At     time.Time
	// Attempt counts the calls with this clarification from 0.
	Attempt int
}
