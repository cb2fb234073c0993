package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// Events returns the events of a run after a number. It returns [errs.ErrRunNotFound] if the run
// does not exist.
func (r *Reader) Events(ctx context.Context, account, run string, after int64) ([]store.Event, error) {
	// The event before is read as well: each run has a first event, so if there is none at all the
	// run is gone.
	events, err := r.store.Events(ctx, account, run, max(0, after-1), 0)
	if err == nil && len(events) == 0 && after > 1 { // or the run has no event of that number
		events, err = r.store.Events(ctx, account, run, 0, 1)
	}
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("%w: %q", errs.ErrRunNotFound, run)
	}
	return slices.DeleteFunc(events, func(event store.Event) bool { return event.Seq <= after }), err
}

// WatchRun returns hints that there may be new events of a run, here or in another process. A hint
// may be lost: look now and then without one. stop has to be called.
func (r *Reader) WatchRun(account, run string) (changed <-chan struct{}, stop func()) {
	return r.waiter.Watch(account, run)
}

// Done is closed when the executor has stopped.
func (r *Reader) Done() <-chan struct{} { return r.background.Ctx.Done() }

// Deadlines says until when the questions of a run can be answered, by their id. A question without
// a deadline is not in it.
func (r *Reader) Deadlines(ctx context.Context, account, run string) (map[string]time.Time, error) {
	asked, err := r.store.Interrupts(ctx, account, run)
	deadlines := make(map[string]time.Time)
	for _, i := range asked {
		if !i.Deadline.IsZero() {
			deadlines[i.ID] = i.Deadline
		}
	}
	return deadlines, err
}

// FollowEvents returns the events of a run as they happen, after the event last; the zero event is
// before the first one, and so is an event of an earlier run with the same state key. It ends after
// the run has ended, and when ctx ends.
func (r *Reader) FollowEvents(ctx context.Context, account, stateKey string, last store.Event) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		run, err := r.docs.FindRun(ctx, account, stateKey)
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		var after int64
		if last.Run == run.ID {
			after = last.Seq
		}
		changed, stop := r.WatchRun(account, run.ID)
		defer stop()
		for {
			events, err := r.Events(ctx, account, run.ID, after)
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			for _, event := range events {
				if !yield(event, nil) || event.Kind.Final() {
					return
				}
				after = event.Seq
			}
			if len(events) == 0 && !r.waitForChange(ctx, changed) {
				return
			}
		}
	}
}

// waitForChange waits for a hint, or for Config.Poll. It reports whether to go on.
func (r *Reader) waitForChange(ctx context.Context, changed <-chan struct{}) bool {
	timer := time.NewTimer(r.poll)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.background.Ctx.Done():
	}
	return ctx.Err() == nil && r.background.Ctx.Err() == nil
}

// SettledRequest is a question that is settled: it was answered, or has expired, or was withdrawn.
type SettledRequest struct {
	RunID      string          `json:"runId"`
	StateKey   string          `json:"stateKey"`
	GraphID    string          `json:"graphId"`
	Interrupt  string          `json:"interrupt"`
	Kind       string          `json:"kind"`
	Expired    bool            `json:"expired,omitempty"`
	Withdrawn  bool            `json:"withdrawn,omitempty"`
	Unreadable bool            `json:"unreadable,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"`
	// Refusal, if not nil, ended a question of a kind other than approval without an answer.
	Refusal *fermata.Refusal `json:"refusal,omitempty"`
	// ApprovedDigest is the digest of the approved action with its arguments.
	ApprovedDigest string    `json:"approvedDigest,omitempty"`
	By             string    `json:"by,omitempty"`
	At             time.Time `json:"at"`
}

// ListSettled returns the requests of an account that were settled after a cursor, in order and
// each once, and the cursor for the next call; "" is the beginning. A page may be empty although
// there are more: there are no more when the cursor stays the same. An answer that cannot be
// decrypted is marked.
func (r *Reader) ListSettled(ctx context.Context, account, after string, limit int) ([]SettledRequest, string, error) {
	events, next, err := r.store.Feed(ctx, account, after, limit)
	if err != nil {
		return nil, "", err
	}
	var list []SettledRequest
	for _, event := range events {
		if event.Kind != store.EventDecided && event.Kind != store.EventExpired && event.Kind != store.EventWithdrawn {
			continue
		}
		answered, known, err := r.settledRequest(ctx, event)
		if err != nil {
			return nil, "", err
		}
		if known {
			list = append(list, answered)
		}
	}
	return list, next, nil
}

// readableRequest returns the request of an interrupt, or nil if there is none that can be read.
func (r *Reader) readableRequest(ctx context.Context, i store.Interrupt) (*desk.Request, error) {
	paper, err := r.store.Document(ctx, i.Account, store.RequestDocument, i.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := r.docs.DecodeRequest(paper)
	if err != nil {
		return nil, nil
	}
	return &known.Request, nil
}

// settledRequest reads the question that an event is about. It reports false if the run was deleted
// in the meantime, or a policy decided.
func (r *Reader) settledRequest(ctx context.Context, event store.Event) (SettledRequest, bool, error) {
	history, err := r.store.History(ctx, event.Account, event.Run)
	if docs.IsNotFound(err) {
		return SettledRequest{}, false, nil
	}
	if err != nil {
		return SettledRequest{}, false, err
	}
	run := history.Run
	for _, i := range history.Interrupts {
		if i.ID != event.Interrupt || i.Source == store.SourcePolicy {
			continue
		}
		settled := SettledRequest{RunID: run.ID, StateKey: run.StateKey, GraphID: run.Provider + ":" + run.Graph, Interrupt: i.ID, Kind: i.Kind}
		if event.Kind == store.EventWithdrawn {
			settled.Withdrawn, settled.At = true, event.At
			return settled, i.State == store.InterruptWithdrawn, nil // or it was asked again since
		}
		settled.ApprovedDigest = i.ApprovedDigest
		request, err := r.readableRequest(ctx, i)
		if err != nil {
			return SettledRequest{}, false, err
		}
		settled.Expired, settled.By, settled.At = i.Verdict == store.VerdictExpire, docs.Attestation(i, request).By, i.DecidedAt
		settled.Unreadable = r.readAnswer(&settled, i, request) != nil
		return settled, true, nil
	}
	return SettledRequest{}, false, nil
}

// readAnswer adds the answer or the refusal, by people or by a rule at the deadline.
func (r *Reader) readAnswer(settled *SettledRequest, i store.Interrupt, request *desk.Request) error {
	if settled.Expired && request != nil {
		decided, err := docs.ClockDecisionOf(*request)
		if err != nil {
			return err
		}
		if decided != nil {
			settled.Expired, settled.By = false, desk.ClockName
			if decided.Rejection != nil && i.Kind != fermata.Approval.Name() {
				settled.Refusal = &fermata.Refusal{Decision: *decided.Rejection}
			} else {
				settled.Answer = decided.Answer
			}
			return nil
		}
	}
	answer, err := r.store.Answer(i)
	if err != nil {
		return err
	}
	settled.Answer, settled.Refusal, err = docs.ReadAnswer(i, request, answer)
	return err
}

// RunRequests returns the graph id of a run and the ids of its requests, or [errs.ErrRunNotFound].
func (r *Reader) RunRequests(ctx context.Context, account, run string) (graph string, ids []string, err error) {
	history, err := r.store.History(ctx, account, run)
	if docs.IsNotFound(err) {
		err = fmt.Errorf("%w: %q", errs.ErrRunNotFound, run)
	}
	if err != nil {
		return "", nil, err
	}
	for _, i := range history.Interrupts {
		ids = append(ids, i.ID)
	}
	return history.Run.Provider + ":" + history.Run.Graph, ids, nil
}
