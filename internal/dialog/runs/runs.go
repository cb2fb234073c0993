// Package runs connects conversations to an executor: each new intent of the user is a run of a
// graph or agent, and each open question is an interrupt of such a run.
//
//	connected, err := runs.New(runs.Config{Executor: e, Graph: "inproc:assistant"})
//	handler, err := conversation.New(conversation.Config{Store: encrypted.New(file, sealer), Runs: connected})
//	record, err := handler.Message(ctx, "acme", "c-1", dialog.Message{Text: "Mail Anna", Actor: "ada"})
//
// The state key of a run is derived from the conversation, and the resume id of an answer from its
// interrupt. So a repeated start or answer counts once, and a conversation survives a crash between
// any two steps.
package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// Config configures [Runs]. Executor, and Graph or Assistants, are required.
type Config struct {
	Executor *executor.Executor
	// Graph is the graph or agent that a new intent starts, such as "inproc:assistant".
	Graph string
	// Assistants have the graphs of the conversations that name an assistant.
	Assistants []dialog.Assistant
	// Input returns the input of a run of Graph. The default is the input of an agent: the message,
	// after the lines of the conversation before it.
	Input func(dialog.Start) (json.RawMessage, error)
	// Person is the graph that asks a person to answer for the user: that of [HandOver]. Without
	// one, Machine.HandOver must be false.
	Person string
	// Wait is how long a start or an answer waits for its run; 0 is that of the executor.
	Wait time.Duration
}

// Runs implements [conversation.Runs] with an executor.
type Runs struct{ config Config }

var _ conversation.Runs = (*Runs)(nil)

// via names the channel in audit records.
const via = "conversation"

// New returns the connection.
func New(config Config) (*Runs, error) {
	if config.Executor == nil || config.Graph == "" && len(config.Assistants) == 0 {
		return nil, errors.New("runs: Config.Executor or Config.Graph is missing")
	}
	if config.Input == nil {
		config.Input = agentInput
	}
	return &Runs{config}, nil
}

// maxContext is the number of earlier lines that an agent gets, and maxContextSize their size in
// bytes of JSON. A run may begin with [executor.MaxInput] bytes.
const (
	maxContext     = 40
	maxContextSize = 128 << 10
)

func agentInput(start dialog.Start) (json.RawMessage, error) {
	type message struct {
		Role string `json:"role"`
		Text string `json:"text"`
	}
	last := len(start.Lines) - 1
	var input struct {
		Query    string    `json:"query"`
		Messages []message `json:"messages,omitempty"`
	}
	input.Query = start.Lines[last].Text
	size := 0
	for _, line := range slices.Backward(start.Lines[max(0, last-maxContext):last]) {
		earlier := message{"assistant", line.Text}
		if line.From == dialog.ByUser {
			earlier.Role = "user"
		}
		data, _ := json.Marshal(earlier) // strings
		if size += len(data) + 1; size > maxContextSize {
			break
		}
		input.Messages = append(input.Messages, earlier)
	}
	slices.Reverse(input.Messages)
	return json.Marshal(input)
}

func (r *Runs) wait(noWait bool) time.Duration {
	if noWait {
		return -1
	}
	return r.config.Wait
}

// Assistants lists the assistants. The first one is the default.
func (r *Runs) Assistants() []dialog.Assistant {
	list := slices.Clone(r.config.Assistants)
	if r.config.Graph != "" {
		list = slices.Insert(list, 0, dialog.Assistant{Title: "Assistant", Graph: r.config.Graph})
	}
	return list
}

// assistant returns the graph of an assistant; "" if the server does not have it any more.
func (r *Runs) assistant(id string) string {
	for _, a := range r.Assistants() {
		if a.ID == id {
			return a.Graph
		}
	}
	return ""
}

// Start implements [conversation.Runs].
func (r *Runs) Start(ctx context.Context, account string, start dialog.Start) error {
	graph, ask := r.assistant(start.Assistant), r.config.Input
	if start.Assistant != "" {
		ask = agentInput
	}
	var input json.RawMessage
	var err error
	if start.Question != nil {
		if graph = r.config.Person; graph == "" {
			return errors.New("runs: Config.Person is missing")
		}
		input, err = json.Marshal(handOver{Asked: HandedOver{Question: start.Question.Question, Transcript: transcriptOf(start.Lines)}})
	} else {
		input, err = ask(start)
	}
	if err != nil {
		return fmt.Errorf("runs: input: %w", err)
	}
	if graph == "" {
		return fmt.Errorf("%w: there is no assistant %q", conversation.ErrRejected, start.Assistant)
	}
	_, err = r.config.Executor.Start(ctx, executor.StartRequest{
		Account: account, StateKey: start.Run, Graph: graph, Input: input, ReserveStateKey: true, Actor: start.User, EndUser: start.User, Via: cmp.Or(start.Via, via), Wait: r.wait(start.NoWait),
	})
	if _, pending := errors.AsType[*executor.PendingError](err); pending {
		return nil
	}
	for _, permanent := range []error{executor.ErrInvalid, executor.ErrStateKeyInUse, executor.ErrGraphNotFound} {
		if errors.Is(err, permanent) {
			return fmt.Errorf("%w: %w", conversation.ErrRejected, err)
		}
	}
	return err
}

// Resume implements [conversation.Runs].
func (r *Runs) Resume(ctx context.Context, account string, resume conversation.Resume) error {
	value, err := json.Marshal(resume.Answer)
	if err != nil {
		return err
	}
	_, err = r.config.Executor.Decide(ctx, executor.DecideRequest{
		Account: account, StateKey: resume.Run, ResumeID: resume.ID, Actor: resume.User, Via: cmp.Or(resume.Via, via),
		Targets: map[string]executor.Answer{resume.Interrupt: {Value: value}}, Wait: r.wait(resume.NoWait),
	})
	if _, pending := errors.AsType[*executor.PendingError](err); pending {
		return nil
	}
	if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
		return fmt.Errorf("%w: %s", conversation.ErrGone, refused.Result)
	}
	if errors.Is(err, executor.ErrRunNotFound) {
		return fmt.Errorf("%w: the run was deleted", conversation.ErrGone)
	}
	return err
}

// State implements [conversation.Runs].
func (r *Runs) State(ctx context.Context, account, run string) (conversation.RunState, error) {
	view, err := r.config.Executor.GetRun(ctx, account, run)
	if errors.Is(err, executor.ErrRunNotFound) || errors.Is(err, store.ErrNotFound) {
		return conversation.RunState{Ended: true, Failed: true}, nil // deleted
	}
	if err != nil {
		return conversation.RunState{}, err
	}
	switch view.Status {
	case store.StatusReady, store.StatusRunning:
		return conversation.RunState{Executing: true}, nil
	case store.StatusFailed, store.StatusCancelled, store.StatusSuperseded:
		return conversation.RunState{Ended: true, Failed: true}, nil
	case store.StatusParked: // waits for an operator
		return conversation.RunState{}, nil
	case store.StatusWaiting, store.StatusCompleted:
	}
	switch outcome := view.Outcome.(type) {
	case fermata.NeedsInput:
		return waiting(outcome)
	case fermata.Completed:
		return r.completed(outcome)
	case fermata.Failed:
		return conversation.RunState{Ended: true, Failed: true}, nil
	}
	return conversation.RunState{Executing: true}, nil // the outcome is not stored yet
}

func waiting(outcome fermata.NeedsInput) (conversation.RunState, error) {
	var state conversation.RunState
	for _, open := range outcome.Interrupts {
		if open.Kind != dialog.Request.Name() {
			state.Held = true // an approver decides
			continue
		}
		var q dialog.Question
		if err := json.Unmarshal(open.Data, &q); err != nil {
			return state, fmt.Errorf("runs: question %s: %w", open.ID, err)
		}
		state.Open = append(state.Open, conversation.OpenQuestion{Interrupt: open.ID, Question: q})
	}
	return state, nil
}

func (r *Runs) completed(outcome fermata.Completed) (conversation.RunState, error) {
	state := conversation.RunState{Ended: true, Output: outcome.Content}
	var person handOver
	if json.Unmarshal(outcome.Output, &person) == nil && person.Given != nil {
		state.Answer = &dialog.Answer{Option: person.Given.Option, Text: person.Given.Text, Yes: person.Given.Yes, Fields: person.Given.Fields}
	}
	return state, nil
}
