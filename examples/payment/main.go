// Payment has a supervisor who delegates: a clerk finds the invoice, a cashier pays it, and you
// approve the payment. It shows [agent.NewSupervisor]: the question comes from an agent inside a
// tool call of another agent, and the run continues exactly there; neither the supervisor nor the
// clerk starts again.
//
//	go run ./examples/payment
//	go run ./examples/payment -model anthropic -task "Pay what we owe to Brightside" -run brightside
//
// Payments are in .demo/bank.jsonl.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/target"
	"github.com/fermata-go/fermata/tool"
)

func main() { console.Main(example) }

var example = console.Example{
	Name:  "payment",
	About: "a supervisor has an invoice found and paid, you approve the payment.",
	Task:  "Pay the open invoice of Brightside Lamps.",
	Build: build,
}

// build creates the agents:
//
//	supervisor ─┬─▶ clerk ──▶ find_invoices
//	            └─▶ cashier ──▶ ⏸ transfer_money
func build(kit *console.Kit) (agent.Agent, error) {
	clerk, err := agent.NewChat(agent.Chat{
		Name: "clerk", Description: "Knows the invoices. Ask it what is open.",
		Instruction: "You look up invoices and report number, amount, currency and account, and nothing else.",
		Model:       kit.Model(clerkLines...),
		Tools:       []*tool.Tool{findInvoices},
	})
	if err != nil {
		return nil, err
	}
	cashier, err := agent.NewChat(agent.Chat{
		Name: "cashier", Description: "Pays invoices. Tell it number, amount, currency and account.",
		Instruction: "You pay what you are told to, with one transfer. Report the receipt, or why nothing was paid.",
		Model:       kit.Model(cashierLines...),
		Tools:       []*tool.Tool{tool.Approve(transferMoney(target.Open(kit.Data, "bank")), tool.Summary(summary))},
	})
	if err != nil {
		return nil, err
	}
	return agent.NewSupervisor(agent.Supervisor{
		Chat: agent.Chat{
			Name:        "supervisor",
			Instruction: "You see to it that invoices are paid. Have the clerk find them and the cashier pay them, one at a time. Then report to the user.",
			Model:       kit.Model(supervisorLines...),
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
func transferMoney(bank *target.Log) *tool.Tool {
	return tool.New("transfer_money", "Transfers money. It cannot be called back.", func(ctx context.Context, t Transfer) (string, error) {
		number, err := bank.DoOnce(tool.Key(ctx), t)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Paid. The receipt is R-%d.", number), nil
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
		console.Reply(func(report agent.Message) string { return "The cashier reports: " + report.Text }),
	}
	clerkLines = []script.Line{
		script.Call("find_invoices", `{"payee":"Brightside Lamps"}`),
		console.Reply(func(found agent.Message) string { return found.Text }),
	}
	cashierLines = []script.Line{
		script.Call("transfer_money", `{"invoice":"2026-118","account":"DE02 1203 0000 0000 2020 51","amount":"480.00","currency":"EUR"}`),
		console.Reply(func(result agent.Message) string {
			if result.Failed {
				return "Nothing was paid. " + result.Text
			}
			return result.Text
		}),
	}
)
