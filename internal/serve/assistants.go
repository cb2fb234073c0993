package serve

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/dialog"
	embed "github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/httptool"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// dialogConfig returns the conversations of the program with the assistants of the configuration;
// nil if there are none.
func (p *Program) dialogConfig(c *config.Config) *embed.DialogConfig {
	if len(c.Assistants) == 0 {
		return p.Dialog
	}
	var d embed.DialogConfig
	if p.Dialog != nil {
		d = *p.Dialog
	}
	d.Assistants = d.Assistants[:len(d.Assistants):len(d.Assistants)]
	for _, a := range c.Assistants {
		d.Assistants = append(d.Assistants, dialog.Assistant{ID: a.ID, Title: a.Title, Description: a.Description, Graph: inproc.Name + ":" + a.ID})
	}
	return &d
}

// assistantGraphs returns the agents of the configuration.
func assistantGraphs(list config.Assistants) ([]inproc.Graph, error) {
	var graphs []inproc.Graph
	var errs []error
	for i, a := range list {
		g, err := assistantGraph(a)
		if err != nil {
			errs = append(errs, fmt.Errorf("assistants[%d]: %w", i, err))
			continue
		}
		graphs = append(graphs, g)
	}
	return graphs, errors.Join(errs...)
}

func assistantGraph(a config.Assistant) (inproc.Graph, error) {
	client, err := outbound.NewClient(outbound.Config{Allow: a.Allow})
	if err != nil {
		return nil, fmt.Errorf("allow: %w", err)
	}
	model, err := assistantModel(a.Model, client)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	var tools []*tool.Tool
	for i, t := range a.Tools {
		made, err := assistantTool(t, client)
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		tools = append(tools, made)
	}
	chat, err := agent.NewChat(agent.Chat{
		Name: a.ID, Description: a.Description, Instruction: a.Instructions, Model: model, Tools: tools,
		MaxTurns: math.MaxInt32, // Limits asks an approver instead
	})
	if err != nil {
		return nil, err
	}
	return inproc.Agent(agent.RunnerConfig{
		Agent: chat, EnableStreaming: true,
		Limits: agent.Limits{ModelCalls: a.Limits.Steps, Tokens: int64(a.Limits.Tokens), Time: time.Duration(a.Limits.Time)},
	}, inproc.Explain(model)), nil // the requester is an end user, who cannot see requests
}

// modelURLs are the addresses of the services, which the vendors' clients use without a base URL.
var modelURLs = map[string]string{"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}

func assistantModel(m config.Model, client *outbound.Client) (agent.Model, error) {
	address := m.BaseURL
	if address == "" {
		address = modelURLs[m.Provider]
	}
	target, err := client.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("baseURL: %w", err)
	}
	calls := *client.HTTP(target)
	calls.Timeout = time.Duration(m.Timeout)
	return newModel(m, &calls)
}

func newModel(m config.Model, calls *http.Client) (agent.Model, error) {
	if m.Provider == "anthropic" {
		return anthropic.New(anthropic.Config{Model: m.Model, APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL, MaxTokens: int64(m.MaxTokens), HTTPClient: calls})
	}
	return openai.New(openai.Config{Model: m.Model, APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL, MaxTokens: int64(m.MaxTokens), HTTPClient: calls})
}

func assistantTool(t config.AssistantTool, client *outbound.Client) (*tool.Tool, error) {
	header, secrets := make(http.Header), []string(nil)
	for name, value := range t.Headers {
		header.Set(name, value)
	}
	for name, secret := range t.Secrets {
		header.Set(name, secret.Reveal())
		secrets = append(secrets, secret.Reveal())
	}
	return httptool.New(httptool.Config{
		Name: t.Name, Description: t.Description, Parameters: t.Schema, Method: t.Method, URL: t.URL, Header: header, Secrets: secrets,
		Write: t.Effect == "write", Preview: t.Preview, Idempotent: t.Idempotent, Timeout: time.Duration(t.Timeout), MaxResponse: int64(t.MaxResponse), Client: client,
	})
}
