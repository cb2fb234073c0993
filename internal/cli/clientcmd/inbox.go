package clientcmd

import (
	"context"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/tui"
)

// InboxCommand is the interactive inbox in a terminal, and a list otherwise.
type InboxCommand struct {
	inboxList
	List bool `help:"Print a list, also in a terminal."`
}

// Run shows the inbox, or lists the requests.
func (c *InboxCommand) Run(ctx context.Context, p *cli.Program) error {
	if c.List || p.JSON || c.All || !tui.IsScreen(p.Out) {
		return c.inboxList.Run(ctx, p)
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	p.Screen = true
	return tui.Run(ctx, tui.Config{Server: to, Kind: c.Kind, Limit: c.Limit, Out: p.Out})
}
