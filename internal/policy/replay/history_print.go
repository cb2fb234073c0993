package replay

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Print writes the report for people. It shows no arguments.
func (p HistoryReport) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rulings since %s: %d unchanged, %d stricter, %d looser\n", p.Rulings, formatTime(p.Since), p.Unchanged, p.Stricter, p.Looser)
	if p.Truncated {
		text := "more rulings than the limit"
		if p.Last != nil {
			text = "rulings after " + formatTime(*p.Last) + " were not compared: more than the limit"
		}
		fmt.Fprintf(&b, "TRUNCATED: %s\n", text)
	}
	if len(p.Verdicts) > 0 {
		b.WriteString("recorded verdict, new verdict, count\n")
	}
	for _, change := range p.Verdicts {
		fmt.Fprintf(&b, "  %-5s %-5s %d\n", change.Before, change.After, change.Count)
	}
	if len(p.Rules) > 0 {
		b.WriteString("decided by\n")
	}
	for _, rule := range p.Rules {
		fmt.Fprintf(&b, "  %s %d (%d stricter, %d looser)\n", rule.Rule, rule.Decided, rule.Stricter, rule.Looser)
	}
	for _, e := range p.Examples {
		fmt.Fprintf(&b, "%s %s %s: %s\n", formatTime(e.At), e.Tool, e.place(), e.What)
		printWeakenings(&b, e.Weakenings)
	}
	for _, line := range []struct {
		count int
		text  string
	}{
		{p.DryRunChanges, "would change with the dry-run rules"}, {p.RuleErrors, "had a rule that failed"},
		{p.InvalidInputs, "had an invalid input"},
	} {
		if line.count > 0 {
			fmt.Fprintf(&b, "%d %s\n", line.count, line.text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e Example) place() string {
	if e.Request != "" {
		return "in " + e.Run + ", request " + e.Request
	}
	return "in " + e.Run
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }
