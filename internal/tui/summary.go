package tui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
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

// Summary returns a one-line summary of a request, as on every other surface. It is not sanitized
// for a terminal.
func Summary(r api.Request) string {
	text := r.Kind
	if r.Presentation != nil {
		text = r.Presentation.Title
	}
	if r.Activity != nil && r.Activity.Edit != nil {
		text += " (edited)"
	}
	return text
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
