// Ticket books a train ticket after you have approved it. It shows [tool.Approve]: searching trains
// needs no approval, booking needs a person, and a rejection reaches the model with its reason.
//
//	go run ./examples/ticket                       # the scripted model, offline
//	go run ./examples/ticket -model anthropic      # a real one; -model openai, or openai/NAME -url http://localhost:11434/v1
//	go run ./examples/ticket -task "Book two seats from Vienna to Prague on 5 January 2027" -run prague
//
// Leave at the question with Ctrl-C or kill -9, and start it again: it shows the same question.
// Kill it right after your answer: it continues without asking again, and the ticket is booked
// once. The tickets are in .demo/ticket-office.jsonl.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/target"
	"github.com/fermata-go/fermata/tool"
)

func main() { console.Main(example) }

var example = console.Example{
	Name:  "ticket",
	About: "an agent books a train ticket, you approve it.",
	Task:  "I have to be in Paris on 18 December 2026, before noon. Book me a train from Berlin.",
	Build: build,
}

func build(kit *console.Kit) (agent.Agent, error) {
	book := bookTicket(target.Open(kit.Data, "ticket-office"))
	return agent.NewChat(agent.Chat{
		Name:        "clerk",
		Instruction: "You book train tickets. Look for trains first, choose the one that suits best, and book it. Then tell the user the ticket number, or why there is no ticket.",
		Model:       kit.Model(lines...),
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

// bookTicket is idempotent: the office stores the key of each call, and books each key once. A call
// that a crash interrupted is repeated without asking a person.
func bookTicket(office *target.Log) *tool.Tool {
	return tool.New("book_ticket", "Books train tickets. They are paid at once and cannot be returned.", func(ctx context.Context, b Booking) (string, error) {
		if b.Passengers < 1 {
			return "", tool.Errorf("%d is not a valid number of passengers.", b.Passengers)
		}
		number, err := office.DoOnce(tool.Key(ctx), b)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Booked. The ticket number is T-%d.", number), nil
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
	console.Reply(func(result agent.Message) string {
		if result.Failed {
			return "I have booked nothing. " + result.Text
		}
		return "You arrive in Paris on 18 December at 10:20. " + result.Text
	}),
}
