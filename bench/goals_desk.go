package main

import (
	"fmt"
	"strings"
)

// The goals of the desk: the share of the decision rate of an executor without rules.
const (
	minWithRules  = 2.0 / 3
	minWithQuorum = 1.0 / 3 // two votes for each decision
)

// judge judges the cost of rules and approvers. A quick run is not judged.
func (d deskReport) judge(quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, row := range d.Rows {
		if row.Operation == opDecide {
			verdicts = append(verdicts, row.fastEnough(sideRules, sideNoRules, minWithRules, "2/3 of the executor without rules, with rules and a route", percent),
				row.fastEnough(sideQuorum, sideNoRules, minWithQuorum, "1/3 of it with two approvers", percent))
		}
	}
	return verdicts
}

func (d deskReport) markdown(out *strings.Builder) {
	if len(d.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\nDecisions with rules, routes and approvers, on %s; %d rounds. A cell is runs per second; p50 / p99 in ms; CPU per run of the process (+ of the database server).\n\n",
		strings.Join(d.Databases, " and "), d.Rounds)
	out.WriteString("| callers | operation | no rules | rules and a route | and two approvers | rules / none | two approvers / none |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, row := range d.Rows {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", row.Name, row.Operation, row.cell(sideNoRules), row.cell(sideRules), row.cell(sideQuorum),
			percent(row.ratio(sideRules, sideNoRules)), percent(row.ratio(sideQuorum, sideNoRules)))
	}
}
