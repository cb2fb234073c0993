package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/app/tui"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/drawing"
	"github.com/fermata-go/fermata/internal/sanitize"
)

// remote is a server that a command speaks to.
type remote struct {
	URL   string `name:"url" help:"The server." default:"http://127.0.0.1:8080" env:"FERMATA_URL"`
	Token string `help:"Your API key." env:"FERMATA_TOKEN" placeholder:"KEY"`
}

func (r remote) client() (*client.Client, error) {
	if r.Token == "" {
		return nil, errNoToken
	}
	c, err := client.New(r.URL, r.Token)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// print writes a value as JSON, or as text.
func (p *program) print(value any, text func(w io.Writer)) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(value)
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// printOutcome says how far a run has come. That a run has failed is an error, so that scripts notice.
func (p *program) printOutcome(outcome fermata.Outcome, err error) error {
	if err != nil {
		return err
	}
	err = p.print(outcome, func(w io.Writer) {
		switch o := outcome.(type) {
		case fermata.Completed:
			fmt.Fprintf(w, "completed\t%s\n", escapeControls(o.Content))
			if o.Content == "" {
				fmt.Fprintf(w, "\t%s\n", escapeControls(string(o.Output)))
			}
		case fermata.Failed:
			fmt.Fprintf(w, "failed\t%s: %s\n", o.Code, escapeControls(o.Message))
		case fermata.NeedsInput:
			fmt.Fprintf(w, "waits\t%s\n", oneLine(o.StateKey))
			for _, i := range o.Interrupts {
				fmt.Fprintf(w, "%s\t%s\t%s\n", i.ID, oneLine(i.Kind), oneLine(unescapeHTML(i.Data)))
			}
			printRequestHints(w)
		}
	})
	if failed, ok := outcome.(fermata.Failed); ok && err == nil {
		err = fmt.Errorf("%w: %s", errRunFailed, failed.Code)
	}
	return err
}

// printRequestHints says what can be done about requests.
func printRequestHints(w io.Writer) {
	fmt.Fprintln(w, "\nfermata show REQUEST\tto see what it is about")
	fmt.Fprintln(w, "fermata approve|reject|answer REQUEST\tto decide")
}

// jsonEscape is an escape in JSON; what is of interest is which of & < > it stands for.
var jsonEscape = regexp.MustCompile(`\\(?:u00(26|3[cC]|3[eE])|.)`)

// unescapeHTML is JSON in which & < > are what they are: many programs escape them for browsers.
func unescapeHTML(data json.RawMessage) string {
	return jsonEscape.ReplaceAllStringFunc(string(data), func(escape string) string {
		switch strings.ToLower(escape) {
		case `\u0026`:
			return "&"
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		}
		return escape
	})
}

// escapeControls makes a text that somebody else wrote safe for a terminal: what a terminal would obey, or not show, is shown as what it is.
func escapeControls(text string) string { return sanitize.Text(text) }

type runCommand struct {
	remote
	Graph string  `arg:"" help:"What to run, as inproc:content-review."`
	Input jsonArg `arg:"" optional:"" help:"What it begins with, as JSON; @FILE and - read it from a file and from standard input." default:"{}"`
	Key   string  `help:"The state key; a new one by default." placeholder:"KEY"`
}

// Run starts a run.
func (c *runCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	input, err := c.Input.read("the input")
	if err != nil {
		return err
	}
	outcome, err := to.Chat(ctx, api.Chat{GraphID: c.Graph, StateKey: c.Key, Input: input})
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Code == "unknown_graph" {
		err = addGraphNames(ctx, to, problem)
	}
	return p.printOutcome(outcome, err)
}

// addGraphNames adds what could be run to the word that there is no such graph.
func addGraphNames(ctx context.Context, to *client.Client, problem *api.Problem) error {
	page, err := to.Graphs(ctx)
	if err != nil || len(page.Items) == 0 {
		return problem
	}
	names := make([]string, 0, len(page.Items))
	for _, g := range page.Items {
		names = append(names, g.ID)
	}
	problem.Detail += "; there are " + escapeControls(strings.Join(names, ", "))
	return problem
}

type runsCommand struct {
	remote
	Status string `help:"Only those: ready, running, waiting, parked, completed, failed, cancelled, superseded." placeholder:"STATUS"`
	Limit  int    `help:"How many at most." default:"50"`
}

// Run lists runs.
func (c *runsCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return errLimit
	}
	page, err := tui.FetchUpTo(ctx, to.Runs, client.Query{Status: c.Status, Limit: c.Limit})
	if err != nil {
		return err
	}
	return p.printPage(page.Items, page.Next, func(w io.Writer) {
		if len(page.Items) == 0 {
			fmt.Fprintln(w, "there are no such runs")
			return
		}
		fmt.Fprintln(w, "STATE KEY\tGRAPH\tSTATUS\tUPDATED")
		for _, r := range page.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", oneLine(r.StateKey), oneLine(r.GraphID), r.Status, ago(r.UpdatedAt))
		}
		printMore(w, page.Next)
	})
}

var errLimit = usage("--limit: a list has one line at least")

const moreHint = "There are more; --limit shows them."

// printPage prints the beginning of a list. The JSON of a list has no place for the word that it is not all, so that is said beside it.
func (p *program) printPage(items any, next string, text func(w io.Writer)) error {
	err := p.print(items, text)
	if err == nil && p.json && next != "" {
		fmt.Fprintln(p.err, moreHint)
	}
	return err
}

// printMore says that a list is not all, if it goes on somewhere.
func printMore(w io.Writer, next string) {
	if next != "" {
		fmt.Fprintln(w, "\n"+moreHint)
	}
}

func ago(t time.Time) string { return time.Since(t).Round(time.Second).String() + " ago" }

type showCommand struct {
	remote
	ID string `arg:"" help:"The id of the request."`
}

// Run shows a request with everything that somebody needs to decide.
func (c *showCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	r, err := to.Request(ctx, c.ID)
	if err != nil {
		return err
	}
	p.markViewed(ctx, to, r)
	return p.print(r, func(w io.Writer) { printRequest(w, r) })
}

func printRequest(w io.Writer, r api.Request) {
	fmt.Fprintf(w, "request\t%s\nrun\t%s (%s)\nasked at\t%s\nkind\t%s\nstate\t%s\n", r.ID, oneLine(r.StateKey), oneLine(r.GraphID), oneLine(r.Address), oneLine(r.Kind), r.State)
	fmt.Fprintf(w, "since\t%s (%s)\n", formatClock(r.CreatedAt), ago(r.CreatedAt))
	if r.Deadline != nil {
		fmt.Fprintf(w, "until\t%s\n", formatClock(*r.Deadline))
	}
	if len(r.Next) > 0 {
		fmt.Fprintf(w, "then\t%s\n", drawing.FormatNext(r.Next))
	}
	if d := r.Decision; d != nil {
		fmt.Fprintf(w, "decided\t%s by %s at %s\n", d.Verdict, oneLine(d.By), formatClock(d.At))
	}
	if r.Shown != "" && r.State == "pending" {
		fmt.Fprintf(w, "shown\t%s\n", r.Shown)
	}
	fmt.Fprintf(w, "\n%s\n", escapeControls(indented(r.Data)))
	printActivity(w, r.Activity)
	if d := r.Decision; d != nil {
		fmt.Fprintf(w, "\n%s\n", escapeControls(indented(d.Answer)))
	} else if r.AnswerSchema != nil {
		fmt.Fprintf(w, "\nan answer is\n%s\n", escapeControls(indented(r.AnswerSchema)))
	} else if tui.IsHold(r) {
		fmt.Fprintln(w, "\nan answer is null, to go on as it is, or all of the state, edited; approve says null")
	}
	if r.State == "pending" {
		fmt.Fprintf(w, "\nfermata approve|reject|answer %s\tto decide\n", r.ID)
	}
}

func indented(data json.RawMessage) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if data == nil || e.Encode(data) != nil {
		return unescapeHTML(data)
	}
	return unescapeHTML(json.RawMessage(strings.TrimSpace(text.String())))
}

type watchCommand struct {
	remote
	Key     string        `arg:"" help:"The state key of the run."`
	Timeout time.Duration `help:"Give up after so long; for ever by default." placeholder:"DURATION"`
}

// Run prints what happens to a run until it is over.
func (c *watchCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	if c.Timeout < 0 {
		return usage("--timeout: %s is over before it begins", c.Timeout)
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer cancel()
	}
	for event, err := range to.Events(ctx, c.Key, "") {
		if errors.Is(context.Cause(ctx), errTimeout) {
			return fmt.Errorf("%w: %s", errTimeout, c.Timeout)
		}
		if err != nil {
			return err
		}
		if err := p.printEvent(event); err != nil {
			return err
		}
	}
	return nil
}

// printEvent says what has happened to a run. Steps are told when they happen, and have no time of their own; tokens are for programs: people get what was said
// with the outcome.
func (p *program) printEvent(event client.Event) error {
	line := func(at time.Time, about string) func(io.Writer) {
		return func(w io.Writer) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", at.Local().Format(time.TimeOnly), event.Type, oneLine(about))
		}
	}
	switch {
	case event.Outcome != nil:
		return p.printOutcome(event.Outcome, nil)
	case event.Step != nil:
		row := struct {
			Type string `json:"type"`
			*api.Step
		}{event.Type, event.Step}
		return p.print(row, line(time.Now(), event.Step.State+" "+event.Step.Address))
	case event.Token != nil:
		row := struct {
			Type string `json:"type"`
			*api.Token
		}{event.Type, event.Token}
		return p.print(row, func(io.Writer) {})
	}
	return p.print(event.Event, line(event.CreatedAt, event.Request))
}

type cancelCommand struct {
	remote
	Key string `arg:"" help:"The state key of the run."`
}

// Run ends a run.
func (c *cancelCommand) Run(ctx context.Context, p *program) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	if err := to.Cancel(ctx, c.Key); err != nil {
		return err
	}
	row := struct {
		StateKey string `json:"stateKey"`
		Status   string `json:"status"`
	}{c.Key, "cancelled"}
	return p.print(row, func(w io.Writer) { fmt.Fprintf(w, "%s\t%s\n", row.Status, oneLine(row.StateKey)) })
}
