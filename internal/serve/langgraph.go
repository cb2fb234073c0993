package serve

import (
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/provider/langgraph"
)

// langGraph returns the provider of the configured LangGraph server; nil if there is none.
func langGraph(c config.LangGraph) (*langgraph.Provider, error) {
	if c.URL == "" {
		return nil, nil
	}
	assistants := make(map[string]langgraph.Assistant)
	for _, entry := range c.Assistants {
		name, id, _ := strings.Cut(entry, "=")
		assistants[strings.TrimSpace(name)] = langgraph.Assistant{ID: strings.TrimSpace(id)}
	}
	p, err := langgraph.New(langgraph.Config{URL: c.URL, APIKey: c.APIKey.Reveal(), Assistants: assistants, GrantField: c.GrantField, ApproverField: c.Approver})
	if err != nil {
		return nil, fmt.Errorf("providers.langgraph: %w", err)
	}
	return p, nil
}
