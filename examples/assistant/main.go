// Assistant is a chat with an agent that writes mails and makes appointments. It shows package
// dialog: the agent asks you back, one handler words the questions and understands your replies,
// and the conversation survives the end of the program at any point.
//
//	go run ./examples/assistant
//	go run ./examples/assistant -language de -voice
//	go run ./examples/assistant -model anthropic/claude-sonnet-4-5
//	go run ./examples/assistant -web
//
// Try "write to Anna about lunch": there are two Annas. Answer "the one from legal", "second",
// "someone else", "why?" or "cancel". Mails outside of example.com need a confirmation, by the
// rules in office/policy.yaml. Stop the program at a question and start it again.
//
// With -web it is the chat page of the demo server, with the same assistant.
//
// Sent mails are in .demo/mails.jsonl, appointments in .demo/appointments.jsonl.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/app"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/dialog/classifier"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

func main() {
	data := flag.String("data", ".demo", "directory of the conversations, mails and appointments")
	conversation := flag.String("conversation", "chat", "conversation to start or continue")
	language := flag.String("language", "en", "en, de, fr or es")
	voice := flag.Bool("voice", false, "treat your lines as spoken")
	web := flag.Bool("web", false, "serve the demo with a chat page, instead of the terminal")
	model := flag.String("model", "", "anthropic/NAME or openai/NAME; default: a scripted model")
	flag.Parse()
	if *web {
		os.Exit(serve(*data, *model))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chat := Chat{Conversation: *conversation, Language: dialog.Language(*language), Voice: *voice, In: os.Stdin, Out: os.Stdout}
	if err := run(ctx, *data, *model, chat); err != nil {
		fmt.Fprintln(os.Stderr, "assistant:", err)
		os.Exit(1)
	}
}

// serve runs the demo server with the assistant.
func serve(data, modelName string) int {
	model, judge, err := chooseModels(modelName)
	if err != nil {
		fmt.Fprintln(os.Stderr, "assistant:", err)
		return 1
	}
	assistant, err := office.New(data, model)
	if err != nil {
		fmt.Fprintln(os.Stderr, "assistant:", err)
		return 1
	}
	os.Args = []string{os.Args[0], "demo", "--data", data}
	return app.Main(app.Graphs(inproc.Agent(agent.RunnerConfig{Agent: assistant, EnableStreaming: true})), app.Dialog(executor.DialogConfig{Graph: "inproc:assistant", Model: judge, Machine: dialog.Machine{HandOver: true}}))
}

func run(ctx context.Context, data, modelName string, chat Chat) error {
	model, judge, err := chooseModels(modelName)
	if err != nil {
		return err
	}
	desk, err := Open(data, model, judge)
	if err != nil {
		return err
	}
	defer desk.Close()
	chat.Handler = desk.Handler
	return chat.Run(ctx)
}

const (
	account = "demo"
	user    = "you"
)

// Desk is the handler with everything behind it.
type Desk struct {
	Handler  dialog.Handler
	executor *executor.Executor
	store    *store.Store
}

// Open opens the conversations in a directory. judge interprets replies that exact rules do not
// understand; nil for none.
func Open(dir string, model agent.Model, judge dialog.Model) (*Desk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	assistant, err := office.New(dir, model)
	if err != nil {
		return nil, err
	}
	st, err := sqlite.Open(filepath.Join(dir, "assistant.db"))
	if err != nil {
		return nil, err
	}
	e, err := executor.New(executor.Config{
		Store: st, KeyFile: filepath.Join(dir, "assistant.key"), Graphs: []inproc.Graph{inproc.Agent(agent.RunnerConfig{Agent: assistant})},
		Dialog: &executor.DialogConfig{Graph: "inproc:assistant", Model: judge}, RequestTimeout: -1,
	})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	e.Start()
	return &Desk{Handler: e.Dialog(), executor: e, store: st}, nil
}

// Close stops the executor and closes the store.
func (d *Desk) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(d.executor.Stop(ctx), d.store.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "assistant:", err)
	}
}

// Chat is a conversation in a terminal.
type Chat struct {
	Handler      dialog.Handler
	Conversation string
	Language     dialog.Language
	Voice        bool
	In           io.Reader
	Out          io.Writer

	shown int
}

// Run reads lines until the end of the input. "/record" prints the record of the conversation,
// "/press QUESTION OPTION" presses a button.
func (c *Chat) Run(ctx context.Context) error {
	if record, err := c.Handler.Get(ctx, account, c.Conversation); err == nil {
		c.show(record)
	}
	lines := bufio.NewScanner(c.In)
	for fmt.Fprint(c.Out, "> "); lines.Scan(); fmt.Fprint(c.Out, "> ") {
		if ctx.Err() != nil {
			return nil
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if text == "/record" {
			record, err := c.Handler.Get(ctx, account, c.Conversation)
			if err != nil {
				return err
			}
			if err := printJSON(c.Out, record); err != nil {
				return err
			}
			continue
		}
		msg := dialog.Message{Text: text, Actor: user, Language: c.Language, Channel: "terminal"}
		if c.Voice {
			msg.Modality = dialog.Voice
		}
		if words := strings.Fields(text); words[0] == "/press" && len(words) == 3 {
			msg.Text, msg.Question, msg.Choice = "", words[1], words[2]
		}
		record, err := c.Handler.Message(ctx, account, c.Conversation, msg)
		if err != nil {
			fmt.Fprintln(c.Out, err)
			continue
		}
		c.show(record)
	}
	fmt.Fprintln(c.Out)
	return lines.Err()
}

func printJSON(out io.Writer, record dialog.Record) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(record)
}

// show prints the new lines of others. Texts of agents may have control characters.
func (c *Chat) show(record dialog.Record) {
	lines, _ := record.Since(c.shown)
	for _, line := range lines {
		if line.From == dialog.ByUser {
			continue
		}
		fmt.Fprintln(c.Out, strings.Map(printable, line.Text))
		if line.Prompt != nil && line.Prompt.Question != "" && len(line.Prompt.Choices) > 0 {
			ids := make([]string, 0, len(line.Prompt.Choices))
			for _, choice := range line.Prompt.Choices {
				ids = append(ids, choice.ID)
			}
			fmt.Fprintf(c.Out, "  [%s: %s]\n", line.Prompt.Question, strings.Map(printable, strings.Join(ids, " ")))
		}
	}
	c.shown = record.Earlier + len(record.Lines)
}

func printable(r rune) rune {
	if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return ' '
	}
	return r
}

// chooseModels returns the model of the agent and the one that judges replies. The scripted model
// knows nothing of replies.
func chooseModels(name string) (model agent.Model, judge dialog.Model, err error) {
	if model, err = chooseModel(name); err != nil || name == "" {
		return model, nil, err
	}
	judge, err = classifier.New(classifier.Config{Model: model})
	return model, judge, err
}

func chooseModel(name string) (agent.Model, error) {
	service, name, _ := strings.Cut(name, "/")
	switch service {
	case "":
		return office.Script(), nil
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: cmp.Or(name, "claude-sonnet-4-5")})
	case "openai":
		return openai.New(openai.Config{Model: cmp.Or(name, "gpt-4o")})
	}
	return nil, fmt.Errorf("unknown model %q: use anthropic/NAME or openai/NAME", service)
}
