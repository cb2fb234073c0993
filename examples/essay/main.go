// Essay writes a text with you: it shows a draft, takes your feedback, and writes the next one,
// until you accept it. Then it is printed. It shows a custom agent ([agent.NewFunc]) with its own
// kind ([Feedback]): a loop in plain Go, which continues in the right iteration after any crash.
//
//	go run ./examples/essay
//	go run ./examples/essay -model anthropic -task "Write a short essay about tea." -run tea
//
// At the question type what should change, y to accept, or /stop. Printed essays are in
// .demo/press.jsonl.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/target"
)

func main() { console.Main(example) }

var example = console.Example{
	Name:  "essay",
	About: "an agent writes an essay, you give feedback until you accept it.",
	Task:  "Write a short essay about machines that wait for people.",
	Build: build,
	Forms: []console.Form{form},
}

func build(kit *console.Kit) (agent.Agent, error) {
	writer, err := agent.NewChat(agent.Chat{
		Name:        "writer",
		Instruction: "You write short essays. Answer with the essay and nothing else. If the reader wants changes, answer with the whole essay, changed.",
		Model:       kit.Model(lines...),
	})
	if err != nil {
		return nil, err
	}
	e := &editor{writer: writer, press: target.Open(kit.Data, "press")}
	return agent.NewFunc("editor", "Takes an essay from its first draft to print.", e.work)
}

// maxDrafts is the maximum number of drafts.
const maxDrafts = 5

type editor struct {
	writer agent.Agent
	press  *target.Log
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
	number, err := fermata.Effect(ctx, approved, func(_ context.Context, d Draft, key string) (int, error) {
		return e.press.DoOnce(key, d)
	}, fermata.Idempotent())
	if err != nil {
		return nil, err
	}
	return say("Draft %d is printed, as number %d.", draft.Number, number)
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

// form shows a draft in the terminal, and parses a verdict.
var form = console.FormFor(Feedback,
	func(d *console.Dialogue, draft Draft) string {
		d.Row("what", fmt.Sprintf("draft %d of at most %d", draft.Number, maxDrafts))
		d.Row("text", draft.Text)
		d.Option("TEXT", "what should change")
		d.Option("y", "it is good: print it")
		d.Option("/stop REASON", "stop without printing")
		return "Your feedback"
	},
	func(_ context.Context, _ *console.Dialogue, _ Draft, line string) (Verdict, error) {
		if strings.EqualFold(line, "y") || strings.EqualFold(line, "yes") {
			return Verdict{Choice: Accept}, nil
		}
		if reason, stop := strings.CutPrefix(line, "/stop"); stop {
			return Verdict{Choice: Stop, Text: strings.TrimSpace(reason)}, nil
		}
		return Verdict{Choice: Change, Text: line}, nil
	})

// lines is the scripted model.
var lines = append([]script.Line{
	script.Say("A machine that never waits never listens. It is quick, and it is quick in the wrong direction, too. The art is to know when to stop, to keep everything in hand, and to ask."),
}, slices.Repeat([]script.Line{console.Reply(func(feedback agent.Message) string {
	return fmt.Sprintf("A machine that never waits never listens. The art is to stop and ask. (Changed, because you said: %s)", feedback.Text)
})}, maxDrafts-1)...)
