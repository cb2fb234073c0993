package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// A stream shows a run to one client. It has no goroutine of its own and no buffer but a small one for progress: the handler looks for events
// when the store hints at some, and with every heartbeat in case a hint was lost. A client that does not read is cut off by the deadline of
// the write; what it missed it gets with its Last-Event-ID.
type stream struct {
	*Server
	out                    *sse
	account, stateKey, run string
	after                  int64 // the last event that was shown

	progress <-chan *executor.Progress
	changed  <-chan struct{}
	result   <-chan chatResult // what a chat came to; nil if nobody waits for that
	atRest   bool              // it rested when the stream began, which was not shown yet
	ended    bool              // the run is over
	over     bool              // and that was shown
}

// chatResult is what a chat came to.
type chatResult struct {
	outcome fermata.Outcome
	err     error
}

// show writes the stream until it is over, the client is gone or does not read, or the server ends.
func (t *stream) serve(ctx context.Context) {
	changed, stop := t.config.Executor.WatchRun(t.account, t.run)
	defer stop()
	t.changed = changed
	beat := time.NewTicker(t.config.Limits.Heartbeat)
	defer beat.Stop()
	for t.catchUp(ctx) == nil && !t.over {
		if more, err := t.wait(ctx, beat.C); !more || err != nil {
			return
		}
	}
}

// wait shows progress until there may be new events. It reports whether to go on.
func (t *stream) wait(ctx context.Context, beat <-chan time.Time) (more bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-t.config.Executor.Done():
			return false, nil
		case <-t.changed:
			return true, nil
		case <-beat:
			return true, t.out.comment("still here")
		case p := <-t.progress:
			if err := t.writeProgress(p); err != nil {
				return false, err
			}
		case end := <-t.result:
			return false, t.finish(ctx, end)
		}
	}
}

// tell shows progress.
func (t *stream) writeProgress(p *executor.Progress) error {
	if p.Run != t.run {
		return nil // of another run with the same state key
	}
	switch p := p.Progress.(type) {
	case provider.Step:
		return t.out.event("", api.EventStep, api.Step{Address: p.Address, State: string(p.State)})
	case provider.Token:
		return t.out.event("", api.EventToken, api.Token{Address: p.Address, Agent: p.Agent, Text: p.Text})
	}
	return nil
}

// catchUp shows what happened, and what the run came to if it rests. What was reported before comes before.
func (t *stream) catchUp(ctx context.Context) error {
	for {
		rests, err := t.writeEvents(ctx)
		if err != nil {
			return err // the client comes back with its Last-Event-ID
		}
		// Who comes back behind the last event hears at least what it came to.
		rests, t.atRest = rests || t.atRest, false
		t.over = t.over || t.ended
		if !rests || t.result != nil {
			t.over = t.over && t.result == nil // a chat ends with its own outcome
			return nil
		}
		outcome, err := t.currentOutcome(ctx)
		if err != nil || outcome == nil {
			return err
		}
		if !t.over { // the run may have gone on since the events were read: what led to the outcome comes before it, or nobody waits for that any more
			more, err := t.config.Executor.Events(ctx, t.account, t.run, t.after)
			if err != nil && !errors.Is(err, executor.ErrRunNotFound) {
				return err
			}
			if t.atRest = len(more) > 0; t.atRest {
				continue
			}
		}
		return t.out.event("", api.EventOutcome, Outcome{Outcome: outcome})
	}
}

// showEvents shows the events that there are. It reports whether the run rests behind the last of them.
func (t *stream) writeEvents(ctx context.Context) (rests bool, err error) {
	for {
		events, err := t.config.Executor.Events(ctx, t.account, t.run, t.after)
		if err != nil {
			return false, err
		}
		for len(t.progress) > 0 { // whatever was reported before these events happened is here by now
			if err := t.writeProgress(<-t.progress); err != nil {
				return false, err
			}
		}
		for _, event := range events {
			if err := t.out.event(eventID(event), string(event.Kind), eventOf(event)); err != nil {
				return false, err
			}
			t.after, rests = event.Seq, event.Kind.Final() || event.Kind == store.EventWaiting
			t.over = t.over || event.Kind.Final()
		}
		if len(events) == 0 || t.over {
			return rests, nil
		}
	}
}

// sum is what the run came to; nil if it goes on already.
func (t *stream) currentOutcome(ctx context.Context) (fermata.Outcome, error) {
	view, err := t.config.Executor.GetRun(ctx, t.account, t.stateKey)
	switch {
	case errors.Is(err, executor.ErrRunNotFound), err == nil && view.ID != t.run:
		return t.config.Executor.RunOutcome(ctx, t.account, t.run)
	case err != nil:
		return nil, err
	}
	return outcomeOf(view), nil
}

// finish ends the stream of a chat.
func (t *stream) finish(ctx context.Context, end chatResult) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	if pending, ok := errors.AsType[*executor.PendingError](end.err); ok {
		select {
		case <-t.config.Executor.Done(): // nobody waits here any more; the client sends the same elsewhere
			return nil
		default:
		}
		return t.out.event("", api.EventOutcome, Outcome{Pending: &api.Pending{RunID: pending.Run, StateKey: pending.StateKey}})
	}
	outcome, err := t.addDeadlines(ctx, t.account, end.outcome)
	if err = errors.Join(end.err, err); err != nil {
		p := problemOf(err)
		t.logProblem(p, "stream")
		return t.out.event("", api.EventProblem, p)
	}
	if waiting, ok := outcome.(fermata.NeedsInput); ok {
		for _, i := range waiting.Interrupts {
			if err := t.out.event("", api.EventInterrupt, i); err != nil {
				return err
			}
		}
	}
	return t.out.event("", api.EventOutcome, Outcome{Outcome: outcome})
}

// sse writes server-sent events. A client that does not read is an error after a while.
type sse struct {
	w            http.ResponseWriter
	control      *http.ResponseController
	writeTimeout time.Duration
}

// open begins the answer.
func (s *Server) openSSE(w http.ResponseWriter) *sse {
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would collect it
	w.WriteHeader(http.StatusOK)
	return &sse{w: w, control: http.NewResponseController(w), writeTimeout: s.config.Limits.WriteTimeout}
}

func (o *sse) comment(text string) error { return o.write([]byte(": " + text + "\n\n")) }

func (o *sse) event(id, kind string, data any) error {
	body, err := json.Marshal(data) // on one line
	if err != nil {
		return err
	}
	text := make([]byte, 0, len(body)+len(id)+len(kind)+32)
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	text = append(append(append(text, "event: "...), kind...), "\ndata: "...)
	return o.write(append(append(text, body...), "\n\n"...))
}

func (o *sse) write(text []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(o.writeTimeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		return err
	}
	return o.control.SetWriteDeadline(time.Time{}) // HTTP/2 would end the stream then, also if nothing is to be written
}
