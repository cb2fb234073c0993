package clientcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/provider/langgraph"
)

type AdoptCommands struct {
	LangGraph adoptLangGraph `cmd:"" name:"langgraph" help:"Adopt paused threads of a LangGraph server."`
}

type adoptLangGraph struct {
	cli.Remote
	Server     string            `arg:"" help:"The URL of the LangGraph server, the same as providers.langgraph.url."`
	APIKeyFile string            `help:"A file that contains the API key of the LangGraph server." placeholder:"FILE"`
	Assistant  map[string]string `help:"The assistant of fermata.yaml for the threads of a graph, if it has another name than the graph. Repeatable." placeholder:"GRAPH=NAME"`
	Once       bool              `help:"Adopt the threads that are paused now, and exit."`
	Every      time.Duration     `help:"Interval of the searches." default:"5s"`
}

// adopted is a line of the output.
type adopted struct {
	StateKey string `json:"stateKey"`
	Graph    string `json:"graph"`
	Problem  string `json:"problem,omitempty"`
}

// Run starts a run for each paused thread, and watches for new ones.
func (c *adoptLangGraph) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	if c.Every < 100*time.Millisecond {
		return cli.Usagef("--every must be at least 100ms")
	}
	config := langgraph.Config{URL: c.Server}
	if c.APIKeyFile != "" {
		key, err := os.ReadFile(c.APIKeyFile)
		if err != nil {
			return cli.InvalidFile(err)
		}
		config.APIKey = strings.TrimSpace(string(key))
	}
	if err := c.checkGraphs(ctx, config); err != nil {
		return err
	}
	known := make(map[string]bool) // state keys
	for {
		if err := c.adoptNew(ctx, p, to, config, known); err != nil || c.Once {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Every):
		}
	}
}

// checkGraphs returns an error if an assistant is for a graph that the server does not have.
func (c *adoptLangGraph) checkGraphs(ctx context.Context, config langgraph.Config) error {
	if len(c.Assistant) == 0 {
		return nil
	}
	graphs, err := langgraph.ListGraphs(ctx, config)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Assistant)) {
		if !slices.Contains(graphs, name) {
			return cli.Usagef("--assistant: the server has no graph %q; it has %s", name, strings.Join(graphs, ", "))
		}
	}
	return nil
}

// adoptNew adopts the threads that are paused now. It reports once what it cannot adopt.
func (c *adoptLangGraph) adoptNew(ctx context.Context, p *cli.Program, to *client.Client, config langgraph.Config, known map[string]bool) error {
	paused, err := langgraph.ListPaused(ctx, config)
	if err != nil {
		if !c.Once && len(known) > 0 && ctx.Err() == nil {
			fmt.Fprintln(p.Err, "fermata: trying again:", err)
			return nil
		}
		return err
	}
	for _, thread := range paused {
		if known[thread.StateKey] {
			continue
		}
		row := adopted{StateKey: thread.StateKey, Graph: langgraph.Name + ":" + cmp.Or(c.Assistant[thread.Graph], thread.Graph)}
		_, err := to.Chat(ctx, api.Chat{GraphID: row.Graph, StateKey: row.StateKey, Input: thread.Input})
		if problem, ok := errors.AsType[*api.Problem](err); ok {
			row.Problem, err = problem.Code, nil
		}
		if err != nil && !errors.Is(err, client.ErrPending) {
			return err
		}
		known[thread.StateKey] = true
		if err := p.Print(row, func(w io.Writer) {
			if row.Problem != "" {
				fmt.Fprintf(w, "not adopted\t%s\t%s\t%s\n", row.StateKey, cli.OneLine(row.Graph), row.Problem)
				return
			}
			fmt.Fprintf(w, "adopted\t%s\t%s\n", row.StateKey, cli.OneLine(row.Graph))
		}); err != nil {
			return err
		}
	}
	return nil
}
