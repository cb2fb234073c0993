package clientcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/cli"
)

type StatsCommand struct {
	cli.Remote
	Days int    `help:"The period of the report, in days." default:"30"`
	Zone string `help:"The IANA time zone for working hours, for example Europe/Zurich." default:"UTC"`
}

// Run prints a report.
func (c *StatsCommand) Run(ctx context.Context, p *cli.Program) error {
	if c.Days < 1 {
		return cli.Usagef("--days must be at least 1, not %d", c.Days)
	}
	if _, err := time.LoadLocation(c.Zone); err != nil {
		return cli.Usagef("--zone: unknown time zone %q", c.Zone)
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	report, err := to.Analytics(ctx, c.Days, c.Zone)
	if err != nil {
		return err
	}
	return p.Print(report, func(w io.Writer) { printReport(w, report) })
}

func printReport(w io.Writer, r analytics.Report) {
	fmt.Fprintf(w, "%d requests from %s to %s\n", r.All.Requests, r.Since.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	if r.RetainedSince != nil {
		fmt.Fprintf(w, "requests closed before %s are not included, because of runs.retention\n", r.RetainedSince.Format(time.DateTime))
	}
	if r.All.Requests == 0 {
		return
	}
	all := r.All
	all.Name = "all"
	printRows(w, "KIND", append(slices.Clone(r.ByKind), all))
	printRows(w, "RULE", r.ByRule)
	printRows(w, "ACTION", r.ByAction)
	printApprovers(w, "CHANNEL", r.Channels)
	printApprovers(w, "PERSON", r.People)
	if r.Hidden > 0 {
		fmt.Fprintf(w, "\npeople not listed: %d (visible to auditors and admins)\n", r.Hidden)
	}
	fmt.Fprintln(w, "\nTimes are from the question to the decision; reading is from the first view to the vote. A mark is an indication, not a proof.")
	for i, proposal := range r.Proposals {
		if i == 0 {
			fmt.Fprintln(w, "\nPROPOSALS")
		}
		fmt.Fprintln(w, cli.OneLine(proposal.Text))
	}
}

func printRows(w io.Writer, title string, rows []analytics.Row) {
	printTable(w, title, rows, func(r analytics.Row) string { return r.Name }, rowColumns)
}

func printApprovers(w io.Writer, title string, approvers []analytics.VoteStats) {
	printTable(w, title, approvers, func(v analytics.VoteStats) string { return v.Name }, approverColumns)
}

// column is a column of a table; a column without any value is omitted.
type column[T any] struct {
	title string
	value func(T) string
}

// rowColumns are the columns for requests.
var rowColumns = []column[analytics.Row]{
	{"REQUESTS", func(r analytics.Row) string { return fmt.Sprint(r.Requests) }},
	{"OPEN", func(r analytics.Row) string { return countOrDash(r.Open) }},
	{"APPROVED", func(r analytics.Row) string { return countOrDash(r.Approved) }},
	{"EDITED", func(r analytics.Row) string { return countOrDash(r.Edited) }},
	{"REJECTED", func(r analytics.Row) string { return countOrDash(r.Rejected) }},
	{"ANSWERED", func(r analytics.Row) string { return countOrDash(r.Answered) }},
	{"EXPIRED", func(r analytics.Row) string { return countOrDash(r.Expired) }},
	{"ABANDONED", func(r analytics.Row) string { return countOrDash(r.Abandoned) }},
	{"WITHDRAWN", func(r analytics.Row) string { return countOrDash(r.Withdrawn) }},
	{"CLARIFIED", func(r analytics.Row) string { return countOrDash(r.Clarified) }},
	{"PAGED", func(r analytics.Row) string { return countOrDash(r.Paged) }},
	{"MEDIAN TIME", func(r analytics.Row) string { return formatSeconds(r.ToDecide.P50, r.ToDecide.N) }},
	{"90% WITHIN", func(r analytics.Row) string { return formatSeconds(r.ToDecide.P90, r.ToDecide.N) }},
	{"OLDEST OPEN", func(r analytics.Row) string { return formatSeconds(r.OldestOpen, r.Open) }},
}

// approverColumns are the columns for votes. People who look like rubber stamps are marked, which
// is not a proof.
var approverColumns = []column[analytics.VoteStats]{
	{"VOTES", func(v analytics.VoteStats) string { return fmt.Sprint(v.Votes) }},
	{"OF ALL VOTES", func(v analytics.VoteStats) string { return percent(v.Share) }},
	{"APPROVED", func(v analytics.VoteStats) string { return percent(v.Approvals) }},
	{"MEDIAN TIME", func(v analytics.VoteStats) string { return formatSeconds(v.ToDecide.P50, v.ToDecide.N) }},
	{"MEDIAN READING", func(v analytics.VoteStats) string { return formatSeconds(v.Reading.P50, v.Reading.N) }},
	{"WITHOUT VIEW", func(v analytics.VoteStats) string { return countOrDash(v.Unviewed) }},
	{"TOO FAST TO READ", func(v analytics.VoteStats) string { return percent(v.TooFast) }},
	{"MOST PER MINUTE", func(v analytics.VoteStats) string { return countOrDash(v.MaxPerMinute) }},
	{"OUTSIDE HOURS", func(v analytics.VoteStats) string { return percent(v.OutOfHours) }},
	{"", func(v analytics.VoteStats) string { return map[bool]string{true: "SUSPECT"}[v.Suspect] }},
}

// printTable writes rows under a title, each with its name first.
func printTable[T any](w io.Writer, title string, rows []T, name func(T) string, columns []column[T]) {
	if len(rows) == 0 {
		return
	}
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool {
		return !slices.ContainsFunc(rows, func(r T) bool { return strings.Trim(c.value(r), "-") != "" })
	})
	fmt.Fprintf(w, "\n%s", title)
	for _, c := range columns {
		fmt.Fprintf(w, "\t%s", c.title)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprint(w, cli.OneLine(name(r)))
		for _, c := range columns {
			fmt.Fprintf(w, "\t%s", c.value(r))
		}
		fmt.Fprintln(w)
	}
}

// countOrDash formats a count; a dash for zero.
func countOrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func percent(percent float64) string {
	if percent == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", percent)
}

// formatSeconds formats a duration in seconds; a dash if there is no sample.
func formatSeconds(seconds float64, of int) string {
	if of == 0 {
		return "-"
	}
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d >= 10*unit {
			return formatDuration(d.Round(unit))
		}
	}
	return d.Round(100 * time.Millisecond).String()
}

// formatDuration omits zero units: 12h instead of 12h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}
