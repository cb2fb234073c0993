package operatorcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/store"
)

type auditTrail struct {
	auditSource
	What string `arg:"" help:"The state key or id of a run, or the id of a request."`
}

var errNotAsApproved = fmt.Errorf("%w: something else was executed than was approved", cli.ErrNeedsAttention)

// Run shows the actions of a run.
func (c *auditTrail) Run(ctx context.Context, p *cli.Program) error {
	trails, err := c.read(ctx)
	if err == nil && len(trails) == 0 {
		err = fmt.Errorf("%w: no action of %q", audit.ErrNotFound, c.What)
	}
	if err != nil {
		return err
	}
	err = p.Print(trails, func(w io.Writer) {
		for _, t := range trails {
			printTrail(w, t)
		}
	})
	for _, t := range trails {
		if err == nil && !t.AsApproved() {
			err = errNotAsApproved
		}
	}
	return err
}

// read returns the actions, from the server or from the store.
func (c *auditTrail) read(ctx context.Context) (trails []audit.Trail, err error) {
	if c.Account != "" {
		err = auditFlags{c.StoreFlags, c.Account}.withLog(ctx, func(log *audit.StoreLog, _ store.Store) (err error) {
			trails, err = audit.Trails(audit.RecordsAbout(ctx, log, c.Account, c.What))
			return err
		})
		return trails, err
	}
	to, err := c.server()
	if err != nil {
		return nil, err
	}
	data, err := to.AuditTrail(ctx, c.What)
	if err == nil {
		err = json.Unmarshal(data, &trails)
	}
	return trails, err
}

func printTrail(w io.Writer, t audit.Trail) {
	fmt.Fprintf(w, "%s (request %s, run %s)\n", cli.OneLine(t.Action), cli.OneLine(t.Request), cli.OneLine(t.Run))
	step := func(what string, s audit.TrailStep, more ...string) {
		if s.Seq > 0 {
			line := fmt.Sprintf("  %-9s %s  %s  record %d, by %s %s", what, s.At, s.Digest.Short(), s.Seq, s.By, strings.Join(more, " "))
			fmt.Fprintln(w, strings.TrimRight(cli.OneLine(line), " "))
		}
	}
	step("proposed", t.Proposed)
	for _, edit := range t.Edited {
		step("edited", edit)
	}
	step("approved", t.Approved)
	for _, done := range t.Executed {
		state := string(done.State)
		if done.Receipt != "" {
			state = "receipt: " + string(done.Receipt)
		}
		step("executed", done, state)
	}
	step("not begun", t.NotExecuted, "receipt: "+string(t.NotExecuted.Receipt))
	switch {
	case t.Ended != "":
		fmt.Fprintf(w, "  ended without an approval: %s\n", cli.OneLine(t.Ended))
	case len(t.Executed) > 0 && t.AsApproved():
		fmt.Fprintln(w, "  what was executed is what was approved")
	case len(t.Executed) > 0:
		fmt.Fprintln(w, "  WHAT WAS EXECUTED IS NOT WHAT WAS APPROVED")
	}
}
