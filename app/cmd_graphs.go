package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

type graphsCommand struct {
	remote
	Graph *string `arg:"" optional:"" help:"The graph to draw, for example inproc:content-review; without it, all are listed."`
	Of    *string `name:"run" help:"Draw the graph of this run, and mark where it waits." placeholder:"KEY"`
	As    string  `help:"Output format: ${enum}." enum:"text,mermaid,svg" default:"text" placeholder:"FORM"`
}

// Run lists the graphs, or draws one.
func (c *graphsCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	var one api.Graph
	switch {
	case c.Graph != nil && c.Of != nil:
		return usage("pass either a graph or --run, not both")
	case c.Graph != nil && *c.Graph == "" || c.Of != nil && *c.Of == "":
		return usage("the name is empty")
	case p.json && c.As != "text":
		return usage("--as cannot be combined with --json, which contains the whole drawing")
	case c.Of != nil:
		one, err = to.RunGraph(ctx, *c.Of)
	case c.Graph != nil:
		one, err = to.Graph(ctx, *c.Graph)
	default:
		return c.list(ctx, p, to)
	}
	if err != nil {
		return err
	}
	return c.draw(p, one)
}

func (c *graphsCommand) list(ctx context.Context, p *program, to *client.Client) error {
	if c.As != "text" {
		return usage("--as needs a graph or --run")
	}
	page, err := to.Graphs(ctx)
	if err != nil {
		return err
	}
	return p.print(page.Items, func(w io.Writer) {
		fmt.Fprintln(w, "GRAPH\tDESCRIPTION")
		for _, g := range page.Items {
			fmt.Fprintf(w, "%s\t%s\n", truncate(g.ID), oneLine(g.Description))
		}
	})
}

func (c *graphsCommand) draw(p *program, g api.Graph) error {
	if g.Drawing == nil && c.As != "text" && !p.json {
		return fmt.Errorf("%w: %s", errNoDrawing, oneLine(g.ID))
	}
	return p.print(g, func(w io.Writer) {
		switch {
		case g.Drawing == nil:
			fmt.Fprintf(w, "%s: %v\n", oneLine(g.ID), errNoDrawing)
			writeCapabilities(w, g.Capabilities)
		case c.As == "svg":
			fmt.Fprint(w, g.Drawing.SVG())
		case c.As == "mermaid":
			fmt.Fprint(w, g.Drawing.Mermaid())
		default:
			fmt.Fprint(w, g.Drawing.Text())
			writeCapabilities(w, g.Capabilities)
		}
	})
}

// writeCapabilities writes what the provider of a graph supports, and what it does not.
func writeCapabilities(w io.Writer, can api.Capabilities) {
	yes, no := can.Supported()
	for _, line := range []struct {
		label string
		names []string
	}{{"supports", yes}, {"without", no}} {
		if len(line.names) > 0 {
			fmt.Fprintf(w, "%s\t%s\n", line.label, strings.Join(line.names, ", "))
		}
	}
}
