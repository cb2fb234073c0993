// Essay writes a text with you: it shows a draft, takes your feedback, and writes the next one,
// until you accept it. Then it is printed. It shows a custom agent ([agent.NewFunc]) with its own
// kind ([Feedback]): a loop in plain Go, which continues in the right iteration after any crash.
//
//	go run ./examples/essay
//	go run ./examples/essay -run tea -task "Write a short essay about tea."
//
// Without an API key the model is a script. At the question type what should change, y to accept,
// or /stop. Printed essays are in .demo/press.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

var (
	runName = flag.String("run", "essay-1", "`name` of the run to start or continue")
	task    = flag.String("task", "Write a short essay about machines that wait for people.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/essay.db")
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
	editor, err := newEditor(filepath.Join(dir, "press"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: editor, Store: runs})
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

// ask shows a draft and returns the verdict by the id of the question.
func ask(open *fermata.InterruptCtx, in *bufio.Scanner, out io.Writer) (map[string]any, error) {
	draft, err := Feedback.Question(open)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\ndraft %d of at most %d:\n%s\n", draft.Number, maxDrafts, draft.Text)
	for {
		fmt.Fprint(out, "y to print it, what should change, or /stop REASON > ")
		if !in.Scan() {
			return nil, errors.Join(errors.New("no answer: the run waits, start the program again"), in.Err())
		}
		verdict := Verdict{Choice: Change, Text: in.Text()}
		if verdict.Text == "y" {
			verdict = Verdict{Choice: Accept}
		} else if reason, stop := strings.CutPrefix(verdict.Text, "/stop"); stop {
			verdict = Verdict{Choice: Stop, Text: strings.TrimSpace(reason)}
		}
		if err := verdict.Validate(); err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		return map[string]any{open.ID: verdict}, nil
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

func newEditor(press string) (agent.Agent, error) {
	writer, err := agent.NewChat(agent.Chat{
		Name:        "writer",
		Instruction: "You write short essays. Answer with the essay and nothing else. If the reader wants changes, answer with the whole essay, changed.",
		Model:       model(lines...),
	})
	if err != nil {
		return nil, err
	}
	e := &editor{writer: writer, press: press}
	return agent.NewFunc("editor", "Takes an essay from its first draft to print.", e.work)
}

// maxDrafts is the maximum number of drafts.
const maxDrafts = 5

type editor struct {
	writer agent.Agent
	press  string
}

// work is called again from its beginning after every answer. A finished writer is not run again,
// and an answered question returns its answer.
func (e *editor) work(ctx context.Context, input *agent.Input) (*agent.Output, error) {
	conversation := slices.Clone(input.Messages)
	for n := 1; n <= maxDrafts; n++ {
		written, err := agent.RunNth(ctx, n, e.writer, &agent.Input{Messages: conversation})
		if err != nil {
			return nil, err
		}
		draft := Draft{Number: n, Text: written.Text()}
		verdict, err := Feedback.Ask(ctx, draft)
		if err != nil {
			return nil, err
		}
		switch verdict.Choice {
		case Accept:
			return e.print(ctx, draft)
		case Stop:
			return say("Nothing was printed: %s.", verdict.Text)
		}
		conversation = append(conversation, agent.Assistant(draft.Text), agent.User(verdict.Text))
	}
	return say("Nothing was printed: it was still not right after %d drafts.", maxDrafts)
}

// print is the irreversible step. The approval is for exactly this text; no second question is
// asked, because only a person's answer leads here.
func (e *editor) print(ctx context.Context, draft Draft) (*agent.Output, error) {
	approved, err := fermata.Approve(ctx, fermata.Action[Draft]{Name: "print", Args: draft, Policy: alreadyApproved})
	if err != nil {
		return nil, err
	}
	number, err := fermata.Effect(ctx, approved, func(_ context.Context, d Draft, key string) (string, error) {
		if err := os.MkdirAll(e.press, 0o700); err != nil {
			return "", err
		}
		return key, os.WriteFile(filepath.Join(e.press, key), []byte(d.Text), 0o600)
	}, fermata.Idempotent())
	if err != nil {
		return nil, err
	}
	return say("Draft %d is printed, as %s.", draft.Number, number)
}

var alreadyApproved = fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow, Rule: "read", Reason: "a person has read this text and is content"}, nil
})

func say(format string, args ...any) (*agent.Output, error) {
	return &agent.Output{Messages: []agent.Message{agent.Assistant(fmt.Sprintf(format, args...))}}, nil
}

// Feedback is the kind of the question about each draft.
var Feedback = fermata.NewKind[Draft, Verdict]("essay-feedback")

// Draft is shown to the person.
type Draft struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// Verdict is the person's answer.
type Verdict struct {
	Choice Choice `json:"word"`
	// Text is what should change, or why to stop.
	Text string `json:"text,omitempty"`
}

// Choice is the type of a verdict.
type Choice string

// The choices for a draft.
const (
	Accept Choice = "content"
	Change Choice = "change"
	Stop   Choice = "stop"
)

// Choices lists the choices. Other values are invalid.
func (Choice) Choices() []string { return []string{string(Accept), string(Change), string(Stop)} }

// Validate checks what the types cannot express.
func (v Verdict) Validate() error {
	if v.Choice != Accept && strings.TrimSpace(v.Text) == "" {
		return errors.New("text is required: what should change, or why to stop")
	}
	return nil
}

// lines is the scripted model.
var lines = append([]script.Line{
	script.Say("A machine that never waits never listens. It is quick, and it is quick in the wrong direction, too. The art is to know when to stop, to keep everything in hand, and to ask."),
}, slices.Repeat([]script.Line{reply(func(feedback agent.Message) string {
	return fmt.Sprintf("A machine that never waits never listens. The art is to stop and ask. (Changed, because you said: %s)", feedback.Text)
})}, maxDrafts-1)...)

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
