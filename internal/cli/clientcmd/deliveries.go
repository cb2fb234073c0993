package clientcmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
)

type DeliveriesCommands struct {
	List  deliveriesList  `cmd:"" default:"withargs" help:"List deliveries."`
	Again deliveriesAgain `cmd:"" name:"send-again" help:"Send a delivery again now."`
}

type deliveriesList struct {
	cli.Remote
	Request string `help:"Only deliveries of this request." placeholder:"ID"`
	Channel string `help:"Only deliveries of this channel, for example slack." placeholder:"KIND"`
	State   string `help:"Only deliveries in this state: queued, sent, seen, failed, dead or obsolete." enum:",queued,sent,seen,failed,dead,obsolete" default:"" placeholder:"STATE"`
	Limit   int    `help:"The maximum number; 100 by default." default:"100"`
}

// Run lists deliveries.
func (c *deliveriesList) Run(ctx context.Context, p *cli.Program) error {
	if c.Limit < 1 {
		return cli.Usagef("--limit must be at least 1")
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	list := []api.Delivery{}
	q := client.DeliveryQuery{Request: c.Request, Channel: c.Channel, State: c.State}
	for len(list) < c.Limit {
		page, err := to.Deliveries(ctx, q)
		if err != nil {
			return err
		}
		list = append(list, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	list = list[:min(len(list), c.Limit)]
	return p.Print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no deliveries")
		}
		for _, d := range list {
			printDelivery(w, d)
		}
	})
}

// printDelivery prints a delivery on one line.
func printDelivery(w io.Writer, d api.Delivery) {
	state := d.State
	if d.Code != "" {
		state += " (" + cli.OneLine(d.Code) + ")"
	}
	if d.NextAt != nil {
		state += ", next " + d.NextAt.Format(time.RFC3339)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.ID, cli.OneLine(d.Target), d.Kind, cli.OneLine(d.Request), state)
}

type deliveriesAgain struct {
	cli.Remote
	ID string `arg:"" help:"The id of the delivery."`
}

// Run sends a delivery again.
func (c *deliveriesAgain) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	d, err := to.SendDelivery(ctx, c.ID)
	if err != nil {
		return err
	}
	return p.Print(d, func(w io.Writer) { printDelivery(w, d) })
}
