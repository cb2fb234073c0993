//go:build unix

package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/claudetest"
)

// claude is the Claude CLI with a scripted model.
type claude struct {
	testing.TB
	cli   string
	model *claudetest.Model
	tools *claudetest.Tools
	work  *ledger
	temp  string
}

func newClaude(t testing.TB, script claudetest.Script) *claude {
	t.Helper()
	c := &claude{TB: t, cli: claudetest.CLI(t), model: claudetest.NewModel(t, script), work: newLedger(t), temp: t.TempDir()}
	c.tools = claudetest.NewTools(t, map[string]claudetest.Tool{
		"pay":     c.tool("pay"),
		"draft":   c.tool("draft"),
		"publish": c.tool("publish"),
	})
	return c
}

// tool is a tool whose calls are counted by their argument n.
func (c *claude) tool(name string) claudetest.Tool {
	return func(_ context.Context, arguments json.RawMessage) (string, error) {
		var call struct{ N int }
		if err := json.Unmarshal(arguments, &call); err != nil {
			return "", err
		}
		c.work.do(fmt.Sprintf("%s-%d", name, call.N))
		return fmt.Sprintf("%s %d done", name, call.N), nil
	}
}

// settings are those of a server that drives the CLI. agents is the list in the agents file.
func (c *claude) settings(agents string) []string {
	c.Helper()
	file := filepath.Join(c.TempDir(), "agents.yaml")
	text := "agents:\n" + strings.ReplaceAll(agents, "TOOLS", `{work: {type: http, url: "`+c.tools.URL+`"}}`)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	return []string{
		"FERMATA_PROVIDERS_CLAUDE_AGENTS_FILE=" + file, "FERMATA_PROVIDERS_CLAUDE_COMMAND=" + c.cli, "FERMATA_PROVIDERS_CLAUDE_BASE_URL=" + c.model.URL,
		"FERMATA_PROVIDERS_CLAUDE_API_KEY_FILE=" + c.model.KeyFile, "FERMATA_PROVIDERS_CLAUDE_TEMP_DIR=" + c.temp,
	}
}

// killCLI kills the processes of the CLI that a server has started.
func killCLI(server int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT …
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(server) {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
	}
}

// payScript is a model that pays what its prompt says, "pay N", with a call that needs an approval.
func payScript(c claudetest.Conversation) []claudetest.Block {
	if len(c.Results) == 0 {
		words := strings.Fields(c.Prompt)
		at := slices.Index(words, "pay")
		n, err := strconv.Atoi(words[at+1])
		if err != nil {
			return []claudetest.Block{claudetest.Text("what?")}
		}
		return []claudetest.Block{claudetest.Call("mcp__work__pay", map[string]any{"n": n})}
	}
	return []claudetest.Block{claudetest.Text("The result: " + c.Last().Text)}
}
