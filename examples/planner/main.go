// Planner brings a release to production: it makes a plan, executes the first step, checks the
// result, replans, and stops for you before it deploys. It shows [agent.NewPlanExecute] with an
// approval inside: the plan, the finished steps and the waiting step survive the process.
//
//	go run ./examples/planner
//	go run ./examples/planner -run release-2.5 -task "Bring release 2.5 to production"
//
// Without an API key the model is a script. Deployments are in .demo/production.
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
	runName = flag.String("run", "planner-1", "`name` of the run to start or continue")
	task    = flag.String("task", "Bring release 2.4 to production.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/planner.db")
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
	release, err := newRelease(filepath.Join(dir, "production"))
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: release, Store: runs})
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

func newRelease(production string) (agent.Agent, error) {
	engineer, err := agent.NewChat(agent.Chat{
		Name:        "engineer",
		Instruction: "You do one step of a plan, with the tools that you have, and report in a sentence what came of it. If a step is refused, say so and why, and do nothing else.",
		Model:       model(engineerLines...),
		Tools: []*tool.Tool{
			runChecks, migrate,
			tool.Approve(deploy(production), tool.Summary(summary)),
		},
	})
	if err != nil {
		return nil, err
	}
	return agent.NewPlanExecute(agent.PlanExecute{
		Name: "release", Planner: model(plannerLine), Replanner: model(replannerLine), Executor: engineer,
	})
}

// Release is the argument of the tools.
type Release struct {
	Version string `json:"version" jsonschema:"as 2.4"`
}

var runChecks = tool.New("run_checks", "Runs the checks of a release in staging.", func(_ context.Context, r Release) (string, error) {
	return fmt.Sprintf("Release %s: 412 tests passed. The schema in staging is one migration ahead of production.", r.Version), nil
}, tool.Repeatable())

var migrate = tool.New("migrate_copy", "Tries the migrations of a release on a copy of the production data.", func(_ context.Context, r Release) (string, error) {
	return fmt.Sprintf("The migration of %s took 41 seconds on the copy, and can be rolled back.", r.Version), nil
}, tool.Repeatable())

// deploy is idempotent: production accepts one deployment per key.
func deploy(production string) *tool.Tool {
	return tool.New("deploy", "Deploys a release to production, migrations included.", func(ctx context.Context, r Release) (string, error) {
		if err := os.MkdirAll(production, 0o700); err != nil {
			return "", err
		}
		err := os.WriteFile(filepath.Join(production, tool.Key(ctx)), []byte(r.Version+"\n"), 0o600)
		return fmt.Sprintf("Release %s is in production.", r.Version), err
	}, tool.Idempotent())
}

func summary(args json.RawMessage) string {
	var r Release
	if err := json.Unmarshal(args, &r); err != nil {
		return "Deploy to production" // the arguments are shown below
	}
	return fmt.Sprintf("Deploy release %s to production, with its migrations", r.Version)
}

// The scripted models.
var engineerLines = []script.Line{
	func(request *agent.Request) (agent.Message, error) {
		for step, name := range map[string]string{"Run the checks": "run_checks", "Try the migration on a copy": "migrate_copy", "Deploy 2.4": "deploy"} {
			if strings.HasSuffix(last(request), step) {
				return call(name, Release{Version: "2.4"})
			}
		}
		return agent.Assistant("I do not know how to do that."), nil
	},
	reply(func(result agent.Message) string { return result.Text }),
}

func plannerLine(*agent.Request) (agent.Message, error) {
	return plan("Run the checks", "Deploy 2.4")
}

// replannerLine notices that the plan lacks the migration, puts it before the deployment, and
// reports at the end. A planner sees only the task and a report of finished steps; the newest
// result comes last.
func replannerLine(request *agent.Request) (agent.Message, error) {
	report := last(request)
	_, result, _ := strings.Cut(report[strings.LastIndex(report, "Result: "):], ": ")
	switch {
	case strings.Contains(result, "is in production"):
		return respond("Release 2.4 is live. The migration was tried on a copy first.")
	case strings.Contains(result, "was refused"):
		return respond("Release 2.4 is not live. " + strings.TrimSpace(result))
	case strings.Contains(result, "can be rolled back"):
		return plan("Deploy 2.4")
	}
	return plan("Try the migration on a copy", "Deploy 2.4")
}

func last(request *agent.Request) string { return request.Messages[len(request.Messages)-1].Text }

func plan(steps ...string) (agent.Message, error) {
	return call("plan", map[string]any{"steps": steps})
}

func respond(text string) (agent.Message, error) {
	return call("respond", map[string]any{"response": text})
}

func call(name string, args any) (agent.Message, error) {
	data, err := json.Marshal(args)
	return agent.Assistant("", agent.ToolCall{Name: name, Args: string(data)}), err
}

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
