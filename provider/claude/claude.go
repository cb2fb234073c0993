package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/kinds"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// Name is the provider part of a graph id, before the colon.
const Name = "claude"

var (
	_ provider.Provider     = (*Provider)(nil)
	_ provider.InputChecker = (*Provider)(nil)
)

// Config configures the CLI. Command and Graphs are enough if the environment has credentials.
type Config struct {
	// Command is the executable of the CLI; "claude", found in PATH, by default.
	Command string
	// APIKeyFile contains the API key. It is read for each process, so the key may change. Without
	// it, Environment must contain credentials.
	APIKeyFile string
	// BaseURL is the address of the API; that of Anthropic by default.
	BaseURL string
	// Environment has additional variables for the CLI, NAME=value. Its tools see them too. Of the
	// variables of this process the CLI gets only PATH, LANG and the time zone.
	Environment []string
	// TempDir is the directory for the private directories of the processes; that of the operating
	// system by default. They contain sessions in clear text while a process runs.
	TempDir string
	// Processes is the maximum number of concurrent processes; 4 by default. Each needs about 200
	// MB.
	Processes int
	// Graphs are the agents.
	Graphs []Graph
}

// Graph is one agent: a model with tools.
type Graph struct {
	// Name is the graph part of a graph id.
	Name        string
	Description string
	// Model is a model name or alias of the CLI; its default if empty.
	Model string
	// SystemPrompt is added to the system prompt of the CLI.
	SystemPrompt string
	// WorkDir is the working directory. Without it, each process gets an empty directory.
	WorkDir string
	// Tools run without a question, Ask after an approval; other tools do not exist. A name is that
	// of a built-in tool such as "Bash", or of an MCP tool, "mcp__SERVER__TOOL"; "mcp__SERVER__*"
	// is all tools of a server. Ask counts if a tool is in both. AskUserQuestion may only be in
	// Ask: it asks people questions of the model.
	Tools, Ask []string
	// Questions are tools that ask people: each has its own kind and form.
	Questions []Question
	// MCPServers are MCP servers by name, in the form of the CLI's configuration. The name
	// "fermata" is reserved.
	MCPServers map[string]json.RawMessage
	// MaxTurns limits the model calls of one process; 0 means no limit. The run fails at the limit.
	MaxTurns int
}

// Question is a tool that asks people. The model calls it with data for Input, a person answers
// with data for Answer, and the model gets the answer as the result of the call.
type Question struct {
	// Kind is the kind of the requests, and the name of the tool.
	Kind string
	// Description tells the model when to ask.
	Description string
	// Input and Answer are JSON Schemas of objects.
	Input, Answer json.RawMessage
}

// Provider runs graphs with the CLI. It keeps no state of a run in memory.
type Provider struct {
	config Config
	graphs map[string]*Graph
	list   []provider.Graph
	slots  chan struct{} // one for each process
}

// New creates a provider. It does not start the CLI; see [Provider.CheckCLI].
func New(config Config) (*Provider, error) {
	config.Command = cmp.Or(config.Command, "claude")
	config.Processes = cmp.Or(config.Processes, 4)
	if config.Processes < 0 {
		return nil, errors.New("claude: Config.Processes is negative")
	}
	p := &Provider{config: config, graphs: make(map[string]*Graph), slots: make(chan struct{}, config.Processes)}
	for i := range config.Graphs {
		g := &config.Graphs[i]
		if err := g.check(); err != nil {
			return nil, fmt.Errorf("claude: graph %q: %w", g.Name, err)
		}
		if p.graphs[g.Name] != nil {
			return nil, fmt.Errorf("claude: graph %q: it is defined twice", g.Name)
		}
		p.graphs[g.Name] = g
		p.list = append(p.list, provider.Graph{Name: g.Name, Description: g.Description, Input: schema.TextFor[input]()})
	}
	sweep(config.TempDir)
	return p, nil
}

// The tool that the CLI offers for questions of the model, and those that start subagents.
const askUserQuestion = "AskUserQuestion"

var subagentTools = []string{"Agent", "Task"}

// ownServer is the name of the MCP server with the questions.
const ownServer = "fermata"

func (g *Graph) check() error {
	switch {
	case g.Name == "" || strings.ContainsAny(g.Name, ": /"):
		return errors.New("its name is empty, or has a colon, a slash or a space")
	case slices.Contains(g.Tools, askUserQuestion):
		return errors.New("AskUserQuestion always asks a person: it belongs to ask, not to tools")
	case g.MCPServers[ownServer] != nil:
		return errors.New("an MCP server cannot have the name fermata")
	}
	for _, name := range slices.Concat(g.Tools, g.Ask) {
		if slices.Contains(subagentTools, name) {
			return fmt.Errorf("the tool %s starts subagents, which cannot wait for people", name)
		}
		if _, err := path.Match(name, ""); err != nil || name == "" || strings.ContainsAny(name, "(), ") {
			return fmt.Errorf("%q is not the name of a tool", name)
		}
		if !strings.HasPrefix(name, "mcp__") && strings.Contains(name, "*") {
			return fmt.Errorf("%q: only names of MCP tools may have a *", name)
		}
	}
	for i, q := range g.Questions {
		if err := q.check(); err != nil {
			return fmt.Errorf("question %q: %w", q.Kind, err)
		}
		if slices.ContainsFunc(g.Questions[:i], func(other Question) bool { return other.Kind == q.Kind }) {
			return fmt.Errorf("question %q: it is defined twice", q.Kind)
		}
	}
	return nil
}

func (q *Question) check() error {
	if strings.Trim(q.Kind, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || q.Kind == "" || len(q.Kind) > 40 {
		return errors.New("its kind must have lower-case letters, digits, '-' and '_' only, at most 40")
	}
	if kinds.BuiltIn(q.Kind) != "" || q.Kind == questionKind {
		return errors.New("its kind is one of Fermata's own")
	}
	for name, text := range map[string]json.RawMessage{"input": q.Input, "answer": q.Answer} {
		if text == nil {
			return fmt.Errorf("its %s schema is missing", name)
		}
		if _, err := schema.Parse(text); err != nil {
			return fmt.Errorf("its %s is not a JSON Schema", name)
		}
	}
	return nil
}

// Name returns "claude".
func (p *Provider) Name() string { return Name }

// Graphs lists the agents of the configuration.
func (p *Provider) Graphs() []provider.Graph { return slices.Clone(p.list) }

// Capabilities declares effects: calls that need an approval are in the ledger. No process runs
// while people decide, so a cancelled run has nothing left to stop. Executions mostly wait for the
// model, so they do not occupy the executor's workers; Config.Processes limits them.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Edit: true, Cancel: true, Streaming: true, Receipts: true, Once: provider.OnceEffects, Effects: true, Remote: true,
	}
}

// input is the input of a run.
type input struct {
	Prompt string `json:"prompt" jsonschema:"what the agent is asked to do"`
}

func decodeInput(data json.RawMessage) (input, error) {
	var in input
	err := strictjson.Decode(data, &in)
	switch _, typed := errors.AsType[*json.UnmarshalTypeError](err); {
	case typed: // the error text would contain a value
		return in, &provider.InputError{Code: provider.CodeInvalidInput, Field: "prompt", Problem: "it must be a text"}
	case err != nil:
		return in, &provider.InputError{Code: provider.CodeInvalidInput, Problem: `it must be {"prompt": "…"}`}
	case strings.TrimSpace(in.Prompt) == "":
		return in, &provider.InputError{Code: provider.CodeInvalidInput, Field: "prompt", Problem: "it is missing"}
	}
	return in, nil
}

// CheckInput validates the input of a run; see [provider.InputChecker].
func (p *Provider) CheckInput(_ context.Context, _, graph string, data json.RawMessage) error {
	if _, err := p.graph(graph); err != nil {
		return err
	}
	_, err := decodeInput(data)
	return err
}

func (p *Provider) graph(name string) (*Graph, error) {
	if g := p.graphs[name]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("claude: there is no graph %q", name)
}

// Delete does nothing: all data of a run is in its state, which the executor deletes.
func (p *Provider) Delete(context.Context, provider.Run) error { return nil }

// rule says what happens with a call of a tool.
type rule int

const (
	ruleUnknown rule = iota // the tool does not exist
	ruleAllow
	ruleApprove  // a person decides about the call
	ruleQuestion // a person answers it
)

// rule returns the rule for a tool.
func (g *Graph) rule(tool string) rule {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	}
	switch {
	case g.question(tool) != nil || tool == askUserQuestion && slices.Contains(g.Ask, tool):
		return ruleQuestion
	case strings.HasPrefix(tool, "mcp__"+ownServer+"__"):
		return ruleUnknown
	case slices.ContainsFunc(g.Ask, matches):
		return ruleApprove
	case slices.ContainsFunc(g.Tools, matches):
		return ruleAllow
	}
	return ruleUnknown
}

// question returns the question that a tool asks; nil if it is another tool.
func (g *Graph) question(tool string) *Question {
	kind, ok := strings.CutPrefix(tool, "mcp__"+ownServer+"__")
	if !ok {
		return nil
	}
	for i := range g.Questions {
		if g.Questions[i].Kind == kind {
			return &g.Questions[i]
		}
	}
	return nil
}

// builtInTools lists the tools of the CLI itself.
func (g *Graph) builtInTools() []string {
	var names []string
	for _, name := range slices.Concat(g.Tools, g.Ask) {
		if !strings.HasPrefix(name, "mcp__") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CLIError reports that the CLI did not do what the provider needs. Its text contains no data of
// the run.
type CLIError struct {
	Problem string
	Err     error // its text may contain data of the run or of the host; not printed
}

func (e *CLIError) Error() string { return "claude: " + e.Problem }

// ForLog returns the text for the operator's log; see [provider.LogError].
func (e *CLIError) ForLog() string { return e.Problem }

// Unwrap returns the cause.
func (e *CLIError) Unwrap() error { return e.Err }

var _ provider.LogError = (*CLIError)(nil)

// endTimeout is the time for recording the end of a call when the execution was cancelled.
const endTimeout = 10 * time.Second
