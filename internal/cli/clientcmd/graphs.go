package clientcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
)

type GraphsCommand struct {
	cli.Remote
	Graph *string `arg:"" optional:"" help:"The graph to draw, for example inproc:content-review; without it, all are listed."`
	Of    *string `name:"run" help:"Draw the graph of this run, and mark where it waits." placeholder:"KEY"`
	As    string  `help:"Output format: ${enum}." enum:"text,mermaid,svg" default:"text" placeholder:"FORM"`
}

// Run lists the graphs, or draws one.
func (c *GraphsCommand) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	var one api.Graph
	switch {
	case c.Graph != nil && c.Of != nil:
		return cli.Usagef("pass either a graph or --run, not both")
	case c.Graph != nil && *c.Graph == "" || c.Of != nil && *c.Of == "":
		return cli.Usagef("the name is empty")
	case p.JSON && c.As != "text":
		return cli.Usagef("--as cannot be combined with --json, which contains the whole drawing")
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

func (c *GraphsCommand) list(ctx context.Context, p *cli.Program, to *client.Client) error {
	if c.As != "text" {
		return cli.Usagef("--as needs a graph or --run")
	}
	page, err := to.Graphs(ctx)
	if err != nil {
		return err
	}
	return p.Print(page.Items, func(w io.Writer) {
		fmt.Fprintln(w, "GRAPH\tDESCRIPTION")
		for _, g := range page.Items {
			fmt.Fprintf(w, "%s\t%s\n", cli.Truncate(g.ID), cli.OneLine(g.Description))
		}
	})
}

func (c *GraphsCommand) draw(p *cli.Program, g api.Graph) error {
	if g.Drawing == nil && c.As != "text" && !p.JSON {
		return fmt.Errorf("%w: %s", cli.ErrNoDrawing, cli.OneLine(g.ID))
	}
	return p.Print(g, func(w io.Writer) {
		switch {
		case g.Drawing == nil:
			fmt.Fprintf(w, "%s: %v\n", cli.OneLine(g.ID), cli.ErrNoDrawing)
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
