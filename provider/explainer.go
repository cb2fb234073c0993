package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
)

// Explainer is a provider whose runs can say something to what people want to know before they decide. It is optional.
type Explainer interface {
	// Explain returns what the run says to it; or "" if it has nothing to say, or says it by itself later. It changes nothing of the run,
	// and may be called again with the same. Its error is as that of Execute.
	Explain(ctx context.Context, run Run, back Clarification) (string, error)
}

// Clarification is what somebody wants to know about a question before they decide on it.
type Clarification struct {
	// Interrupt is the id of the question, and the Envelope is what it asks. Input is what the run began with.
	InterruptID string
	fermata.Envelope
	Input json.RawMessage
	// Number counts, from 1, what was asked back about the question. Text is what By wants to know, since At.
	Number int
	Text   string
	By     string
	At     time.Time
	// Attempt counts, from 0, how often the run was asked this.
	Attempt int
}
