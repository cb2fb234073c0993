package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/visit"
)

const entryShown = "shown"

// listener hears the events of an agent that somebody else wrote.
type listener struct {
	stage *stage
	// skip is how many events are still to come that were shown in an earlier entry.
	skip int
	said said
}

// said is what is remembered of an agent that waits.
type said struct {
	Events   int       `json:"events"`
	Messages []Message `json:"messages,omitempty"`
	Exit     bool      `json:"exit,omitempty"`
}

// custom runs an agent that somebody else wrote, or resumes it.
func custom(ctx context.Context, a Agent, input *Input) (*Output, error) {
	scope := visit.From(ctx)
	var before said
	if data, ok := scope.Recall(entryShown); ok {
		if err := json.Unmarshal(data, &before); err != nil {
			return nil, fmt.Errorf("agent: what %s has said cannot be read: %w", scope.FullAddress(), err)
		}
	}
	l := listener{stage: stageOf(ctx)}
	events := a.Run(ctx, input)
	if r, ok := a.(Resumable); ok && scope.Last() != nil {
		l.said = before // it goes on behind what it said
		events = r.Resume(ctx, resumeInfo(ctx, input))
	} else {
		l.skip = before.Events // it begins anew, and says it all again
	}
	for event, err := range events {
		if err = l.hear(event, err); err != nil {
			return nil, errors.Join(err, l.remember(ctx, scope, before))
		}
	}
	return &Output{Messages: l.said.Messages, Exit: l.said.Exit}, nil
}

// hear passes an event on. It returns an error when the agent waits or has failed.
func (l *listener) hear(event *Event, err error) error {
	if err != nil {
		return err
	}
	if event == nil || event.Body == nil {
		return fmt.Errorf("agent: %s yielded an event without a body", l.stage.agent.Name())
	}
	switch body := event.Body.(type) {
	case Interrupted:
		if body.signal == nil {
			return fmt.Errorf("agent: %s yielded an interrupt that this package did not make: use agent.Interrupt", l.stage.agent.Name())
		}
		return body.signal
	case Said:
		if event.Agent == "" || event.Agent == l.stage.agent.Name() { // else of an agent that it runs
			body.Message.by(l.stage.agent.Name())
			event.Body = body
			l.said.Messages = append(l.said.Messages, body.Message)
		}
	case Exit:
		l.said.Exit = true
	case Token, ToolOutput: // pieces of something; they come as they come
		l.stage.pass(event)
		return nil
	case Finished:
		return fmt.Errorf("agent: %s yielded Finished, which is for the runner to say", l.stage.agent.Name())
	case ToolDone, Transferred:
	}
	l.said.Events++
	if l.skip > 0 {
		l.skip--
		return nil
	}
	l.stage.pass(event)
	return nil
}

// remember writes down what the agent has said, to be saved together with its question.
func (l *listener) remember(ctx context.Context, scope *visit.Scope, before said) error {
	l.said.Events = max(l.said.Events, before.Events)
	data, err := json.Marshal(l.said)
	if err != nil {
		return &fermata.EncodeError{What: "what " + scope.FullAddress() + " has said", Err: err}
	}
	return scope.Record(ctx, entryShown, data, visit.Later)
}
