// Ticket books a train ticket after you have approved it. It shows [tool.Approve]: searching trains
// needs no approval, booking needs a person, and a rejection reaches the model with its reason.
//
//	go run ./examples/ticket
//	go run ./examples/ticket -run prague -task "Book two seats from Vienna to Prague on 5 January 2027"
//
// Without an API key the model is a script. Leave at the question with Ctrl-C or kill -9, and start
// it again: it shows the same question. Kill it right after your answer: it continues without
// asking again, and the ticket is booked once. The tickets are in .demo/tickets.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
	"github.com/fermata-go/fermata/tool"
)

var (
	runName = flag.String("run", "ticket-1", "`name` of the run to start or continue")
	task    = flag.String("task", "I have to be in Paris on 18 December 2026, before noon. Book me a train from Berlin.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/ticket.db")
	if err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), ".demo", runs, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run takes the run from its saved state to its end. It keeps nothing between two iterations, so
// another process can continue at any point.
func run(ctx context.Context, dir string, runs store.Checkpoints, in io.Reader, out io.Writer) error {
	clerk, err := newClerk(filepath.Join(dir, "tickets"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: clerk, Store: runs})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for {
		var events iter.Seq2[*agent.Event, error]
		saved, err := runner.Inspect(ctx, *runName)
		switch {
		case errors.Is(err, graph.ErrUnknownRun):
			events = runner.Query(ctx, *task, agent.WithRun(*runName))
		case err != nil:
			return err
		case saved.Status == graph.StatusFinished:
			fmt.Fprintf(out, "\n✓ %s\n", saved.Output.Text())
			return nil
		case saved.Status == graph.StatusWaiting:
			answer, err := ask(saved.Interrupts[0], lines, out)
			if err != nil {
				return err
			}
			events = runner.ResumeWithParams(ctx, *runName, &agent.ResumeParams{Targets: answer})
		default:
			// The process of the run died. A run has one process here, so taking over is safe.
			events = runner.Resume(ctx, *runName, agent.TakeOver())
		}
		if err := show(events, out); err != nil {
			return err
		}
	}
}

// ask shows a question and returns the answer by the id of the question.
func ask(open *fermata.InterruptCtx, in *bufio.Scanner, out io.Writer) (map[string]any, error) {
	question, err := fermata.Approval.Question(open)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%q\n%s %s\n", question.Summary, question.Action, question.Args)
	for {
		fmt.Fprint(out, "Approve? y, or n REASON > ")
		if !in.Scan() {
			return nil, errors.Join(errors.New("no answer: the run waits, start the program again"), in.Err())
		}
		word, reason, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "y":
			return map[string]any{open.ID: fermata.Yes("you")}, nil
		case "n":
			return map[string]any{open.ID: fermata.No("you", reason)}, nil
		}
	}
}

// show prints what the agent does, until it waits or ends.
func show(events iter.Seq2[*agent.Event, error], out io.Writer) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		switch body := event.Body.(type) {
		case agent.MessageAdded:
			if body.Message.Text != "" {
				fmt.Fprintf(out, "%s: %s\n", body.Message.Role, body.Message.Text)
			}
		case agent.ToolDone:
			fmt.Fprintf(out, "  %s: %s\n", body.Call.Name, body.Result.Text)
		default: // the other events are not for the terminal
		}
	}
	return nil
}

// model returns a real model if there is an API key, and the script without one.
func model(lines ...script.Line) (agent.Model, error) {
	switch {
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: "claude-sonnet-5"})
	case os.Getenv("OPENAI_API_KEY") != "":
		return openai.New(openai.Config{Model: "gpt-5-mini"})
	}
	return script.New(lines...), nil
}

func newClerk(office string) (agent.Agent, error) {
	model, err := model(lines...)
	if err != nil {
		return nil, err
	}
	book := bookTicket(office)
	return agent.NewChat(agent.Chat{
		Name:        "clerk",
		Instruction: "You book train tickets. Look for trains first, choose the one that suits best, and book it. Then tell the user the ticket number, or why there is no ticket.",
		Model:       model,
		Tools:       []*tool.Tool{findTrains, tool.Approve(book, tool.Summary(summary))},
	})
}

// Booking is the argument of the tool.
type Booking struct {
	Train      string `json:"train" jsonschema:"as find_trains names it"`
	From       string `json:"from"`
	To         string `json:"to"`
	Date       string `json:"date" jsonschema:"as 2026-12-31"`
	Passengers int    `json:"passengers"`
	Price      string `json:"price" jsonschema:"of all tickets, with the currency"`
}

// bookTicket is idempotent: the office has one file per key. A call that a crash interrupted is
// repeated without asking a person.
func bookTicket(office string) *tool.Tool {
	return tool.New("book_ticket", "Books train tickets. They are paid at once and cannot be returned.", func(ctx context.Context, b Booking) (string, error) {
		if b.Passengers < 1 {
			return "", tool.Errorf("%d is not a valid number of passengers.", b.Passengers)
		}
		if err := os.MkdirAll(office, 0o700); err != nil {
			return "", err
		}
		number := "T-" + tool.Key(ctx)
		err := os.WriteFile(filepath.Join(office, number), fmt.Appendln(nil, b), 0o600)
		return "Booked. The ticket number is " + number + ".", err
	}, tool.Idempotent())
}

// summary is the first line that the approver reads.
func summary(args json.RawMessage) string {
	var b Booking
	if err := json.Unmarshal(args, &b); err != nil {
		return "Book a ticket" // the arguments are shown below
	}
	return fmt.Sprintf("Buy %d × %s → %s on %s with %s, for %s. It cannot be returned.", b.Passengers, b.From, b.To, b.Date, b.Train, b.Price)
}

type search struct {
	From string `json:"from"`
	To   string `json:"to"`
	Date string `json:"date" jsonschema:"as 2026-12-31"`
}

// findTrains only reads, so it needs no approval and may be repeated.
var findTrains = tool.New("find_trains", "Lists the trains of a day with their prices.", func(_ context.Context, s search) (string, error) {
	return fmt.Sprintf("%s → %s on %s:\nNJ 424, 18:18 to 10:20 the next day, 89.90 EUR\nICE 9552, 06:05 to 14:01, 119.90 EUR", s.From, s.To, s.Date), nil
}, tool.Repeatable())

// lines is the scripted model.
var lines = []script.Line{
	script.Call("find_trains", `{"from":"Berlin","to":"Paris","date":"2026-12-17"}`),
	script.Message(agent.Assistant("The night train arrives in time, so I take that one.", agent.ToolCall{
		Name: "book_ticket", Args: `{"train":"NJ 424","from":"Berlin","to":"Paris","date":"2026-12-17","passengers":1,"price":"89.90 EUR"}`,
	})),
	func(request *agent.Request) (agent.Message, error) {
		booked := request.Messages[len(request.Messages)-1]
		if booked.Failed {
			return agent.Assistant("I have booked nothing. " + booked.Text), nil
		}
		return agent.Assistant("You arrive in Paris on 18 December at 10:20. " + booked.Text), nil
	},
}
