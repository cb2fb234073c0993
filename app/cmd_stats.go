package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/analytics"
)

type statsCommand struct {
	remote
	Days int    `help:"How far to look back." default:"30"`
	Zone string `help:"Where people work, as Europe/Zurich: it says what is out of hours." default:"UTC"`
}

// Run shows what came of the requests of a while.
func (c *statsCommand) Run(ctx context.Context, p *program) error {
	if c.Days < 1 {
		return usage("--days: %d is less than one", c.Days)
	}
	if _, err := time.LoadLocation(c.Zone); err != nil {
		return usage("--zone: %q is no time zone", c.Zone)
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	report, err := to.Analytics(ctx, c.Days, c.Zone)
	if err != nil {
		return err
	}
	return p.print(report, func(w io.Writer) { printReport(w, report) })
}

func printReport(w io.Writer, r analytics.Report) {
	fmt.Fprintf(w, "%d requests from %s to %s\n", r.All.Requests, r.Since.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	if r.RetainedSince != nil {
		fmt.Fprintf(w, "not counted is what was over before %s: it is not kept so long (runs.retention)\n", r.RetainedSince.Format(time.DateTime))
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
		fmt.Fprintf(w, "\npeople who are not shown: %d (auditors and admins see them)\n", r.Hidden)
	}
	for i, proposal := range r.Proposals {
		if i == 0 {
			fmt.Fprintln(w, "\nPROPOSALS")
		}
		fmt.Fprintln(w, oneLine(proposal.Text))
	}
}

func printRows(w io.Writer, title string, rows []analytics.Row) {
	printTable(w, title, rows, func(r analytics.Row) string { return r.Name }, rowColumns)
}

func printApprovers(w io.Writer, title string, voices []analytics.VoteStats) {
	printTable(w, title, voices, func(v analytics.VoteStats) string { return v.Name }, approverColumns)
}

// column is a column of a table; one that says nothing in any row is left out.
type column[T any] struct {
	title string
	value func(T) string
}

// rowColumns are what is said of requests.
var rowColumns = []column[analytics.Row]{
	{"REQUESTS", func(r analytics.Row) string { return fmt.Sprint(r.Requests) }},
	{"OPEN", func(r analytics.Row) string { return countOrDash(r.Open) }},
	{"APPROVED", func(r analytics.Row) string { return countOrDash(r.Approved) }},
	{"EDITED", func(r analytics.Row) string { return countOrDash(r.Edited) }},
	{"REJECTED", func(r analytics.Row) string { return countOrDash(r.Rejected) }},
	{"ANSWERED", func(r analytics.Row) string { return countOrDash(r.Answered) }},
	{"EXPIRED", func(r analytics.Row) string { return countOrDash(r.Expired) }},
	{"GIVEN UP", func(r analytics.Row) string { return countOrDash(r.Abandoned) }},
	{"WITHDRAWN", func(r analytics.Row) string { return countOrDash(r.Withdrawn) }},
	{"ASKED BACK", func(r analytics.Row) string { return countOrDash(r.Clarified) }},
	{"PAGED", func(r analytics.Row) string { return countOrDash(r.Paged) }},
	{"HALF WITHIN", func(r analytics.Row) string { return formatSeconds(r.ToDecide.P50, r.ToDecide.N) }},
	{"9 OF 10 WITHIN", func(r analytics.Row) string { return formatSeconds(r.ToDecide.P90, r.ToDecide.N) }},
	{"OLDEST OPEN", func(r analytics.Row) string { return formatSeconds(r.OldestOpen, r.Open) }},
}

// approverColumns are what is said of words. Whoever looks like a rubber stamp is marked; that proves nothing.
var approverColumns = []column[analytics.VoteStats]{
	{"WORDS", func(v analytics.VoteStats) string { return fmt.Sprint(v.Votes) }},
	{"SHARE", func(v analytics.VoteStats) string { return percent(v.Share) }},
	{"YES", func(v analytics.VoteStats) string { return percent(v.Approvals) }},
	{"HALF WITHIN", func(v analytics.VoteStats) string { return formatSeconds(v.ToDecide.P50, v.ToDecide.N) }},
	{"HALF READ IN", func(v analytics.VoteStats) string { return formatSeconds(v.Reading.P50, v.Reading.N) }},
	{"NOT LOOKED", func(v analytics.VoteStats) string { return countOrDash(v.Unviewed) }},
	{"TOO FAST", func(v analytics.VoteStats) string { return percent(v.TooFast) }},
	{"IN A MINUTE", func(v analytics.VoteStats) string { return countOrDash(v.MaxPerMinute) }},
	{"OUT OF HOURS", func(v analytics.VoteStats) string { return percent(v.OutOfHours) }},
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
		fmt.Fprint(w, oneLine(name(r)))
		for _, c := range columns {
			fmt.Fprintf(w, "\t%s", c.value(r))
		}
		fmt.Fprintln(w)
	}
}

// countOrDash is how many; a dash for none, so that the others are seen.
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

// formatSeconds is a number of seconds for people; a dash if it is the time of none.
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

// formatDuration leaves out the units that are zero: 12h, and not 12h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}
