// Email writes to a customer after you have reviewed the text. It shows [tool.Review]: you may send
// it, refuse it, or change the recipient, the subject and the text first; the model is told about
// your changes.
//
//	go run ./examples/email
//	go run ./examples/email -run rosa -task "Tell rosa@example.com that her order 7 is late, and why"
//
// Without an API key the model is a script. At the question type y, n REASON, or a change such as
// to=jan@example.com. Sent mails are in .demo/outbox.jsonl.
//
// A mail server has no idempotency keys. If the process dies while it sends, the outcome is unknown
// and you are asked: the run neither sends the mail twice nor loses it.
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
	runName = flag.String("run", "email-1", "`name` of the run to start or continue")
	task    = flag.String("task", "Jan Novak complained that his lamp came broken. Apologise and promise a new one. His address is jan@example.com.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/email.db")
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
	writer, err := newWriter(filepath.Join(dir, "outbox.jsonl"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: writer, Store: runs})
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
	if open.Kind == fermata.EffectInDoubt.Name() {
		return askInDoubt(open, in, out)
	}
	question, err := fermata.Approval.Question(open)
	if err != nil {
		return nil, err
	}
	var mail Email
	if err := json.Unmarshal(question.Args, &mail); err != nil {
		return nil, err
	}
	decision := fermata.Yes("you")
	for {
		fmt.Fprintf(out, "\nto: %q\nsubject: %q\nbody: %q\n", mail.To, mail.Subject, mail.Body)
		line, err := prompt("Send it? y, n REASON, or FIELD=VALUE to change it", in, out)
		if err != nil {
			return nil, err
		}
		word, reason, _ := strings.Cut(line, " ")
		field, value, _ := strings.Cut(line, "=")
		switch {
		case word == "y":
			return map[string]any{open.ID: decision}, nil
		case word == "n":
			return map[string]any{open.ID: fermata.No("you", reason)}, nil
		case field == "to":
			mail.To = value
		case field == "subject":
			mail.Subject = value
		case field == "body":
			mail.Body = strings.ReplaceAll(value, `\n`, "\n")
		default:
			fmt.Fprintln(out, "The fields are to, subject and body.")
		}
		if decision.Args, err = json.Marshal(mail); err != nil {
			return nil, err
		}
	}
}

// askInDoubt asks whether the mail was sent before the process died.
func askInDoubt(open *fermata.InterruptCtx, in *bufio.Scanner, out io.Writer) (map[string]any, error) {
	question, err := fermata.EffectInDoubt.Question(open)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%s was started, and its outcome is unknown: %s\nLook for %s in the outbox.\n", question.Action, question.Args, question.Key)
	for {
		line, err := prompt("Was it sent? y or n", in, out)
		if err != nil {
			return nil, err
		}
		switch line {
		case "y":
			return map[string]any{open.ID: fermata.EffectResolution{Happened: true, By: "you", Receipt: json.RawMessage(`{"text":"It was sent."}`)}}, nil
		case "n":
			return map[string]any{open.ID: fermata.EffectResolution{By: "you"}}, nil // it is sent now
		}
	}
}

func prompt(label string, in *bufio.Scanner, out io.Writer) (string, error) {
	fmt.Fprint(out, label+" > ")
	if !in.Scan() {
		return "", errors.Join(errors.New("no answer: the run waits, start the program again"), in.Err())
	}
	return in.Text(), nil
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

func newWriter(outbox string) (agent.Agent, error) {
	return agent.NewChat(agent.Chat{
		Name:        "writer",
		Instruction: "You write e-mails for a small shop: short, warm, without excuses. Send each with send_email. A person reads it first and may change it. Then report what was sent, as it was sent, or why nothing was.",
		Model:       model(lines...),
		Tools:       []*tool.Tool{tool.Review(sendEmail(outbox), tool.Summary(summary))},
	})
}

// Email is the argument of the tool.
type Email struct {
	To      string `json:"to" jsonschema:"the address of one recipient"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// sent is a line of the outbox. The key helps a person to find a mail; the outbox ignores it.
type sent struct {
	Key  string `json:"key"`
	Mail Email  `json:"mail"`
}

// sendEmail is not idempotent, and is not declared so.
func sendEmail(outbox string) *tool.Tool {
	return tool.New("send_email", "Sends an e-mail.", func(ctx context.Context, m Email) (string, error) {
		if name, host, ok := strings.Cut(m.To, "@"); !ok || name == "" || host == "" {
			return "", tool.Errorf("%q is not a mail address. Nothing was sent.", m.To)
		}
		line, err := json.Marshal(sent{tool.Key(ctx), m})
		if err != nil {
			return "", err
		}
		file, err := os.OpenFile(outbox, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return "", err
		}
		_, err = file.Write(append(line, '\n'))
		return "Sent to " + m.To + ".", errors.Join(err, file.Close())
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
	reply(func(result agent.Message) string {
		switch {
		case result.Failed:
			return "I have not written to Jan. " + result.Text
		case strings.Contains(result.Text, "changed the arguments"):
			return "Jan has his answer, as you changed it."
		}
		return "Jan has his answer. " + result.Text
	}),
}

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
