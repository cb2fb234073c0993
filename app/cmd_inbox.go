package app

import (
	"context"

	"github.com/fermata-go/fermata/internal/tui"
)

// inboxCommand is the interactive inbox in a terminal, and a list otherwise.
type inboxCommand struct {
	inboxList
	List bool `help:"Print a list, also in a terminal."`
}

// Run shows the inbox, or lists the requests.
func (c *inboxCommand) Run(ctx context.Context, p *program) error {
	if c.List || p.json || c.All || !tui.IsScreen(p.out) {
		return c.inboxList.Run(ctx, p)
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	p.screen = true
	return tui.Run(ctx, tui.Config{Server: to, Kind: c.Kind, Limit: c.Limit, Out: p.out})
}
