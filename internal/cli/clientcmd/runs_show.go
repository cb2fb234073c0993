package clientcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/tui"
)

// RunsCommand lists runs, or shows one.
type RunsCommand struct {
	List runsList    `cmd:"" default:"withargs" help:"List runs."`
	Show runsShowCmd `cmd:"" help:"Show a run: its status, what it waits for, its result."`
}

type runsShowCmd struct {
	cli.Remote
	Key string `arg:"" help:"The state key of the run."`
}

// runReport is the JSON output of a run.
type runReport struct {
	api.Run
	Outcome  fermata.Outcome `json:"outcome,omitempty"`
	Requests []api.Request   `json:"requests"`
	Problem  *api.RunProblem `json:"problem,omitempty"`
}

// Run shows a run.
func (c *runsShowCmd) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	view, err := to.Run(ctx, c.Key)
	if err != nil {
		return err
	}
	return p.Print(runReport{view.Run, view.Outcome, view.Requests, view.Problem}, func(w io.Writer) { printRun(w, view) })
}

func printRun(w io.Writer, view client.RunView) {
	fmt.Fprintf(w, "run\t%s\ngraph\t%s\nstatus\t%s\n", cli.OneLine(view.StateKey), cli.OneLine(view.GraphID), view.Status)
	fmt.Fprintf(w, "run id\t%s\n", view.RunID)
	fmt.Fprintf(w, "created\t%s (%s)\nupdated\t%s (%s)\n", cli.FormatClock(view.CreatedAt), cli.Ago(view.CreatedAt), cli.FormatClock(view.UpdatedAt), cli.Ago(view.UpdatedAt))
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
	printProblem(w, view)
	for _, r := range view.Requests {
		if d := r.Decision; d != nil {
			fmt.Fprintf(w, "%s\t%s: %s by %s at %s\n", r.ID, cli.OneLine(r.Kind), d.Verdict, cli.OneLine(d.By), cli.FormatClock(d.At))
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
		line := cli.OneLine(r.Kind) + ": " + cli.Truncate(cli.UnescapeHTML([]byte(tui.Summary(r))))
		if r.Activity != nil && r.Activity.Summary != "" {
			line += " (" + cli.OneLine(r.Activity.Summary) + ")"
		}
		fmt.Fprintf(w, "needs\tan answer to %s, %s\n", r.ID, line)
		fmt.Fprintf(w, "\tfermata show %s\n", r.ID)
	}
	switch {
	case view.Status == "parked":
		fmt.Fprintf(w, "needs\tan operator: it cannot continue by itself. Remove the cause, then retry it\n\tfermata retry %s\n", shellWord(view.StateKey))
	case view.Status == "failed" && view.Problem != nil && view.Problem.Retryable:
		fmt.Fprintf(w, "next\tremove the cause, then retry it from its last step\n\tfermata retry %s\n", shellWord(view.StateKey))
	}
}

// printProblem prints why a run is parked or tried again, and the complete error if the caller may
// see it. The outcome of a failed run has the reason.
func printProblem(w io.Writer, view client.RunView) {
	p := view.Problem
	if p == nil {
		return
	}
	if _, failed := view.Outcome.(fermata.Failed); !failed {
		fmt.Fprintf(w, "reason\t%s: %s\n", p.Code, cli.OneLine(p.Message))
	}
	if p.Detail != "" && p.Detail != p.Message {
		fmt.Fprintf(w, "detail\t%s\n", cli.OneLine(p.Detail))
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
	return "'" + strings.ReplaceAll(cli.OneLine(text), "'", `'\''`) + "'"
}

type RetryCommand struct {
	cli.Remote
	Key string `arg:"" help:"The state key of the run."`
}

// Run retries a run.
func (c *RetryCommand) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
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
	return p.Print(runReport{view.Run, view.Outcome, view.Requests, view.Problem}, func(w io.Writer) {
		fmt.Fprintf(w, "retried\t%s\nstatus\t%s\n\tfermata watch %s\n", cli.OneLine(view.StateKey), view.Status, shellWord(view.StateKey))
	})
}
