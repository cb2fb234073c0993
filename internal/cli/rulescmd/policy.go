package rulescmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/cases"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/strictjson"
)

type PolicyCommands struct {
	Test     policyTest     `cmd:"" help:"Run the test cases of a policy."`
	Lint     policyLint     `cmd:"" help:"Report errors and probable mistakes of a policy."`
	Explain  policyExplain  `cmd:"" help:"Explain what a policy decides for an action."`
	Diff     policyDiff     `cmd:"" help:"Compare two policies, and report where the new one is looser."`
	Simulate policySimulate `cmd:"" help:"Evaluate a policy on recorded actions."`
	Show     policyShow     `cmd:"" help:"Show a policy of the server."`
}

// loadPolicy reads a policy file. A file that cannot be loaded is a usage error.
func loadPolicy(file string, options policy.Options) (*policy.Set, error) {
	text, err := cli.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set, err := policy.Load(file, text, options)
	return set, fileErrorIn(file, err)
}

// fileErrorIn adds the file name to an error. Errors with positions name the file themselves.
func fileErrorIn(file string, err error) error {
	if err == nil {
		return nil
	}
	if _, listed := errors.AsType[*policy.LoadError](err); listed {
		return cli.InvalidFile(err)
	}
	return cli.InvalidFile(fmt.Errorf("%s: %w", file, err))
}

type policyTest struct {
	Policy string `arg:"" help:"The policy file."`
	Cases  string `arg:"" help:"The file of test cases."`
}

// TestReport is the JSON output of a test.
type TestReport struct {
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	Unhit  []string `json:"unhit"` // rules that no case matches
	Text   string   `json:"text"`
}

// Run evaluates every case. A failed case needs attention.
func (c *policyTest) Run(p *cli.Program) error {
	set, err := loadPolicy(c.Policy, policy.Options{})
	if err != nil {
		return err
	}
	text, err := cli.ReadFile(c.Cases)
	if err != nil {
		return err
	}
	var reply strings.Builder
	result, err := cases.Run(&reply, set, c.Cases, text)
	if err != nil {
		return fileErrorIn(c.Cases, err)
	}
	report := TestReport{Passed: result.Passed, Failed: result.Failed, Unhit: orEmpty(result.UncoveredRules), Text: reply.String()}
	if err := p.Print(report, func(w io.Writer) { fmt.Fprint(w, cli.EscapeControls(report.Text)) }); err != nil {
		return err
	}
	if result.Failed > 0 {
		return fmt.Errorf("%w: of %d cases, %d failed", cli.ErrNeedsAttention, result.Passed+result.Failed, result.Failed)
	}
	return nil
}

// orEmpty returns a non-nil list for JSON output.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

type policyLint struct {
	Policy string `arg:"" help:"The policy file."`
	Routes string `help:"The routes file that the policy refers to." placeholder:"FILE"`
	Groups string `help:"The groups file that the policy refers to." placeholder:"FILE"`
}

// LintReport is the JSON output of a check.
type LintReport struct {
	File     string           `json:"file"`
	Loads    bool             `json:"loads"` // if false, the problems prevent loading
	Problems []policy.Problem `json:"problems"`
}

// Run checks a policy more strictly than a server does.
func (c *policyLint) Run(p *cli.Program) error {
	env, err := c.environment()
	if err != nil {
		return err
	}
	report := LintReport{File: c.Policy, Problems: []policy.Problem{}}
	set, err := loadPolicy(c.Policy, policy.Options{UnknownFields: policy.OptionalFields})
	if broken, ok := errors.AsType[*policy.LoadError](err); ok {
		report.Problems = broken.Problems
	} else if err != nil {
		return err
	} else {
		report.Loads, report.Problems = true, orEmpty(set.Lint(env))
	}
	if err := p.Print(report, report.text); err != nil {
		return err
	}
	switch {
	case !report.Loads:
		return cli.InvalidFile(fmt.Errorf("%s cannot be loaded", c.Policy))
	case len(report.Problems) > 0:
		return fmt.Errorf("%w: %s has %d warnings", cli.ErrNeedsAttention, c.Policy, len(report.Problems))
	}
	return nil
}

func (r LintReport) text(w io.Writer) {
	for _, problem := range r.Problems {
		fmt.Fprintln(w, cli.EscapeControls(problem.String()))
	}
	if len(r.Problems) == 0 {
		fmt.Fprintf(w, "%s is valid\n", r.File)
	}
}

// environment returns the groups and routes to check against, as far as files are given.
func (c *policyLint) environment() (env policy.LintContext, err error) {
	if c.Groups != "" {
		groups, err := serve.ReadGroups(c.Groups)
		if err != nil {
			return env, cli.InvalidFile(err)
		}
		env.Directory = groups
	}
	if c.Routes == "" {
		return env, nil
	}
	routes, err := serve.ReadRoutes(c.Routes, desk.Channels{All: true})
	if err != nil {
		return env, cli.InvalidFile(err)
	}
	env.CheckRoute = func(name string) string {
		if _, known := routes[name]; !known {
			return "unknown"
		}
		return ""
	}
	env.WidensTo = func(name string) (who []string) {
		for _, step := range routes[name].Steps {
			who = append(who, step.Widen...)
		}
		return who
	}
	env.Channels = func(name string) []string { return routes[name].ChannelTargets() }
	return env, nil
}

type policyExplain struct {
	cli.Remote
	Policy    string      `arg:"" optional:"" help:"The policy file; without one, the server is queried."`
	Input     string      `arg:"" optional:"" help:"The file with the action, as JSON."`
	Tool      string      `help:"The tool of the action, to query the server." placeholder:"NAME"`
	Args      cli.JSONArg `help:"Its arguments as JSON; @FILE and - read them from a file and from standard input." placeholder:"JSON"`
	Graph     string      `help:"The graph of the action." placeholder:"NAME"`
	Requester string      `help:"The requester." placeholder:"NAME"`
	Agent     string      `help:"The agent that proposes it." placeholder:"NAME"`
}

// Run explains with files, or by querying a server.
func (c *policyExplain) Run(ctx context.Context, p *cli.Program) error {
	var decision policy.Decision
	var err error
	switch {
	case c.Policy == "" && c.Tool != "":
		decision, err = c.ask(ctx)
	case c.Tool+string(c.Args)+c.Graph+c.Requester+c.Agent != "":
		err = cli.Usagef("pass either a policy and an input file, or --tool to query the server")
	case c.Policy != "" && c.Input != "":
		decision, err = c.offline()
	default:
		err = cli.Usagef("pass a policy and an input file, or --tool to query the server")
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := decision.Explain(&text); err != nil {
		return err
	}
	return p.Print(decision, func(w io.Writer) { fmt.Fprint(w, cli.EscapeControls(text.String())) })
}

func (c *policyExplain) ask(ctx context.Context) (decision policy.Decision, err error) {
	action := api.HypotheticalAction{Tool: c.Tool, Graph: c.Graph, Requester: c.Requester, Agent: c.Agent}
	if c.Args != "" {
		if action.Args, err = c.Args.Read("--args"); err != nil {
			return decision, err
		}
	}
	to, err := c.Client()
	if err != nil {
		return decision, err
	}
	raw, err := to.ExplainPolicy(ctx, action)
	if err != nil {
		return decision, err
	}
	return decision, json.Unmarshal(raw, &decision)
}

func (c *policyExplain) offline() (policy.Decision, error) {
	set, err := loadPolicy(c.Policy, policy.Options{})
	if err != nil {
		return policy.Decision{}, err
	}
	text, err := cli.ReadFile(c.Input)
	if err != nil {
		return policy.Decision{}, err
	}
	// unless the file has another time
	in := policy.Input{At: time.Now().UTC().Truncate(time.Second)}
	text = bytes.TrimSpace(text)
	if err := strictjson.Decode(text, &in); err != nil {
		return policy.Decision{}, fileErrorIn(c.Input, err)
	}
	if in.UnknownFields == nil {
		in.UnknownFields = missingFields(text)
	}
	decision, err := set.Decide(in)
	return decision, fileErrorIn(c.Input, err)
}

// missingFields returns the fields that neither the input nor the policy defines. As on a server,
// they are unknown and not zero.
func missingFields(input []byte) (fields []string) {
	members, err := strictjson.Members(input)
	for _, field := range policy.OptionalFields {
		if _, told := members[field]; err == nil && !told {
			fields = append(fields, field)
		}
	}
	return fields
}

// withRecorded passes the inputs of a file, one per line; none if there is no file.
func withRecorded(file string, use func(iter.Seq2[policy.Input, error]) error) error {
	if file == "" {
		return use(replay.ReadInputs(strings.NewReader("")))
	}
	opened, err := os.Open(file)
	if err != nil {
		return cli.InvalidFile(err)
	}
	defer opened.Close()
	return fileErrorIn(file, use(replay.ReadInputs(opened)))
}

type policyDiff struct {
	Old    string `arg:"" help:"The policy file in use."`
	New    string `arg:"" help:"The new policy file."`
	Inputs string `help:"Recorded actions, one per line, to evaluate with both." placeholder:"FILE"`
}

// Run compares. Anything that gets looser needs a review.
func (c *policyDiff) Run(p *cli.Program) error {
	before, err := loadPolicy(c.Old, policy.Options{})
	if err != nil {
		return err
	}
	after, err := loadPolicy(c.New, policy.Options{})
	if err != nil {
		return err
	}
	var report replay.Report
	err = withRecorded(c.Inputs, func(inputs iter.Seq2[policy.Input, error]) (err error) {
		report, err = replay.Diff(before, after, inputs)
		return err
	})
	if err != nil {
		return err
	}
	report.Rules, report.Differences = orEmpty(report.Rules), orEmpty(report.Differences)
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		return err
	}
	if err := p.Print(report, func(w io.Writer) { fmt.Fprint(w, cli.EscapeControls(text.String())) }); err != nil {
		return err
	}
	if report.Weakens() {
		return fmt.Errorf("%w: %s allows more than %s", cli.ErrNeedsAttention, c.New, c.Old)
	}
	return nil
}

// simulateFile evaluates recorded actions of a file.
func (c *policySimulate) simulateFile(p *cli.Program) error {
	set, err := loadPolicy(c.Policy, policy.Options{})
	if err != nil {
		return err
	}
	var summary replay.Summary
	err = withRecorded(c.Inputs, func(inputs iter.Seq2[policy.Input, error]) (err error) {
		summary, err = replay.Summarize(set, inputs)
		return err
	})
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := summary.Print(&text); err != nil {
		return err
	}
	return p.Print(summary, func(w io.Writer) { fmt.Fprint(w, cli.EscapeControls(text.String())) })
}
