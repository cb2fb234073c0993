// Dataagent works on a real SQLite database. Reads run immediately; everything that could change
// data waits for you. It shows [tool.Guard]: one tool, and a policy that decides per call.
//
//	SELECT                                   runs at once, on a read-only connection
//	DELETE, DROP, UPDATE, ALTER, INSERT …    asks you, and runs once
//	statements that the policy does not know ask you
//	two statements in one, BEGIN, COMMIT     denied; the model gets the reason
//
// Try:
//
//	go run ./examples/dataagent
//	go run ./examples/dataagent -run tidy -task "Delete the products without orders"
//
// Without an API key the model is a script. The database is .demo/shop.db; remove it to
// start with a new one.
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
	runName = flag.String("run", "dataagent-1", "`name` of the run to start or continue")
	task    = flag.String("task", "Raise the price of everything that we still sell by ten percent.", "task of a new run")
)

func main() {
	flag.Parse()
	if err := os.MkdirAll(".demo", 0o700); err != nil {
		log.Fatal(err)
	}
	runs, err := sqlite.Open(".demo/dataagent.db")
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
	shop, err := openShop(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer shop.Close()
	analyst, err := newAnalyst(shop)
	if err != nil {
		return err
	}
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: analyst, Store: runs})
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
	fmt.Fprintf(out, "\n%q\n%s %s\nrule %s: %s\n", question.Summary, question.Action, question.Args, question.Rule, question.Reason)
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

func newAnalyst(shop *Shop) (agent.Agent, error) {
	return agent.NewChat(agent.Chat{
		Name: "analyst",
		Instruction: "You answer questions about a SQLite database and change it if you are told to. Its tables are products (id, name, price in cents, discontinued) and " +
			"orders (id, product, amount). Look before you change anything. Each call takes one statement.",
		Model: model(lines...),
		Tools: []*tool.Tool{tool.Guard(runSQL(shop), readsOnly, tool.Summary(summary))},
	})
}

// Statement is the argument of the tool.
type Statement struct {
	SQL string `json:"sql" jsonschema:"one statement"`
	Why string `json:"why" jsonschema:"what it is for, for the person who may have to approve it"`
}

// runSQL is idempotent, because the shop stores the key in the same transaction as the change.
func runSQL(shop *Shop) *tool.Tool {
	return tool.New("run_sql", "Runs one SQL statement.", func(ctx context.Context, s Statement) (string, error) {
		if classify(s.SQL).reads() {
			return shop.Read(ctx, s.SQL)
		}
		return shop.Change(ctx, s.SQL, tool.Key(ctx))
	}, tool.Idempotent())
}

// readsOnly is the policy. It allows statements that are known to be harmless: everything else
// needs a person.
var readsOnly = fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
	var s Statement
	if err := json.Unmarshal(a.Args, &s); err != nil {
		return fermata.Ruling{}, err
	}
	return classify(s.SQL).ruling(), nil
})

func summary(args json.RawMessage) string {
	var s Statement
	if err := json.Unmarshal(args, &s); err != nil {
		return "Change the database" // the arguments are shown below
	}
	return fmt.Sprintf("Change the database with %s", classify(s.SQL).verb)
}

// lines is the scripted model. The second line is a typical mistake of models.
var lines = []script.Line{
	call("SELECT name, price, discontinued FROM products", "see what there is"),
	call("BEGIN; UPDATE products SET price = price * 110 / 100 WHERE NOT discontinued; COMMIT", "raise the prices"),
	call("UPDATE products SET price = price * 110 / 100 WHERE NOT discontinued", "raise the prices"),
	reply(func(result agent.Message) string {
		if result.Failed {
			return "The prices are as they were. " + result.Text
		}
		return "The prices are raised. " + result.Text
	}),
}

func call(sql, why string) script.Line {
	args, err := json.Marshal(Statement{sql, why})
	if err != nil {
		return script.Fail(err)
	}
	return script.Call("run_sql", string(args))
}

// reply returns a line of the script that depends on the last message.
func reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
