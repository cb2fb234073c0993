package clientcmd

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/tui"
)

type DecisionsCommand struct {
	cli.Remote
	Days  int  `help:"The period of the report, in days." default:"30"`
	CSV   bool `name:"csv" help:"Print CSV, with all columns and complete values."`
	Limit int  `help:"Maximum number of requests to read." default:"10000"`
}

// Run reports who decided what.
func (c *DecisionsCommand) Run(ctx context.Context, p *cli.Program) error {
	switch {
	case c.Days < 1:
		return cli.Usagef("--days must be at least 1, not %d", c.Days)
	case c.Limit < 1:
		return cli.ErrLimit
	case c.CSV && p.JSON:
		return cli.Usagef("--csv and --json exclude each other")
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	page, err := tui.FetchUpTo(ctx, to.Requests, client.Query{State: "all", Limit: c.Limit})
	if err != nil {
		return err
	}
	since := time.Now().AddDate(0, 0, -c.Days)
	rows := []client.Decision{}
	for _, r := range page.Items {
		if r.Decision != nil && r.Decision.At.After(since) {
			rows = append(rows, client.DecisionOf(r))
		}
	}
	slices.SortStableFunc(rows, func(a, b client.Decision) int { return a.At.Compare(b.At) })
	if c.CSV {
		if page.Next != "" {
			fmt.Fprintln(p.Err, cli.MoreHint)
		}
		return writeDecisions(p.Out, rows)
	}
	return p.PrintPage(rows, page.Next, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintf(w, "no decisions in the last %d days\n", c.Days)
			return
		}
		fmt.Fprintln(w, "DECIDED\tVERDICT\tBY\tWHAT\tARGUMENTS\tREASON\tRUN")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.FormatClock(r.At), r.VerdictText(), cli.Truncate(strings.Join(r.By, ", ")), cli.Truncate(r.Action),
				cli.Truncate(cli.UnescapeHTML(r.Args)), cli.Truncate(r.Reason), cli.Truncate(r.StateKey))
		}
		cli.PrintMore(w, page.Next)
	})
}

// writeDecisions writes the report as CSV with a header.
func writeDecisions(out io.Writer, rows []client.Decision) error {
	w := csv.NewWriter(out)
	lines := client.DecisionTable(rows)
	for _, line := range lines {
		for i, cell := range line {
			line[i] = csvCell(cell)
		}
	}
	return w.WriteAll(lines)
}

// csvCell keeps a spreadsheet from reading a text of another person as a formula.
func csvCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
