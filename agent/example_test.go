package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// readme:start
type Trip struct {
	To string `json:"to" jsonschema:"the city to go to"`
}

func bookTicket(ctx context.Context, t Trip) (string, error) {
	return "booked: one seat to " + t.To, nil
}

func Example() {
	clerk, err := agent.NewChat(agent.Chat{
		Name:  "clerk",
		Model: script.New(script.Call("book_ticket", `{"to":"Paris"}`), script.Say("Have a nice trip!")),
		Tools: []*tool.Tool{tool.Approve(tool.New("book_ticket", "Books a train ticket.", bookTicket))},
	})
	if err != nil {
		log.Fatal(err)
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: clerk, Store: memory.New()})
	if err != nil {
		log.Fatal(err)
	}

	var question *fermata.InterruptCtx
	for event, err := range runner.Query(context.Background(), "To Paris, please.", agent.WithRun("trip-1")) {
		if err != nil {
			log.Fatal(err)
		}
		if waits, ok := event.Body.(agent.Interrupted); ok {
			question = waits.Interrupts[0]
		}
	}
	asked, _ := fermata.Approval.Question(question)
	fmt.Printf("%s asks: %s %s\n", question.Address, asked.Summary, asked.Args)

	// A minute or a month later, perhaps in another process.
	yes := agent.Answer(question.ID, fermata.Yes("ann"))
	for event, err := range runner.Resume(context.Background(), "trip-1", yes) {
		if err != nil {
			log.Fatal(err)
		}
		switch body := event.Body.(type) {
		case agent.ToolDone:
			fmt.Println(body.Result.Text)
		case agent.MessageAdded:
			fmt.Println(body.Message.Text)
		}
	}
	// Output:
	// agent:clerk;tool:book_ticket#call_1_1 asks: Books a train ticket. {"to":"Paris"}
	// booked: one seat to Paris
	// Have a nice trip!
}

// readme:end

// An agent is part of a graph like any other code: its interrupts are the graph's interrupts.
func ExampleRun() {
	critic, err := agent.NewChat(agent.Chat{Name: "critic", Model: script.New(script.Say("Too long."))})
	if err != nil {
		log.Fatal(err)
	}
	editor, err := agent.NewFunc("editor", "Asks a critic.", func(ctx context.Context, input *agent.Input) (*agent.Output, error) {
		said, err := agent.Run(ctx, critic, input)
		if err != nil {
			return nil, err
		}
		return &agent.Output{Messages: []agent.Message{agent.Assistant("The critic says: " + said.Text())}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: editor, Store: memory.New()})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range runner.Query(context.Background(), "Once upon a time …") {
		if err != nil {
			log.Fatal(err)
		}
		if end, ok := event.Body.(agent.Finished); ok {
			fmt.Println(end.Output.Text())
		}
	}
	// Output: The critic says: Too long.
}
