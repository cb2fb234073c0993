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

// customListener hears the events of an agent that somebody else wrote.
type customListener struct {
	scope *agentScope
	// skip is how many events are still to come that were shown in an earlier entry.
	skip     int
	progress customProgress
}

// customProgress is what is remembered of an agent that did not come to its end. Its work has legs: Run begins the first, and each Resume
// another one, behind an interrupt of its own. A leg that failed, or asked in another way, begins anew.
type customProgress struct {
	// Events is how many were shown, Before how many of them in earlier legs.
	Events int `json:"events"`
	Before int `json:"before,omitempty"`
	// Messages and Exit are of the earlier legs.
	Messages []Message `json:"messages,omitempty"`
	Exit     bool      `json:"exit,omitempty"`
}

// runCustom runs an agent that somebody else wrote, or resumes it.
func runCustom(ctx context.Context, a Agent, input *Input) (*Output, error) {
	scope := activation.FromContext(ctx)
	var before customProgress
	if data, ok := scope.Recorded(entryShown); ok {
		if err := json.Unmarshal(data, &before); err != nil {
			return nil, fmt.Errorf("agent: what %s has said cannot be read: %w", scope.FullAddress(), err)
		}
	}
	l := customListener{scope: scopeOf(ctx)}
	var events iter.Seq2[*Event, error]
	if r, ok := a.(Resumable); ok && scope.Last() != nil {
		l.progress = customProgress{Events: before.Before, Messages: before.Messages, Exit: before.Exit} // it goes on behind that
		events = r.Resume(ctx, resumeInfo(ctx, input))
	} else {
		events = a.Run(ctx, input) // it begins anew, and says it all again
	}
	l.skip = before.Events - l.progress.Events
	for event, err := range events {
		if err = l.onEvent(event, err); err != nil {
			return nil, errors.Join(err, l.saveProgress(ctx, scope, before, err))
		}
	}
	return &Output{Messages: l.progress.Messages, Exit: l.progress.Exit}, nil
}

// hear passes an event on. It returns an error when the agent waits or has failed.
func (l *customListener) onEvent(event *Event, err error) error {
	if err != nil {
		return err
	}
	if event == nil || event.Body == nil {
		return fmt.Errorf("agent: %s yielded an event without a body", l.scope.agent.Name())
	}
	own := event.Path == nil // else of an agent that it runs, which itself sees to it that nothing is shown twice
	switch body := event.Body.(type) {
	case Interrupted:
		if body.signal == nil {
			return fmt.Errorf("agent: %s yielded an interrupt that this package did not make: use agent.Interrupt", l.scope.agent.Name())
		}
		return body.signal
	case MessageAdded:
		if own {
			body.Message.setAgent(l.scope.agent.Name())
			l.progress.Messages = append(l.progress.Messages, body.Message)
			event = &Event{Body: body} // the agent may yield the one that it has again
		}
	case Exit:
		l.progress.Exit = l.progress.Exit || own
	case Token, ToolOutput: // pieces of something, which is still to come
		if own && l.skip > 0 {
			return nil
		}
		own = false
	case Finished:
		return fmt.Errorf("agent: %s yielded Finished, which is for the runner to say", l.scope.agent.Name())
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

// remember writes down what the agent has said, to be saved together with its question.
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
