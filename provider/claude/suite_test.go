package claude_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/claudetest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/claude"
	"github.com/fermata-go/fermata/provider/providertest"
)

// suiteScript plays the agents of the suite: the review drafts, asks until it is approved, and
// publishes; the other one drops a table.
func suiteScript(c claudetest.Conversation) []claudetest.Block {
	last := c.Last().Text
	switch {
	case strings.Contains(c.Prompt, "drop the table") && len(c.Results) == 0:
		return []claudetest.Block{claudetest.Call("mcp__work__drop", map[string]any{"table": "users"})}
	case strings.Contains(c.Prompt, "drop the table"):
		return []claudetest.Block{claudetest.Text("Done: " + last)}
	case len(c.Results) == 0:
		return []claudetest.Block{claudetest.Call("mcp__work__draft", map[string]any{})}
	case strings.Contains(last, `"approve"`):
		return []claudetest.Block{claudetest.Call("mcp__work__publish", map[string]any{})}
	case last == "publish":
		return []claudetest.Block{claudetest.Text("published")}
	}
	return []claudetest.Block{claudetest.Call("mcp__fermata__content-review", map[string]any{"draft": "after " + last})}
}

func TestClaude_PassesTheSuite(t *testing.T) {
	t.Parallel()
	model := claudetest.NewModel(t, suiteScript)
	providertest.Run(t, providertest.Subject{
		Slow:  true,
		Store: func(*testing.T) store.Store { return memory.NewStore(nil) },
		New: func(t *testing.T, world *providertest.World) provider.Provider {
			work := func(name string) func(context.Context, json.RawMessage) (string, error) {
				return func(ctx context.Context, _ json.RawMessage) (string, error) { return name, world.Work(ctx, name) }
			}
			tools := claudetest.NewTools(t, map[string]claudetest.Tool{
				"draft": work("draft"), "publish": work("publish"), "drop": work("drop"),
			})
			review := contentReview()
			review.Tools, review.MCPServers = []string{"mcp__work__draft", "mcp__work__publish"}, tools.Settings()
			drop := claude.Graph{Name: "drop", Ask: []string{"mcp__work__*"}, MCPServers: tools.Settings()}
			return newProvider(t, model, review, drop)
		},
		Review: providertest.Review{
			Input: json.RawMessage(`{"prompt":"write about tea"}`),
			BadInputs: []json.RawMessage{
				json.RawMessage(`{"prompt":{"of":"CANARY"}}`), json.RawMessage(`{"prompt":"tea","extra":"CANARY"}`), json.RawMessage(`{"Prompt":"CANARY"}`),
				json.RawMessage(`["CANARY"]`), json.RawMessage(`"CANARY"`), json.RawMessage(`{"prompt":`), json.RawMessage(`{"prompt":" "}`),
			},
		},
		Drop: providertest.Drop{Input: json.RawMessage(`{"prompt":"drop the table users"}`)},
	})
}
