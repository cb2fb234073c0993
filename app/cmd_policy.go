package app

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
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/cases"
	"github.com/fermata-go/fermata/policy/replay"
)

type policyCommands struct {
	Test     policyTest     `cmd:"" help:"Run the cases of a policy."`
	Lint     policyLint     `cmd:"" help:"Say what is wrong with a policy, and what is probably not meant."`
	Explain  policyExplain  `cmd:"" help:"Say what a policy says of an action, and why."`
	Diff     policyDiff     `cmd:"" help:"Say what another policy would change, and where it lets more through."`
	Simulate policySimulate `cmd:"" help:"Say what a policy would have said of recorded actions."`
	Show     policyShow     `cmd:"" help:"Show what a policy of the server says, or said."`
}

// loadPolicy reads a file of rules. One that cannot be loaded is wrong on the command line: nothing has been asked of it.
func loadPolicy(file string, options policy.Options) (*policy.Set, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	set, err := policy.Load(file, text, options)
	return set, fileErrorIn(file, err)
}

// readFile reads a file that the command line names.
func readFile(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, &fileError{err}
	}
	return text, nil
}

// fileError is a file that cannot be read, or what is wrong in it.
type fileError struct{ error }

// Is says what it is to those who choose an exit code.
func (*fileError) Is(target error) bool { return target == errFile }

func (e *fileError) Unwrap() error { return e.error }

var errFile = errors.New("a file is wrong")

// fileErrorIn says that what stands in a file is wrong. Errors that list places name the file themselves.
func fileErrorIn(file string, err error) error {
	if err == nil {
		return nil
	}
	if _, listed := errors.AsType[*policy.LoadError](err); listed {
		return &fileError{err}
	}
	return &fileError{fmt.Errorf("%s: %w", file, err)}
}

type policyTest struct {
	Policy string `arg:"" help:"The file of rules."`
	Cases  string `arg:"" help:"The file of cases."`
}

// testReport is what the cases came to, for programs.
type testReport struct {
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	Unhit  []string `json:"unhit"` // rules that no case hits
	Text   string   `json:"text"`
}

// Run judges every case. One that fails is something to be done.
func (c *policyTest) Run(p *program) error {
	set, err := loadPolicy(c.Policy, policy.Options{})
	if err != nil {
		return err
	}
	text, err := readFile(c.Cases)
	if err != nil {
		return err
	}
	var said strings.Builder
	result, err := cases.Run(&said, set, c.Cases, text)
	if err != nil {
		return fileErrorIn(c.Cases, err)
	}
	report := testReport{Passed: result.Passed, Failed: result.Failed, Unhit: orEmpty(result.UncoveredRules), Text: said.String()}
	if err := p.print(report, func(w io.Writer) { fmt.Fprint(w, escapeControls(report.Text)) }); err != nil {
		return err
	}
	if result.Failed > 0 {
		return fmt.Errorf("%w: of %d cases, %d failed", errNeedsAttention, result.Passed+result.Failed, result.Failed)
	}
	return nil
}

// orEmpty is a list for programs, which is there also if it is empty.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

type policyLint struct {
	Policy string `arg:"" help:"The file of rules."`
	Routes string `help:"The file of routes that the rules name." placeholder:"FILE"`
	Groups string `help:"The file of groups that the rules name." placeholder:"FILE"`
}

// lintReport is what was found, for programs.
type lintReport struct {
	File     string           `json:"file"`
	Loads    bool             `json:"loads"` // if not, the problems are what keeps it from being used
	Problems []policy.Problem `json:"problems"`
}

// Run looks at a policy as a server would, and closer.
func (c *policyLint) Run(p *program) error {
	world, err := c.environment()
	if err != nil {
		return err
	}
	report := lintReport{File: c.Policy, Problems: []policy.Problem{}}
	set, err := loadPolicy(c.Policy, policy.Options{UnknownFields: policy.OptionalFields})
	if broken, ok := errors.AsType[*policy.LoadError](err); ok {
		report.Problems = broken.Problems
	} else if err != nil {
		return err
	} else {
		report.Loads, report.Problems = true, orEmpty(set.Lint(world))
	}
	if err := p.print(report, report.text); err != nil {
		return err
	}
	switch {
	case !report.Loads:
		return &fileError{fmt.Errorf("%s cannot be loaded", c.Policy)}
	case len(report.Problems) > 0:
		return fmt.Errorf("%w: %s has %d doubtful places", errNeedsAttention, c.Policy, len(report.Problems))
	}
	return nil
}

func (r lintReport) text(w io.Writer) {
	for _, problem := range r.Problems {
		fmt.Fprintln(w, escapeControls(problem.String()))
	}
	if len(r.Problems) == 0 {
		fmt.Fprintf(w, "%s is good\n", r.File)
	}
}

// world is what the rules are compared with, as far as there are files of it.
func (c *policyLint) environment() (world policy.LintContext, err error) {
	if c.Groups != "" {
		groups := &groupsFile{file: c.Groups}
		if err := groups.load(); err != nil {
			return world, &fileError{err}
		}
		world.Directory = groups
	}
	if c.Routes == "" {
		return world, nil
	}
	routes, err := readRoutes(c.Routes)
	if err != nil {
		return world, &fileError{err}
	}
	world.CheckRoute = func(name string) string {
		if _, known := routes[name]; !known {
			return "unknown"
		}
		return ""
	}
	world.WidensTo = func(name string) (who []string) {
		for _, step := range routes[name].Steps {
			who = append(who, step.Widen...)
		}
		return who
	}
	return world, nil
}

type policyExplain struct {
	remote
	Policy    string  `arg:"" optional:"" help:"The file of rules; without one, the server is asked."`
	Input     string  `arg:"" optional:"" help:"The file with the action, as JSON."`
	Tool      string  `help:"The action, to ask the server about." placeholder:"NAME"`
	Args      jsonArg `help:"Its arguments, as JSON; @FILE and - read them from a file and from standard input." placeholder:"JSON"`
	Graph     string  `help:"Where it happens." placeholder:"NAME"`
	Requester string  `help:"For whom." placeholder:"NAME"`
	Agent     string  `help:"Who proposes it." placeholder:"NAME"`
}

// Run explains, from files or by asking a server.
func (c *policyExplain) Run(ctx context.Context, p *program) error {
	var decision policy.Decision
	var err error
	switch {
	case c.Policy == "" && c.Tool != "":
		decision, err = c.ask(ctx)
	case c.Tool+string(c.Args)+c.Graph+c.Requester+c.Agent != "":
		err = usage("either a policy and the file of an input, or --tool to ask the server")
	case c.Policy != "" && c.Input != "":
		decision, err = c.offline()
	default:
		err = usage("a policy and the file of an input are needed, or --tool to ask the server")
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := decision.Explain(&text); err != nil {
		return err
	}
	return p.print(decision, func(w io.Writer) { fmt.Fprint(w, escapeControls(text.String())) })
}

func (c *policyExplain) ask(ctx context.Context) (decision policy.Decision, err error) {
	action := api.HypotheticalAction{Tool: c.Tool, Graph: c.Graph, Requester: c.Requester, Agent: c.Agent}
	if c.Args != "" {
		if action.Args, err = c.Args.read("--args"); err != nil {
			return decision, err
		}
	}
	to, err := c.client()
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
	text, err := readFile(c.Input)
	if err != nil {
		return policy.Decision{}, err
	}
	in := policy.Input{At: time.Now().UTC().Truncate(time.Second)} // unless the file says another time
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

// missingFields are the fields that an action does not tell of itself, and the file does not either: as on a server, they are not taken for none.
func missingFields(input []byte) (fields []string) {
	members, err := strictjson.Members(input)
	for _, field := range policy.OptionalFields {
		if _, told := members[field]; err == nil && !told {
			fields = append(fields, field)
		}
	}
	return fields
}

// withRecorded hands on the inputs of a file, one to a line, as they are read; none if there is no file.
func withRecorded(file string, use func(iter.Seq2[policy.Input, error]) error) error {
	if file == "" {
		return use(replay.ReadInputs(strings.NewReader("")))
	}
	opened, err := os.Open(file)
	if err != nil {
		return &fileError{err}
	}
	defer opened.Close()
	return fileErrorIn(file, use(replay.ReadInputs(opened)))
}

type policyDiff struct {
	Old    string `arg:"" help:"The file of rules that is in use."`
	New    string `arg:"" help:"The one that would take its place."`
	Inputs string `help:"Recorded actions, one to a line, to judge by both." placeholder:"FILE"`
}

// Run compares. What gets easier is something that a person has to look at.
func (c *policyDiff) Run(p *program) error {
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
	if err := p.print(report, func(w io.Writer) { fmt.Fprint(w, escapeControls(text.String())) }); err != nil {
		return err
	}
	if report.Weakens() {
		return fmt.Errorf("%w: %s lets more through than %s", errNeedsAttention, c.New, c.Old)
	}
	return nil
}

// count judges recorded actions of a file.
func (c *policySimulate) simulateFile(p *program) error {
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
	return p.print(summary, func(w io.Writer) { fmt.Fprint(w, escapeControls(text.String())) })
}
