package fromeino_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/tool"
)

var ctx = context.Background()

// doc:start agent
type Booking struct {
	Location  string `json:"location"`
	Passenger string `json:"passenger"`
}

func newBooker(model agent.Model) (agent.Agent, error) {
	book := tool.New("book_ticket", "Books a ticket.", func(_ context.Context, b Booking) (string, error) {
		return "booked " + b.Location + " for " + b.Passenger, nil
	})
	return agent.NewChat(agent.Chat{
		Name: "booker", Description: "Books tickets.", Model: model,
		Tools: []*tool.Tool{tool.Approve(book)}, // asks a person before each call
	})
}

// doc:end

func Example_approval() {
	model := script.New(script.Calls(agent.ToolCall{Name: "book_ticket", Args: `{"location":"Oslo","passenger":"Ann"}`}), script.Say("Done."))
	booker, err := newBooker(model)
	if err != nil {
		panic(err)
	}

	// doc:start runner
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: booker, Store: memory.New(), EnableStreaming: true})
	if err != nil {
		panic(err)
	}
	var waiting agent.Interrupted
	for event, err := range runner.Query(ctx, "a ticket to Oslo", agent.WithRun("1")) {
		if err != nil {
			panic(err)
		}
		if body, ok := event.Body.(agent.Interrupted); ok {
			waiting = body
		}
	}
	// doc:end

	// doc:start points
	for _, point := range waiting.Interrupts {
		question, err := fermata.Approval.Question(point)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s %s?\n", point.Address, question.Action, question.Args)
	}
	// doc:end

	// doc:start decide
	decision := fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}
	if false { // the person says no
		decision = fermata.Decision{Verb: fermata.VerbReject, By: "ann", Reason: "too late in the year"}
	}
	// doc:end

	// doc:start resume
	for event, err := range runner.ResumeWithParams(ctx, "1", &agent.ResumeParams{
		Targets: map[string]any{waiting.Interrupts[0].ID: decision},
	}) {
		if err != nil {
			panic(err)
		}
		if body, ok := event.Body.(agent.ToolDone); ok {
			fmt.Println(body.Result.Text)
		}
	}
	// doc:end

	// Output:
	// agent:booker;tool:book_ticket#call_1_1: book_ticket {"location":"Oslo","passenger":"Ann"}?
	// booked Oslo for Ann
}

type base struct{ name string }

func (b base) Name() string        { return b.name }
func (b base) Description() string { return "an agent written by hand" }

// doc:start stateful
type Progress struct{ Items int }

// editor is an agent that stops with its state and has a method for the resume.
type editor struct{ base }

func (e editor) Run(ctx context.Context, _ *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		yield(agent.StatefulInterrupt(ctx, "Which title?", Progress{Items: 42}), nil)
		// without a state: agent.Interrupt(ctx, "Which title?")
	}
}

// Resume is called only when the interrupt of this agent was answered: agents that are not a target
// stay parked, and need no code for it.
func (e editor) Resume(ctx context.Context, _ *agent.ResumeInfo) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		_, _, progress := fermata.GetInterruptState[Progress](ctx)
		_, _, title := fermata.GetResumeContext[string](ctx)
		text := fmt.Sprintf("%q after %d items", title, progress.Items)
		yield(&agent.Event{Body: agent.MessageAdded{Message: agent.Assistant(text)}}, nil)
	}
}

// doc:end

// doc:start composite
// board runs other agents itself and combines their interrupts. For custom agents as members, and
// where the own info is not needed, agent.Run and agent.NewParallel do this.
type board struct {
	base
	members []agent.Agent // from the constructors of package agent
}

func (b board) Run(ctx context.Context, input *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		var waiting []*agent.Event
		for _, member := range b.members { // a member that has finished is not run again
			for event, err := range member.Run(ctx, input) {
				if err != nil {
					yield(nil, err)
					return
				}
				if _, ok := event.Body.(agent.Interrupted); ok {
					waiting = append(waiting, event)
				} else if !yield(event, nil) {
					return
				}
			}
		}
		if len(waiting) > 0 {
			yield(agent.CompositeInterrupt(ctx, "The board needs titles", len(waiting), waiting...), nil)
		}
	}
}

// doc:end

// printEvents prints the messages and interrupts of a run and returns the open interrupts.
func printEvents(events iter.Seq2[*agent.Event, error]) (open []*fermata.InterruptCtx) {
	for event, err := range events {
		if err != nil {
			panic(err)
		}
		switch body := event.Body.(type) {
		case agent.MessageAdded:
			fmt.Println(body.Message.Text)
		case agent.Interrupted:
			for _, point := range body.Interrupts {
				fmt.Println(point.Address, point.Info)
			}
			open = body.Interrupts
		default:
		}
	}
	return open
}

func Example_agentInterrupts() {
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: editor{base{"editor"}}, Store: memory.New()})
	if err != nil {
		panic(err)
	}
	open := printEvents(runner.Query(ctx, "go", agent.WithRun("1")))
	printEvents(runner.ResumeWithParams(ctx, "1", &agent.ResumeParams{Targets: map[string]any{open[0].ID: "Fermata"}}))
	// Output:
	// agent:editor Which title?
	// "Fermata" after 42 items
}

func Example_compositeAgent() {
	var members []agent.Agent
	for _, name := range []string{"a", "b"} {
		member, err := agent.NewSequential(name, "", editor{base{"editor"}})
		if err != nil {
			panic(err)
		}
		members = append(members, member)
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Store: memory.New(), Agent: board{base{"board"}, members}})
	if err != nil {
		panic(err)
	}
	open := printEvents(runner.Query(ctx, "go", agent.WithRun("1")))
	fmt.Println(open[0].Parent.Parent.Info)
	printEvents(runner.ResumeWithParams(ctx, "1", &agent.ResumeParams{Targets: map[string]any{open[0].ID: "One", open[1].ID: "Two"}}))
	// Output:
	// agent:board;agent:a;agent:editor Which title?
	// agent:board;agent:b;agent:editor Which title?
	// The board needs titles
	// "One" after 42 items
	// "Two" after 42 items
}

// doc:start older
type Choice struct {
	Options []string `json:"options"`
}

// chooser is an agent of the older form: it builds its interrupt itself, and reads Data back.
type chooser struct{ base }

func (c chooser) Run(context.Context, *agent.Input) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		yield(&agent.Event{Body: agent.Interrupted{Info: &fermata.InterruptInfo{Data: Choice{[]string{"a", "b"}}}}}, nil)
	}
}

func (c chooser) Resume(_ context.Context, info *agent.ResumeInfo) iter.Seq2[*agent.Event, error] {
	return func(yield func(*agent.Event, error) bool) {
		var choice Choice
		if err := json.Unmarshal(info.InterruptInfo.Data.(json.RawMessage), &choice); err != nil {
			yield(nil, err)
			return
		}
		yield(&agent.Event{Body: agent.MessageAdded{Message: agent.Assistant("one of " + fmt.Sprint(choice.Options))}}, nil)
	}
}

// doc:end

func Example_olderForm() {
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: chooser{base{"chooser"}}, Store: memory.New()})
	if err != nil {
		panic(err)
	}
	// doc:start olderuser
	for event, err := range runner.Query(ctx, "go", agent.WithRun("1")) {
		if err != nil {
			panic(err)
		}
		if body, ok := event.Body.(agent.Interrupted); ok {
			fmt.Println(body.Interrupts[0].Address) // the newer form
			fmt.Println(body.Info.Data.(Choice))    // the older form
		}
	}
	// The resume itself is the answer: every interrupt without a kind continues.
	printEvents(runner.Resume(ctx, "1"))
	// doc:end

	// Output:
	// agent:chooser
	// {[a b]}
	// one of [a b]
}
