package tui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// The states of a request in the API.
const statePending = "pending"

// approvalOf returns the approval question of a request; false if it is another kind.
func approvalOf(r api.Request) (fermata.ApprovalRequest, bool) {
	var approval fermata.ApprovalRequest
	if r.Kind != fermata.Approval.Name() || json.Unmarshal(r.Data, &approval) != nil || approval.Action == "" {
		return approval, false
	}
	return approval, true
}

// argsOf returns the arguments that a plain approval approves: the requested ones, or those that a
// previous approver edited.
func argsOf(r api.Request) json.RawMessage {
	if r.Activity != nil && r.Activity.Edit != nil {
		return r.Activity.Edit.Args
	}
	approval, _ := approvalOf(r)
	return approval.Args
}

// digestMatches reports whether the digest in an approval question matches its action and
// arguments.
func digestMatches(approval fermata.ApprovalRequest) bool {
	if approval.Args == nil {
		return false
	}
	digest, err := approval.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: approval.Args})
	return err == nil && digest == approval.Digest
}

// summaryFields are the members of a question that can serve as a summary, the best first.
var summaryFields = []string{"summary", "title", "question", "message", "reason", "description", "text"}

// maxSummary is more than fits on a line.
const maxSummary = 500

// Summary returns a one-line summary of a request. That of an action is worded from its arguments,
// as in the other channels, not by its agent. It is not sanitized for a terminal.
func Summary(r api.Request) string {
	text := []rune(summaryField(r))
	return string(text[:min(len(text), maxSummary)])
}

func summaryField(r api.Request) string {
	if approval, ok := approvalOf(r); ok {
		text := headline(actiontext.Action{Name: approval.Action, Args: argsOf(r), Schema: approval.ArgsSchema, Masked: r.Masked})
		if r.Activity != nil && r.Activity.Edit != nil {
			text += " (edited)"
		}
		return text
	}
	if doubt, ok := InDoubtOf(r); ok {
		return "Did " + doubt.Action + " happen? " + string(doubt.Args)
	}
	if at, ok := heldAt(r); ok {
		return "held " + at.ID + " " + at.SubID + ": " + string(r.Data)
	}
	var text string
	if json.Unmarshal(r.Data, &text) == nil && text != "" {
		return text
	}
	members, _ := schemaform.ParseObject(r.Data)
	for _, name := range summaryFields {
		if json.Unmarshal(members.Get(name), &text) == nil && strings.TrimSpace(text) != "" {
			return text + extraFields(members, name)
		}
	}
	return string(r.Data)
}

// headline words an action as a line of its own.
func headline(action actiontext.Action) string {
	var b strings.Builder
	for _, part := range actiontext.Capitalized(actiontext.Of(action, actiontext.English)) {
		b.WriteString(part.Text)
	}
	return b.String()
}

// CompareRisk orders requests by risk, the highest first.
func CompareRisk(a, b api.Request) int {
	risk := func(r api.Request) int {
		if r.Activity == nil {
			return 0
		}
		return r.Activity.Risk
	}
	return cmp.Compare(risk(b), risk(a))
}

// RiskText returns the name of the risk of an action; "" if its policy has none.
func RiskText(r api.Request) string {
	if r.Activity == nil {
		return ""
	}
	return [...]string{"", "low", "medium", "high"}[min(max(r.Activity.Risk, 0), 3)]
}

// extraFields returns the short members other than the summary: they distinguish requests with the
// same summary.
func extraFields(members schemaform.Members, summaryName string) string {
	var texts []string
	for _, m := range members {
		if m.Name == summaryName || len(m.Value) > 40 || strings.ContainsAny(string(m.Value), "{[") {
			continue
		}
		texts = append(texts, m.Name+": "+string(m.Value))
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// matches reports whether a list row contains the words of the filter.
func matches(r api.Request, filter string) bool {
	if filter == "" {
		return true
	}
	all := strings.ToLower(strings.Join([]string{r.ID, r.Kind, r.GraphID, r.StateKey, r.Address, string(r.Data)}, "\n"))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(filter)), func(word string) bool { return !strings.Contains(all, word) })
}

// isSameQuestion reports whether a decision on a would also be valid for b: the same question,
// still open.
func isSameQuestion(a, b api.Request) bool {
	return a.State == b.State && a.Shown == b.Shown && a.Kind == b.Kind && string(a.AnswerSchema) == string(b.AnswerSchema)
}

// resolutionText describes how a request was closed.
func resolutionText(r api.Request, now time.Time) string {
	switch d := r.Decision; {
	case d != nil && d.Verdict == "expire":
		return "Not answered in time: it expired " + clockOf(d.At, now) + "."
	case d != nil && d.By != "":
		return "Already decided: " + d.Verdict + " by " + d.By + " " + clockOf(d.At, now) + "."
	case d != nil:
		return "Already decided: " + d.Verdict + " (" + d.Source + ") " + clockOf(d.At, now) + "."
	case r.State != statePending:
		return "It is " + r.State + ": the run no longer waits for this."
	}
	return "The request has changed since you opened it."
}
