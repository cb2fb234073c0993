package runs

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// A runStream sends the events of a run to one client. It has no goroutine of its own and only a
// small buffer for progress: the handler reads events when the store signals some, and with every
// heartbeat in case a signal was lost. A client that does not read is disconnected by the write
// deadline and resumes with its Last-Event-ID.
type runStream struct {
	*Handlers
	out                    *stream.Writer
	me                     authn.Principal
	account, stateKey, run string
	after                  int64 // the last event sent

	progress <-chan *executor.Progress
	changed  <-chan struct{}
	result   <-chan chatResult // the outcome of a chat; nil if the stream does not wait for one
	// the run was waiting when the stream began, and that has not been sent
	atRest       bool
	maySeeTokens bool // they are part of the result
	ended        bool // the run has ended
	over         bool // and that has been sent
}

// chatResult is the result of a chat.
type chatResult struct {
	outcome fermata.Outcome
	err     error
}

// serve writes the stream until it ends, the client disconnects or does not read, or the server
// shuts down.
func (t *runStream) serve(ctx context.Context) {
	changed, stop := t.Executor.WatchRun(t.account, t.run)
	defer stop()
	t.changed = changed
	heartbeat := time.NewTicker(t.Streams.Heartbeat)
	defer heartbeat.Stop()
	for t.catchUp(ctx) == nil && !t.over {
		if more, err := t.wait(ctx, heartbeat.C); !more || err != nil {
			return
		}
	}
}

// wait sends progress until there may be new events. It reports whether to continue.
func (t *runStream) wait(ctx context.Context, heartbeat <-chan time.Time) (more bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-t.Executor.Done():
			return false, nil
		case <-t.changed:
			return true, nil
		case <-heartbeat:
			return true, t.out.Comment("keep-alive")
		case p := <-t.progress:
			if err := t.writeProgress(p); err != nil {
				return false, err
			}
		case end := <-t.result:
			return false, t.finish(ctx, end)
		}
	}
}

// writeProgress sends progress.
func (t *runStream) writeProgress(p *executor.Progress) error {
	if p.Run != t.run {
		return nil // of another run with the same state key
	}
	switch p := p.Progress.(type) {
	case provider.Step:
		return t.out.Event("", api.EventStep, api.Step{Address: p.Address, State: string(p.State)})
	case provider.Token:
		if !t.maySeeTokens {
			return nil
		}
		return t.out.Event("", api.EventToken, api.Token{Address: p.Address, Agent: p.Agent, Text: p.Text})
	}
	return nil
}

// catchUp sends new events, and the outcome if the run waits or has ended. Progress reported
// earlier is sent first.
func (t *runStream) catchUp(ctx context.Context) error {
	for {
		resting, err := t.writeEvents(ctx)
		if err != nil {
			return err // the client reconnects with its Last-Event-ID
		}
		// A client that reconnects after the last event gets at least the outcome.
		resting, t.atRest = resting || t.atRest, false
		t.over = t.over || t.ended
		if !resting || t.result != nil {
			t.over = t.over && t.result == nil // a chat ends with its own outcome
			return nil
		}
		outcome, err := t.currentOutcome(ctx)
		if err != nil || outcome == nil {
			t.over = t.over && err != nil
			return err
		}
		// the run may have advanced since the events were read: events precede the outcome that
		// they led to, unless it is obsolete
		if !t.over {
			more, err := t.Executor.Events(ctx, t.account, t.run, t.after)
			if err != nil && !errors.Is(err, executor.ErrRunNotFound) {
				return err
			}
			if t.atRest = len(more) > 0; t.atRest {
				continue
			}
		}
		return t.out.Event("", api.EventOutcome, outcomes.Outcome{Outcome: outcome})
	}
}

// writeEvents sends the stored events. It reports whether the run waits or has ended after the last
// one.
func (t *runStream) writeEvents(ctx context.Context) (atRest bool, err error) {
	for {
		events, err := t.Executor.Events(ctx, t.account, t.run, t.after)
		if err != nil {
			return false, err
		}
		for len(t.progress) > 0 { // all progress reported before these events is available now
			if err := t.writeProgress(<-t.progress); err != nil {
				return false, err
			}
		}
		for _, event := range events {
			t.after, atRest = event.Seq, event.Kind.Final() || event.Kind == store.EventWaiting
			t.over = event.Kind.Final() // a failed run may have been retried since
			if visible, err := t.maySeeEvent(ctx, event); err != nil {
				return false, err
			} else if !visible {
				continue
			}
			if err := t.out.Event(eventID(event), string(event.Kind), eventOf(event)); err != nil {
				return false, err
			}
		}
		if len(events) == 0 || t.over {
			return atRest, nil
		}
	}
}

// maySeeEvent reports whether the client may see the request that an event is about.
func (t *runStream) maySeeEvent(ctx context.Context, event store.Event) (bool, error) {
	if event.Interrupt == "" || t.me.Has() {
		return true, nil
	}
	doc, visible, err := t.Visibility.MaySeeID(ctx, t.me, event.Interrupt)
	t.maySeeTokens = t.maySeeTokens && visible && !visibility.Masks(t.me, doc) // they may repeat what the request shows
	return visible, err
}

// currentOutcome returns the outcome of the run; nil if it is already active again.
func (t *runStream) currentOutcome(ctx context.Context) (fermata.Outcome, error) {
	view, err := t.Executor.GetRun(ctx, t.account, t.stateKey)
	switch {
	case errors.Is(err, executor.ErrRunNotFound), err == nil && view.ID != t.run:
		outcome, err := t.Executor.RunOutcome(ctx, t.account, t.run)
		if err != nil {
			return nil, err
		}
		return t.Visibility.Outcome(ctx, t.me, outcome)
	case err != nil:
		return nil, err
	}
	_, outcome, err := t.Visibility.Run(t.me, view)
	return outcome, err
}

// finish ends the stream of a chat.
func (t *runStream) finish(ctx context.Context, end chatResult) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	if pending, ok := errors.AsType[*executor.PendingError](end.err); ok {
		select {
		// the server is shutting down; the client repeats the request on another replica
		case <-t.Executor.Done():
			return nil
		default:
		}
		return t.out.Event("", api.EventOutcome, outcomes.Outcome{Pending: outcomes.Pending(*pending)})
	}
	outcome, err := t.Visibility.Outcome(ctx, t.me, end.outcome)
	if err = errors.Join(end.err, err); err != nil {
		p := problems.Of(err)
		t.Failed(p, "stream")
		return t.out.Event("", api.EventProblem, p)
	}
	if outcome == nil { // the client may not see what the run waits for
		return t.out.Event("", api.EventOutcome, outcomes.Outcome{Pending: &api.Pending{RunID: t.run, StateKey: t.stateKey}})
	}
	if waiting, ok := outcome.(fermata.NeedsInput); ok {
		for _, i := range waiting.Interrupts {
			if err := t.out.Event("", api.EventInterrupt, i); err != nil {
				return err
			}
		}
	}
	return t.out.Event("", api.EventOutcome, outcomes.Outcome{Outcome: outcome})
}
