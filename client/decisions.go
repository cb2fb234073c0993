package client

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
)

// Decision is a decided request as a row of a report.
type Decision struct {
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
	Answer    json.RawMessage `json:"answer,omitempty"`
}

// VerdictText returns the verdict, with a remark if the arguments were edited.
func (d Decision) VerdictText() string {
	if d.Edited {
		return d.Verdict + " with edits"
	}
	return d.Verdict
}

// DecisionOf returns the row of a request that has a decision. The people are those whose votes
// decided it.
func DecisionOf(r api.Request) Decision {
	d := r.Decision
	row := Decision{
		At: d.At, Verdict: d.Verdict, Via: d.Via, Action: r.Kind, Args: r.Data, StateKey: r.StateKey, GraphID: r.GraphID, Request: r.ID, Digest: d.ApprovedDigest, Answer: d.Answer,
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

// DecisionTable returns a report as the cells of a table with a header, for CSV.
func DecisionTable(rows []Decision) [][]string {
	lines := [][]string{{"decided_at", "verdict", "by", "via", "action", "arguments", "edited", "reason", "requester", "rules", "state_key", "graph", "request", "approved_digest", "answer"}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.At.UTC().Format(time.RFC3339), r.Verdict, strings.Join(r.By, " "), r.Via, r.Action, string(r.Args), strconv.FormatBool(r.Edited), r.Reason, r.Requester,
			strings.Join(r.Rules, " "), r.StateKey, r.GraphID, r.Request, r.Digest, string(r.Answer),
		})
	}
	return lines
}
