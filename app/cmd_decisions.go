package app

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/app/tui"
	"github.com/fermata-go/fermata/client"
)

type decisionsCommand struct {
	remote
	Days  int  `help:"The period of the report, in days." default:"30"`
	CSV   bool `name:"csv" help:"Print CSV, with all columns and complete values."`
	Limit int  `help:"Maximum number of requests to read." default:"10000"`
}

// decisionRow is a decision of the report.
type decisionRow struct {
	At        time.Time       `json:"at"`
	Verdict   string          `json:"verdict"`
	By        []string        `json:"by"`
	Via       string          `json:"via,omitempty"`
	Action    string          `json:"action"`
	Args      json.RawMessage `json:"args,omitempty"`
	Edited    bool            `json:"edited,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Requester string          `json:"requester,omitempty"`
	Rules     []string        `json:"rules,omitempty"`
	StateKey  string          `json:"stateKey"`
	GraphID   string          `json:"graphId"`
	Request   string          `json:"request"`
	Digest    string          `json:"digest,omitempty"`
}

// Run reports who decided what.
func (c *decisionsCommand) Run(ctx context.Context, p *program) error {
	switch {
	case c.Days < 1:
		return usage("--days must be at least 1, not %d", c.Days)
	case c.Limit < 1:
		return errLimit
	case c.CSV && p.json:
		return usage("--csv and --json exclude each other")
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	page, err := tui.FetchUpTo(ctx, to.Requests, client.Query{State: "all", Limit: c.Limit})
	if err != nil {
		return err
	}
	since := time.Now().AddDate(0, 0, -c.Days)
	rows := []decisionRow{}
	for _, r := range page.Items {
		if r.Decision != nil && r.Decision.At.After(since) {
			rows = append(rows, decisionRowOf(r))
		}
	}
	slices.SortStableFunc(rows, func(a, b decisionRow) int { return a.At.Compare(b.At) })
	if c.CSV {
		if page.Next != "" {
			fmt.Fprintln(p.err, moreHint)
		}
		return writeDecisions(p.out, rows)
	}
	return p.printPage(rows, page.Next, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintf(w, "no decisions in the last %d days\n", c.Days)
			return
		}
		fmt.Fprintln(w, "DECIDED\tVERDICT\tBY\tWHAT\tARGUMENTS\tREASON\tRUN")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", formatClock(r.At), r.verdict(), truncate(strings.Join(r.By, ", ")), truncate(r.Action),
				truncate(unescapeHTML(r.Args)), truncate(r.Reason), truncate(r.StateKey))
		}
		printMore(w, page.Next)
	})
}

func (r decisionRow) verdict() string {
	if r.Edited {
		return r.Verdict + " with edits"
	}
	return r.Verdict
}

// decisionRowOf returns the row of a decided request. The people are those whose votes decided it.
func decisionRowOf(r api.Request) decisionRow {
	d := r.Decision
	row := decisionRow{
		At: d.At, Verdict: d.Verdict, Via: d.Via, Action: r.Kind, Args: r.Data, StateKey: r.StateKey, GraphID: r.GraphID, Request: r.ID, Digest: d.ApprovedDigest,
	}
	var asked struct {
		Action string          `json:"action"`
		Args   json.RawMessage `json:"args"`
	}
	if json.Unmarshal(r.Data, &asked) == nil && asked.Action != "" && asked.Args != nil {
		row.Action, row.Args = asked.Action, asked.Args
	}
	var answer struct{ Reason, Feedback string }
	if json.Unmarshal(d.Answer, &answer) == nil {
		row.Reason = cmp.Or(answer.Reason, answer.Feedback)
	}
	if a := r.Activity; a != nil {
		row.Requester, row.Rules = a.Requester, a.Rules
		if a.Edit != nil {
			row.Args, row.Edited = a.Edit.Args, true
		}
		for _, v := range a.Votes {
			if v.Verb == d.Verdict && !slices.Contains(row.By, v.By) {
				row.By = append(row.By, v.By)
			}
		}
	}
	if len(row.By) == 0 {
		row.By = []string{cmp.Or(d.By, d.Source)}
	}
	return row
}

// writeDecisions writes the report as CSV with a header.
func writeDecisions(out io.Writer, rows []decisionRow) error {
	w := csv.NewWriter(out)
	lines := [][]string{{"decided_at", "verdict", "by", "via", "action", "arguments", "edited", "reason", "requester", "rules", "state_key", "graph", "request", "approved_digest"}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.At.UTC().Format(time.RFC3339), r.Verdict, strings.Join(r.By, " "), r.Via, r.Action, string(r.Args), fmt.Sprint(r.Edited), r.Reason, r.Requester,
			strings.Join(r.Rules, " "), r.StateKey, r.GraphID, r.Request, r.Digest,
		})
	}
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
