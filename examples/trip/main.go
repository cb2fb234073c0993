// Trip plans a journey and asks you for missing details. It shows [tool.FollowUp]: the model calls
// the tool with what it knows, you are asked for the rest, and again if your answer requires more;
// only then is the tool called.
//
//	go run ./examples/trip
//	go run ./examples/trip -run family -task "Plan a long weekend for my family"
//
// Without an API key the model is a script. Planned trips are in .demo/calendar.
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
	"strconv"
	"strings"
	"time"

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
	runName = flag.String("run", "trip-1", "`name` of the run to start or continue")
	task    = flag.String("task", "We want to go to Lisbon in spring. Put it into my calendar.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/trip.db")
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
	planner, err := newPlanner(filepath.Join(dir, "calendar"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: planner, Store: runs})
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

// ask shows what is missing and returns the answer by the id of the question.
func ask(open *fermata.InterruptCtx, in *bufio.Scanner, out io.Writer) (map[string]any, error) {
	question, err := tool.Completion.Question(open)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%s needs more information. So far: %s\n", question.Tool, question.Args)
	for _, m := range question.Missing {
		fmt.Fprintln(out, " ", m.Question)
	}
	for {
		fmt.Fprint(out, "Answers, with ; between them, or no REASON > ")
		if !in.Scan() {
			return nil, errors.Join(errors.New("no answer: the run waits, start the program again"), in.Err())
		}
		if reason, declined := strings.CutPrefix(in.Text(), "no "); declined {
			return map[string]any{open.ID: tool.CompletedArgs{Declined: true, Reason: reason, By: "you"}}, nil
		}
		fields, err := parse(question.Missing, in.Text())
		if err == nil {
			return map[string]any{open.ID: tool.CompletedArgs{Fields: fields, By: "you"}}, nil
		}
		fmt.Fprintln(out, err)
	}
}

// parse converts the answers of a line to JSON.
func parse(missing []tool.Missing, line string) (map[string]json.RawMessage, error) {
	answers := strings.Split(line, ";")
	if len(answers) != len(missing) {
		return nil, fmt.Errorf("there are %d questions", len(missing))
	}
	fields := make(map[string]json.RawMessage)
	for i, m := range missing {
		text := strings.TrimSpace(answers[i])
		var value any = text
		var err error
		switch m.Field {
		case "nights", "travellers", "rooms":
			if value, err = strconv.Atoi(text); err != nil {
				return nil, fmt.Errorf("%s: %q is not a number", m.Field, text)
			}
		case "interests":
			value = strings.Split(text, ", ")
		}
		if fields[m.Field], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return fields, nil
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

func newPlanner(calendar string) (agent.Agent, error) {
	// Guard makes the call an effect: it gets a key, and happens once. The policy allows it,
	// because the person who gives the details wants the trip.
	plan := tool.FollowUp(tool.Guard(planTrip(calendar), wanted), missing)
	return agent.NewChat(agent.Chat{
		Name:        "planner",
		Instruction: "You plan trips. Call plan_trip with what the user said, and with nothing that you made up: the user is asked for the rest. Then repeat the plan in a sentence.",
		Model:       model(lines...),
		Tools:       []*tool.Tool{plan},
	})
}

// Trip is the argument of the tool. The model omits what it does not know.
type Trip struct {
	City       string   `json:"city"`
	Start      string   `json:"start,omitempty" jsonschema:"the day of departure, as 2027-05-31, if the user said it"`
	Nights     int      `json:"nights,omitempty" jsonschema:"if the user said it"`
	Travellers int      `json:"travellers,omitempty" jsonschema:"if the user said it"`
	Rooms      int      `json:"rooms,omitempty" jsonschema:"if the user said it"`
	Interests  []string `json:"interests,omitempty" jsonschema:"if the user said them"`
}

// missing returns the missing details. It depends only on the arguments, so that it returns the
// same in every process.
func missing(t Trip) []tool.Missing {
	open := always(t)
	if _, err := time.Parse(time.DateOnly, t.Start); t.Start != "" && err != nil {
		open = append(open, tool.Missing{Field: "start", Question: fmt.Sprintf("“%s” is not a date. Which day do you leave, as 2027-05-31?", t.Start)})
	}
	if t.Travellers > 2 && t.Rooms == 0 {
		open = append(open, tool.Missing{Field: "rooms", Question: fmt.Sprintf("How many rooms for %d people?", t.Travellers)})
	}
	return open
}

var always = tool.Needs[Trip](
	tool.Missing{Field: "start", Question: "Which day do you leave, as 2027-05-31?"},
	tool.Missing{Field: "nights", Question: "How many nights do you stay?"},
	tool.Missing{Field: "travellers", Question: "How many of you are there?"},
	tool.Missing{Field: "interests", Question: "What do you like, as tiles, the sea?"},
)

// planTrip is idempotent: the calendar stores the key of each entry.
func planTrip(calendar string) *tool.Tool {
	return tool.New("plan_trip", "Plans a trip and puts it into the user's calendar.", func(ctx context.Context, t Trip) (string, error) {
		start, err := time.Parse(time.DateOnly, t.Start)
		if err != nil {
			return "", tool.Errorf("%q is not a date.", t.Start)
		}
		if err := os.MkdirAll(calendar, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(calendar, tool.Key(ctx)), fmt.Appendln(nil, t), 0o600); err != nil {
			return "", err
		}
		end := start.AddDate(0, 0, t.Nights).Format(time.DateOnly)
		return fmt.Sprintf("In the calendar: %s from %s to %s, %d travellers, %d rooms; one day each for %s.",
			t.City, t.Start, end, t.Travellers, max(1, t.Rooms), strings.Join(t.Interests, ", ")), nil
	}, tool.Idempotent())
}

var wanted = fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow, Rule: "own-calendar", Reason: "the user gave the details"}, nil
})

// lines is the scripted model.
var lines = []script.Line{
	script.Call("plan_trip", `{"city":"Lisbon"}`),
	reply(func(result agent.Message) string {
		if result.Failed {
			return "Then there is no trip for now. " + result.Text
		}
		return "Have a good time. " + result.Text
	}),
}

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
