package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/app/tui"
	"github.com/fermata-go/fermata/client"
)

// runsCommand lists runs, or shows one.
type runsCommand struct {
	List runsList    `cmd:"" default:"withargs" help:"List runs."`
	Show runsShowCmd `cmd:"" help:"Show a run: its status, what it waits for, its result."`
}

type runsShowCmd struct {
	remote
	Key string `arg:"" help:"The state key of the run."`
}

// runReport is the JSON output of a run.
type runReport struct {
	api.Run
	Outcome  fermata.Outcome `json:"outcome,omitempty"`
	Requests []api.Request   `json:"requests"`
}

// Run shows a run.
func (c *runsShowCmd) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	view, err := to.Run(ctx, c.Key)
	if err != nil {
		return err
	}
	return p.print(runReport{view.Run, view.Outcome, view.Requests}, func(w io.Writer) { printRun(w, view) })
}

func printRun(w io.Writer, view client.RunView) {
	fmt.Fprintf(w, "run\t%s\ngraph\t%s\nstatus\t%s\n", oneLine(view.StateKey), oneLine(view.GraphID), view.Status)
	fmt.Fprintf(w, "run id\t%s\n", view.RunID)
	fmt.Fprintf(w, "created\t%s (%s)\nupdated\t%s (%s)\n", formatClock(view.CreatedAt), ago(view.CreatedAt), formatClock(view.UpdatedAt), ago(view.UpdatedAt))
	if view.Attempts > 1 {
		fmt.Fprintf(w, "attempts\t%d\n", view.Attempts)
	}
	switch o := view.Outcome.(type) {
	case fermata.Completed:
		printCompleted(w, o)
	case fermata.Failed:
		printFailed(w, o)
	default:
	}
	for _, r := range view.Requests {
		if d := r.Decision; d != nil {
			fmt.Fprintf(w, "%s\t%s: %s by %s at %s\n", r.ID, oneLine(r.Kind), d.Verdict, oneLine(d.By), formatClock(d.At))
		}
	}
	printNeeds(w, view)
}

// printNeeds prints what a run needs to continue: answers of people, or an operator.
func printNeeds(w io.Writer, view client.RunView) {
	for _, r := range view.Requests {
		if r.State != "pending" {
			continue
		}
		line := oneLine(r.Kind) + ": " + truncate(unescapeHTML([]byte(tui.Summary(r))))
		if r.Activity != nil && r.Activity.Summary != "" {
			line += " (" + oneLine(r.Activity.Summary) + ")"
		}
		fmt.Fprintf(w, "needs\tan answer to %s, %s\n", r.ID, line)
		fmt.Fprintf(w, "\tfermata show %s\n", r.ID)
	}
	if view.Status == "parked" {
		fmt.Fprintf(w, "needs\tan operator: it cannot continue by itself. Remove the cause, then retry it\n\tfermata retry %s\n", shellWord(view.StateKey))
	}
}

// shellWord quotes a text of another person for a shell, if it needs it.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(oneLine(text), "'", `'\''`) + "'"
}

type retryCommand struct {
	remote
	Key string `arg:"" help:"The state key of the run."`
}

// Run retries a run.
func (c *retryCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	if err := to.Retry(ctx, c.Key); err != nil {
		return err
	}
	view, err := to.Run(ctx, c.Key)
	if err != nil {
		return err
	}
	return p.print(runReport{view.Run, view.Outcome, view.Requests}, func(w io.Writer) {
		fmt.Fprintf(w, "retried\t%s\nstatus\t%s\n\tfermata watch %s\n", oneLine(view.StateKey), view.Status, shellWord(view.StateKey))
	})
}
