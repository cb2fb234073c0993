package cases

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// parse parses a case file as a whole or not at all.
func parse(file string, src []byte) ([]testCase, error) {
	var problems []policy.Problem
	name := ""
	r := yamldoc.Reader{Report: func(line int, field, text string) {
		problems = append(problems, policy.Problem{File: file, Line: line, Rule: name, Text: yamldoc.Message(name, field, text)})
	}}
	root := r.Document(src)
	top := root.Map("input", "cases")
	base := policy.Input{UnknownFields: policy.OptionalFields}
	parseInput(top["input"], &base)
	var all []testCase
	for _, node := range top["cases"].List() {
		fields := node.Map("name", "input", "counters", "want", "rules", "needs", "deadline", "min_auth", "verbs", "editable", "edit_reasons", "reject_reasons", "confirm", "sensitive", "visible_to", "on_timeout", "on_escalate", "dry_run")
		name = fields["name"].Text()
		c := testCase{name: name, line: node.Line(), input: base, counters: parseCounters(fields["counters"])}
		parseInput(fields["input"], &c.input)
		c.want = fields["want"].Choice(string(policy.Allow), string(policy.Ask), string(policy.Deny), wantError)
		if fields["want"].Missing() {
			node.Reportf("want is missing")
		}
		if !fields["rules"].Missing() {
			c.rules = fields["rules"].Texts()
		}
		if !fields["needs"].Missing() {
			c.needs = fields["needs"].Texts()
		}
		c.lists = make(map[string][]string)
		for _, key := range []string{"verbs", "editable", "edit_reasons", "reject_reasons", "confirm", "sensitive"} {
			if !fields[key].Missing() {
				c.lists[key] = fields[key].Texts()
			}
		}
		if !fields["visible_to"].Missing() {
			c.visibleTo = fields["visible_to"].Texts()
		}
		c.onTimeout = requirement.OnTimeout(fields["on_timeout"].Text())
		c.onEscalate = requirement.OnEscalate(fields["on_escalate"].Text())
		c.deadline = policy.Duration(fields["deadline"].Duration())
		c.minAuth = requirement.Auth(fields["min_auth"].Text())
		c.dryRunVerdict = policy.Verdict(fields["dry_run"].Text())
		all = append(all, c)
		name = ""
	}
	if len(all) == 0 && len(problems) == 0 {
		r.Report(1, "cases", "there are no cases")
	}
	if len(problems) > 0 {
		return nil, &policy.LoadError{Problems: problems}
	}
	return all, nil
}

// parseInput sets the fields of a node in the input and keeps the others. Effects, cost, risk and
// revision are unknown if no node sets them, as on a server.
func parseInput(node yamldoc.Node, in *policy.Input) {
	texts := map[string]*string{
		"account": &in.Account, "environment": &in.Environment, "graph": &in.Graph, "node": &in.Node, "run": &in.Run, "tool": &in.Tool,
		"kind": &in.Kind, "gate": &in.Gate,
		"requester": &in.Requester, "agent": &in.Agent, "zone": &in.Zone,
	}
	known := []string{"args", "args_json", "data", "facts", "stated", "effects", "cost", "risk", "revision", "at"}
	for name := range texts {
		known = append(known, name)
	}
	fields := node.Map(known...)
	for name, text := range texts {
		if !fields[name].Missing() {
			*text = fields[name].Text()
		}
	}
	in.UnknownFields = slices.DeleteFunc(slices.Clone(in.UnknownFields), func(field string) bool { return !fields[field].Missing() })
	if !fields["effects"].Missing() {
		in.Effects = fields["effects"].Texts()
	}
	if !fields["cost"].Missing() {
		in.Cost = fields["cost"].Int(0)
	}
	if !fields["risk"].Missing() {
		in.Risk = int(fields["risk"].Int(0))
	}
	if !fields["revision"].Missing() {
		in.Revision = int(fields["revision"].Int(0))
	}
	if at := fields["at"]; !at.Missing() {
		t, err := time.Parse(time.RFC3339, at.Text())
		if err != nil {
			at.Reportf("%q is not a time such as 2026-11-16T10:00:00Z", at.Text())
		}
		in.At = t
	}
	parseArgs(fields["args"], fields["args_json"], in)
	if data := fields["data"]; !data.Missing() {
		in.Data = asJSON(data)
	}
	if facts := fields["facts"]; !facts.Missing() {
		in.Facts = asJSON(facts)
	}
	if stated := fields["stated"]; !stated.Missing() {
		values := stated.Map("requester", "environment")
		in.Stated = origin.Stated{Requester: values["requester"].Text(), Environment: values["environment"].Text()}
	}
}

// parseArgs reads the arguments as YAML, or as JSON for what YAML cannot express, such as 5.0 or a
// duplicate key.
func parseArgs(args, text yamldoc.Node, in *policy.Input) {
	if !text.Missing() {
		in.Args = json.RawMessage(text.Text())
		return
	}
	if args.Missing() {
		return
	}
	in.Args = asJSON(args)
}

// asJSON returns a YAML value as JSON.
func asJSON(node yamldoc.Node) (text json.RawMessage) {
	value, err := node.Any()
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		node.Reportf("cannot be encoded as JSON: %v", err)
	}
	return text
}

// parseCounters reads one value for all counters, or a mapping.
func parseCounters(node yamldoc.Node) map[string]int64 {
	if node.Missing() {
		return nil
	}
	if !node.IsMapping() {
		return map[string]int64{"*": node.Int(0)}
	}
	numbers := make(map[string]int64)
	names, values := node.Keys()
	for i, name := range names {
		numbers[name] = values[i].Int(0)
	}
	return numbers
}
