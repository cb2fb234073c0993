// Payment has a supervisor who delegates: a clerk finds the invoice, a cashier pays it, and you
// approve the payment. It shows [agent.NewSupervisor]: the question comes from an agent inside a
// tool call of another agent, and the run continues exactly there; neither the supervisor nor the
// clerk starts again.
//
//	go run ./examples/payment
//	go run ./examples/payment -run brightside -task "Pay what we owe to Brightside"
//
// Without an API key the model is a script. Payments are in .demo/payments.
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
	runName = flag.String("run", "payment-1", "`name` of the run to start or continue")
	task    = flag.String("task", "Pay the open invoice of Brightside Lamps.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/payment.db")
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
	supervisor, err := newSupervisor(filepath.Join(dir, "payments"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: supervisor, Store: runs})
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
	fmt.Fprintf(out, "\n%q\n%s %s\nasked by %s\n", question.Summary, question.Action, question.Args, open.Address)
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
			if body.Message.Text != "" && body.Message.Role == agent.RoleAssistant {
				fmt.Fprintf(out, "%s: %s\n", event.Agent, body.Message.Text)
			}
		case agent.ToolDone:
			fmt.Fprintf(out, "  %s: %s\n", body.Call.Name, body.Result.Text)
		default: // the other events are not for the terminal
		}
	}
	return nil
}

// model returns a real model if there is an API key, and the script without one.
func model(lines ...script.Line) agent.Model {
	var m agent.Model = script.New(lines...)
	var err error
	switch {
	case os.Getenv("ANTHROPIC_API_KEY") != "":
		m, err = anthropic.New(anthropic.Config{Model: "claude-sonnet-5"})
	case os.Getenv("OPENAI_API_KEY") != "":
		m, err = openai.New(openai.Config{Model: "gpt-5-mini"})
	}
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// newSupervisor creates the agents:
//
//	supervisor ─┬─▶ clerk ──▶ find_invoices
//	            └─▶ cashier ──▶ ⏸ transfer_money
func newSupervisor(bank string) (agent.Agent, error) {
	clerk, err := agent.NewChat(agent.Chat{
		Name: "clerk", Description: "Knows the invoices. Ask it what is open.",
		Instruction: "You look up invoices and report number, amount, currency and account, and nothing else.",
		Model:       model(clerkLines...),
		Tools:       []*tool.Tool{findInvoices},
	})
	if err != nil {
		return nil, err
	}
	cashier, err := agent.NewChat(agent.Chat{
		Name: "cashier", Description: "Pays invoices. Tell it number, amount, currency and account.",
		Instruction: "You pay what you are told to, with one transfer. Report the receipt, or why nothing was paid.",
		Model:       model(cashierLines...),
		Tools:       []*tool.Tool{tool.Approve(transferMoney(bank), tool.Summary(summary))},
	})
	if err != nil {
		return nil, err
	}
	return agent.NewSupervisor(agent.Supervisor{
		Chat: agent.Chat{
			Name:        "supervisor",
			Instruction: "You see to it that invoices are paid. Have the clerk find them and the cashier pay them, one at a time. Then report to the user.",
			Model:       model(supervisorLines...),
		},
		Workers: []agent.Agent{clerk, cashier},
	})
}

// Transfer is the argument of the tool.
type Transfer struct {
	Invoice  string `json:"invoice"`
	Account  string `json:"account" jsonschema:"the IBAN of the payee"`
	Amount   string `json:"amount" jsonschema:"with two decimals, as 12.50"` // money is not a float
	Currency string `json:"currency"`
}

// transferMoney is idempotent: the bank executes one transfer per key.
func transferMoney(bank string) *tool.Tool {
	return tool.New("transfer_money", "Transfers money. It cannot be called back.", func(ctx context.Context, t Transfer) (string, error) {
		if err := os.MkdirAll(bank, 0o700); err != nil {
			return "", err
		}
		receipt := "R-" + tool.Key(ctx)
		err := os.WriteFile(filepath.Join(bank, receipt), fmt.Appendln(nil, t), 0o600)
		return "Paid. The receipt is " + receipt + ".", err
	}, tool.Idempotent())
}

func summary(args json.RawMessage) string {
	var t Transfer
	if err := json.Unmarshal(args, &t); err != nil {
		return "Transfer money" // the arguments are shown below
	}
	return fmt.Sprintf("Pay %s %s to %s for invoice %s. It cannot be called back.", t.Amount, t.Currency, t.Account, t.Invoice)
}

type search struct {
	Payee string `json:"payee"`
}

var findInvoices = tool.New("find_invoices", "Lists the open invoices of a payee.", func(_ context.Context, s search) (string, error) {
	if !strings.Contains(strings.ToLower(s.Payee), "brightside") {
		return "None is open.", nil
	}
	return "2026-118: 480.00 EUR to DE02 1203 0000 0000 2020 51, due on 30 November", nil
}, tool.Repeatable())

// The scripted models. Each agent has its own.
var (
	supervisorLines = []script.Line{
		script.Call("clerk", `{"request":"Which invoice of Brightside Lamps is open?"}`),
		script.Call("cashier", `{"request":"Pay invoice 2026-118: 480.00 EUR to DE02 1203 0000 0000 2020 51."}`),
		reply(func(report agent.Message) string { return "The cashier reports: " + report.Text }),
	}
	clerkLines = []script.Line{
		script.Call("find_invoices", `{"payee":"Brightside Lamps"}`),
		reply(func(found agent.Message) string { return found.Text }),
	}
	cashierLines = []script.Line{
		script.Call("transfer_money", `{"invoice":"2026-118","account":"DE02 1203 0000 0000 2020 51","amount":"480.00","currency":"EUR"}`),
		reply(func(result agent.Message) string {
			if result.Failed {
				return "Nothing was paid. " + result.Text
			}
			return result.Text
		}),
	}
)

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
