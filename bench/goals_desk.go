package main

import (
	"fmt"
	"strings"
)

// The goals of the desk: which part of the decisions of an executor without rules is left.
const (
	minWithRules  = 2.0 / 3
	minWithQuorum = 1.0 / 3 // two people say a word for each
)

// judge says whether rules and people cost too much. A quick run is no measure of anything.
func (d deskReport) judge(quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, row := range d.Rows {
		if row.Operation == opDecide {
			verdicts = append(verdicts, row.fastEnough(sideRules, sideNoRules, minWithRules, "2/3 of the executor without rules, with rules and a route", percent),
				row.fastEnough(sideQuorum, sideNoRules, minWithQuorum, "1/3 of it when two people have to agree", percent))
		}
	}
	return verdicts
}

func (d deskReport) markdown(out *strings.Builder) {
	if len(d.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\nDecisions with rules, routes and people, on %s; %d rounds. A cell is runs per second; p50 / p99 in ms; CPU per run of the process (+ of the database server).\n\n",
		strings.Join(d.Databases, " and "), d.Rounds)
	out.WriteString("| callers | act | no rules | rules and a route | and two people | rules of none | two people of none |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, row := range d.Rows {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", row.Name, row.Operation, row.cell(sideNoRules), row.cell(sideRules), row.cell(sideQuorum),
			percent(row.ratio(sideRules, sideNoRules)), percent(row.ratio(sideQuorum, sideNoRules)))
	}
}
