package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

const entryShown = "shown"

// customListener receives the events of an agent that is not from this package.
type customListener struct {
	scope *agentScope
	// skip is the number of events that were shown in an earlier entry and will be yielded again.
	skip     int
	progress customProgress
}

// customProgress is the saved progress of an unfinished agent. Its work consists of segments: Run
// begins the first, and each Resume after its own interrupt begins another. A segment that failed,
// or raised an interrupt in another way, starts from its beginning.
type customProgress struct {
	// Events is the number of events shown, Before the number of those in earlier segments.
	Events int `json:"events"`
	Before int `json:"before,omitempty"`
	// Messages and Exit are those of the earlier segments.
	Messages []Message `json:"messages,omitempty"`
	Exit     bool      `json:"exit,omitempty"`
}

// runCustom runs or resumes an agent that is not from this package.
func runCustom(ctx context.Context, a Agent, input *Input) (*Output, error) {
	scope := activation.FromContext(ctx)
	var before customProgress
	if data, ok := scope.Recorded(entryShown); ok {
		if err := json.Unmarshal(data, &before); err != nil {
			return nil, fmt.Errorf("agent: saved progress of %s cannot be decoded: %w", scope.FullAddress(), err)
		}
	}
	l := customListener{scope: scopeOf(ctx)}
	var events iter.Seq2[*Event, error]
	if r, ok := a.(Resumable); ok && scope.Last() != nil {
		// continues after the earlier segments
		l.progress = customProgress{Events: before.Before, Messages: before.Messages, Exit: before.Exit}
		events = r.Resume(ctx, resumeInfo(ctx, input))
	} else {
		events = a.Run(ctx, input) // starts the segment again and repeats its events
	}
	l.skip = before.Events - l.progress.Events
	for event, err := range events {
		if err = l.onEvent(ctx, event, err); err != nil {
			return nil, errors.Join(err, l.saveProgress(ctx, scope, before, err))
		}
	}
	return &Output{Messages: l.progress.Messages, Exit: l.progress.Exit}, nil
}

// onEvent forwards an event. It returns an error if the agent waits or has failed.
func (l *customListener) onEvent(ctx context.Context, event *Event, err error) error {
	if err != nil {
		return err
	}
	if event == nil || event.Body == nil {
		return fmt.Errorf("agent: %s yielded an event without a body", l.scope.agent.Name())
	}
	// otherwise it is from an agent that it runs, which does not repeat events itself
	own := event.Path == nil
	switch body := event.Body.(type) {
	case Interrupted:
		if body.signal == nil {
			return raiseLegacy(ctx, l.scope.agent.Name(), body)
		}
		return body.signal
	case MessageAdded:
		if own {
			body.Message.setAgent(l.scope.agent.Name())
			l.progress.Messages = append(l.progress.Messages, body.Message)
			event = &Event{Body: body} // the agent may yield the same event again
		}
	case Exit:
		l.progress.Exit = l.progress.Exit || own
	case Token, ToolOutput: // tokens of a message that is still to come
		if own && l.skip > 0 {
			return nil
		}
		own = false
	case Finished:
		return fmt.Errorf("agent: %s yielded Finished, which only the runner yields", l.scope.agent.Name())
	case ToolDone, Transferred:
	default:
		return fmt.Errorf("agent: %s yielded an event with a %T", l.scope.agent.Name(), body)
	}
	if own {
		l.progress.Events++
		if l.skip > 0 {
			l.skip--
			return nil
		}
	}
	l.scope.forward(event)
	return nil
}

// saveProgress records the events of the agent, to be saved together with its interrupt.
func (l *customListener) saveProgress(ctx context.Context, scope *activation.Scope, before customProgress, result error) error {
	now := customProgress{Events: max(l.progress.Events, before.Events), Before: before.Before, Messages: before.Messages, Exit: before.Exit}
	if last := scope.Last(); activation.IsWait(result) && last != nil && last.Status == activation.StatusOpen {
		now = customProgress{Events: now.Events, Before: now.Events, Messages: l.progress.Messages, Exit: l.progress.Exit}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return &fermata.EncodeError{Value: "what " + scope.FullAddress() + " has said", Err: err}
	}
	return scope.Record(ctx, entryShown, data, activation.SaveWithNext)
}
