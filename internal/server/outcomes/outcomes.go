// Package outcomes writes the outcome of a run as the response of an operation, and describes it in
// the OpenAPI document.
package outcomes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

// Outcome is a fermata.Outcome, or a pending one.
type Outcome struct {
	fermata.Outcome
	Pending *api.Pending
}

// Output writes an outcome or a stream.
type Output struct{ Body func(huma.Context) }

// Respond converts the result of a start or a decision. It answers 202 for a PendingError, and if
// the run waits only for requests that the caller may not see.
func Respond(ctx context.Context, show visibility.Checker, outcome fermata.Outcome, err error) (*Output, error) {
	if pending, ok := errors.AsType[*executor.PendingError](err); ok {
		return pendingOutput(*pending), nil
	}
	if err == nil {
		shown, failure := show.Outcome(ctx, endpoint.Principal(ctx), outcome)
		if waiting, ok := outcome.(fermata.NeedsInput); ok && shown == nil && failure == nil {
			return Accepted(waiting.Run, waiting.StateKey), nil
		}
		outcome, err = shown, failure
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return newOutput(http.StatusOK, "", Outcome{Outcome: outcome}), nil
}

// Accepted responds to a call that does not wait for the outcome of a run.
func Accepted(run, stateKey string) *Output {
	return pendingOutput(executor.PendingError{Run: run, StateKey: stateKey})
}

func pendingOutput(pending executor.PendingError) *Output {
	location := api.Prefix + "/runs/" + url.PathEscape(pending.StateKey)
	return newOutput(http.StatusAccepted, location, Outcome{Pending: Pending(pending)})
}

// Pending returns an outcome that is not known yet.
func Pending(pending executor.PendingError) *api.Pending {
	p := &api.Pending{RunID: pending.Run, StateKey: pending.StateKey}
	if !pending.EffectiveAt.IsZero() {
		p.EffectiveAt = &pending.EffectiveAt
	}
	return p
}

func newOutput(status int, location string, outcome Outcome) *Output {
	return &Output{Body: func(hctx huma.Context) {
		if location != "" {
			hctx.SetHeader("Location", location)
		}
		hctx.SetHeader("Content-Type", "application/json")
		hctx.SetStatus(status)
		// a disconnected client does not read it
		_ = json.NewEncoder(hctx.BodyWriter()).Encode(outcome)
	}}
}

// MarshalJSON encodes the outcome, or the pending result.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if done, ok := o.Outcome.(fermata.Completed); ok && done.Usage != nil {
		return marshalCompleted(done)
	}
	if o.Pending == nil {
		return json.Marshal(o.Outcome)
	}
	return json.Marshal(struct {
		Status string `json:"status"`
		*api.Pending
	}{api.StatusPending, o.Pending})
}

// usage is a fermata.Usage, also under the names that many model APIs use.
type usage struct {
	fermata.Usage
	PromptTokens     int64 `json:"promptTokens"`
	CompletionTokens int64 `json:"completionTokens"`
}

func marshalCompleted(done fermata.Completed) ([]byte, error) {
	type plain fermata.Completed // without its MarshalJSON
	return json.Marshal(struct {
		Status string `json:"status"`
		plain
		Usage usage `json:"usage"`
	}{"completed", plain(done), usage{*done.Usage, done.Usage.InputTokens, done.Usage.OutputTokens}})
}
