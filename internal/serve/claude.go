package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/yamldoc"
	"github.com/fermata-go/fermata/provider/claude"
)

// agentsFile is the file with the agents of the Claude CLI.
type agentsFile struct {
	Agents []claudeAgent `yaml:"agents"`
}

// claudeAgent is a [claude.Graph] in YAML.
type claudeAgent struct {
	Name         string         `yaml:"name"`
	Description  string         `yaml:"description"`
	Model        string         `yaml:"model"`
	SystemPrompt string         `yaml:"systemPrompt"`
	WorkDir      string         `yaml:"workDir"`
	Tools        []string       `yaml:"tools"`
	Ask          []string       `yaml:"ask"`
	MaxTurns     int            `yaml:"maxTurns"`
	MCPServers   map[string]any `yaml:"mcpServers"`
	Questions    []struct {
		Kind        string `yaml:"kind"`
		Description string `yaml:"description"`
		Input       any    `yaml:"input"`
		Answer      any    `yaml:"answer"`
	} `yaml:"questions"`
}

// claudeProvider returns the provider of the configured agents; nil if there are none.
func claudeProvider(c config.Claude) (*claude.Provider, error) {
	if c.AgentsFile == "" {
		return nil, nil
	}
	graphs, err := readAgents(c.AgentsFile)
	if err != nil {
		return nil, fmt.Errorf("providers.claude.agentsFile: %w", err)
	}
	var environment []string
	for _, variable := range c.Env {
		environment = append(environment, variable.Reveal())
	}
	p, err := claude.New(claude.Config{
		Command: c.Command, APIKeyFile: c.APIKeyFile, BaseURL: c.BaseURL, Environment: environment, TempDir: c.TempDir, Processes: c.Processes, Graphs: graphs,
	})
	if err != nil {
		return nil, fmt.Errorf("providers.claude: %w", err)
	}
	return p, nil
}

func readAgents(path string) ([]claude.Graph, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f agentsFile
	if err := yamldoc.Decode(filepath.Base(path), text, &f); err != nil {
		return nil, err
	}
	if len(f.Agents) == 0 {
		return nil, fmt.Errorf("%s: it has no agents", filepath.Base(path))
	}
	var graphs []claude.Graph
	for _, agent := range f.Agents {
		g, err := agent.graph()
		if err != nil {
			return nil, fmt.Errorf("%s: agent %q: %w", filepath.Base(path), agent.Name, err)
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}

// graph converts the agent. A relative working directory is relative to that of the server.
func (a claudeAgent) graph() (claude.Graph, error) {
	g := claude.Graph{
		Name: a.Name, Description: a.Description, Model: a.Model, SystemPrompt: a.SystemPrompt, Tools: a.Tools, Ask: a.Ask, MaxTurns: a.MaxTurns,
		MCPServers: make(map[string]json.RawMessage),
	}
	if a.WorkDir != "" {
		folder, err := filepath.Abs(a.WorkDir)
		if err != nil {
			return g, err
		}
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return g, errors.New("its workDir is not a directory")
		}
		g.WorkDir = folder
	}
	for name, settings := range a.MCPServers {
		data, err := json.Marshal(settings)
		if err != nil {
			return g, fmt.Errorf("MCP server %q: %w", name, err)
		}
		g.MCPServers[name] = data
	}
	for _, q := range a.Questions {
		input, err1 := schemaText(q.Input)
		answer, err2 := schemaText(q.Answer)
		if err := errors.Join(err1, err2); err != nil {
			return g, fmt.Errorf("question %q: %w", q.Kind, err)
		}
		g.Questions = append(g.Questions, claude.Question{Kind: q.Kind, Description: q.Description, Input: input, Answer: answer})
	}
	return g, nil
}

// schemaText returns a schema that is written in YAML; nil if it is missing.
func schemaText(schema any) (json.RawMessage, error) {
	if schema == nil {
		return nil, nil
	}
	return json.Marshal(schema)
}

// tryClaude checks the agents and the version of the CLI.
func tryClaude(ctx context.Context, c config.Claude) error {
	p, err := claudeProvider(c)
	if err != nil || p == nil {
		return nil // providers has reported it
	}
	if _, err := p.CheckCLI(ctx); err != nil {
		return fmt.Errorf("providers.claude.command: %w", err)
	}
	return nil
}
