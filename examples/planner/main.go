// Planner brings a release to production: it makes a plan, executes the first step, checks the
// result, replans, and stops for you before it deploys. It shows [agent.NewPlanExecute] with an
// approval inside: the plan, the finished steps and the waiting step survive the process.
//
//	go run ./examples/planner
//	go run ./examples/planner -model anthropic -task "Bring release 2.5 to production" -run release-2.5
//
// Deployments are in .demo/production.jsonl.
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
	Name:  "planner",
	About: "an agent plans a release and carries the plan out, you approve the deployment.",
	Task:  "Bring release 2.4 to production.",
	Build: build,
}

func build(kit *console.Kit) (agent.Agent, error) {
	engineer, err := agent.NewChat(agent.Chat{
		Name:        "engineer",
		Instruction: "You do one step of a plan, with the tools that you have, and report in a sentence what came of it. If a step is refused, say so and why, and do nothing else.",
		Model:       kit.Model(engineerLines...),
		Tools: []*tool.Tool{
			runChecks, migrate,
			tool.Approve(deploy(target.Open(kit.Data, "production")), tool.Summary(summary)),
		},
	})
	if err != nil {
		return nil, err
	}
	return agent.NewPlanExecute(agent.PlanExecute{
		Name: "release", Planner: kit.Model(plannerLine), Replanner: kit.Model(replannerLine), Executor: engineer,
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
func deploy(production *target.Log) *tool.Tool {
	return tool.New("deploy", "Deploys a release to production, migrations included.", func(ctx context.Context, r Release) (string, error) {
		number, err := production.DoOnce(tool.Key(ctx), r)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Release %s is in production, as deployment %d.", r.Version, number), nil
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
	console.Reply(func(result agent.Message) string { return result.Text }),
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
