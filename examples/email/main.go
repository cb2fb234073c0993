// Email writes to a customer after you have reviewed the text. It shows [tool.Review]: you may send
// it, refuse it, or change the recipient, the subject and the text first; the model is told about
// your changes.
//
//	go run ./examples/email
//	go run ./examples/email -model openai -task "Tell rosa@example.com that her order 7 is late, and why" -run rosa
//
// At the question type y, n REASON, "e to=jan@example.com" or "e body" for several lines. Sent
// mails are in .demo/outbox.jsonl.
//
// A mail server has no idempotency keys. If the process dies while it sends, the outcome is unknown
// and you are asked: the run neither sends the mail twice nor loses it.
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
	Name:  "email",
	About: "an agent writes an e-mail, you read it before it is sent.",
	Task:  "Jan Novak complained that his lamp came broken. Apologise and promise a new one. His address is jan@example.com.",
	Build: build,
}

func build(kit *console.Kit) (agent.Agent, error) {
	outbox := target.Open(kit.Data, "outbox")
	return agent.NewChat(agent.Chat{
		Name:        "writer",
		Instruction: "You write e-mails for a small shop: short, warm, without excuses. Send each with send_email. A person reads it first and may change it. Then report what was sent, as it was sent, or why nothing was.",
		Model:       kit.Model(lines...),
		Tools:       []*tool.Tool{tool.Review(sendEmail(outbox), tool.Summary(summary))},
	})
}

// Email is the argument of the tool.
type Email struct {
	To      string `json:"to" jsonschema:"the address of one recipient"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// sendEmail is not idempotent, and is not declared so.
func sendEmail(outbox *target.Log) *tool.Tool {
	return tool.New("send_email", "Sends an e-mail.", func(ctx context.Context, m Email) (string, error) {
		if name, host, ok := strings.Cut(m.To, "@"); !ok || name == "" || host == "" {
			return "", tool.Errorf("%q is not a mail address. Nothing was sent.", m.To)
		}
		if err := outbox.Do(tool.Key(ctx), m); err != nil {
			return "", err
		}
		return "Sent to " + m.To + ".", nil
	})
}

func summary(args json.RawMessage) string {
	var m Email
	if err := json.Unmarshal(args, &m); err != nil {
		return "Send an e-mail" // the arguments are shown below
	}
	return fmt.Sprintf("Send “%s” to %s", m.Subject, m.To)
}

// lines is the scripted model.
var lines = []script.Line{
	script.Call("send_email", `{"to":"jan@example.com","subject":"Your lamp","body":"Dear Jan,\n\nthe lamp came broken, and that is our fault. A new one is on its way.\n\nThe lamp shop"}`),
	console.Reply(func(result agent.Message) string {
		switch {
		case result.Failed:
			return "I have not written to Jan. " + result.Text
		case strings.Contains(result.Text, "changed the arguments"):
			return "Jan has his answer, as you changed it."
		}
		return "Jan has his answer. " + result.Text
	}),
}
