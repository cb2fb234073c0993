package config

import "strings"

// Claude configures the Claude CLI. The operator installs it; see docs/providers.md.
type Claude struct {
	AgentsFile string   `key:"agentsFile" help:"Agents file: the graphs claude:NAME with their tools, and which of them need a decision. Without it there are no such graphs. See docs/providers.md."`
	Command    string   `key:"command" help:"The executable of the CLI."`
	APIKeyFile string   `key:"apiKeyFile" help:"A file that contains the API key. It is read for each process of the CLI. Without it, env must have credentials."`
	BaseURL    string   `key:"baseURL" help:"The address of the model API, if it is not Anthropic's."`
	Env        []Secret `key:"env" help:"Variables for the CLI, NAME=value. Its tools see them too. From the environment of the server it gets PATH, the language and the time zone only."`
	TempDir    string   `key:"tempDir" help:"The directory for the private directories of the processes: each has a session in clear text while it runs. Empty means that of the operating system."`
	Processes  int      `key:"processes" min:"1" max:"1000" help:"Processes of the CLI that run at the same time. Each needs about 200 MB."`
}

// check checks what can be checked without the CLI.
func (c *Claude) check(bad func(key, format string, args ...any)) {
	for _, variable := range c.Env {
		if name, _, ok := strings.Cut(variable.Reveal(), "="); !ok || name == "" {
			bad("providers.claude.env", "a variable must be NAME=value")
		}
	}
	if c.AgentsFile != "" && c.Command == "" {
		bad("providers.claude.command", "it is missing")
	}
}
