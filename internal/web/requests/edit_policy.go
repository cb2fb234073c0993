package requests

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/page"
)

// editPolicy is what the policy says about edited arguments before they are sent. The server
// decides when they are sent.
type editPolicy struct {
	Denied bool
	Reason string
	// More are the approvals that are needed in addition to those of the request.
	More []api.Requirement
}

// policyOfEdit returns nil if the policy cannot be asked.
func policyOfEdit(v *page.Visit, m *Model, args json.RawMessage) *editPolicy {
	_, graph, _ := strings.Cut(m.GraphID, ":")
	action := api.HypotheticalAction{Graph: graph, Tool: m.Approval.Action, Args: args}
	var have []api.Requirement
	if m.Activity != nil {
		action.Requester, have = m.Activity.Requester, m.Activity.Requirements
	}
	text, err := v.API.ExplainPolicy(v.Context(), action)
	var ruled policy.Decision
	if err != nil || json.Unmarshal(text, &ruled) != nil {
		return nil
	}
	says := &editPolicy{Denied: ruled.Verdict == policy.Deny, Reason: ruled.Reason}
	if ruled.Requirement == nil {
		return says
	}
	for _, group := range ruled.Requirement.Groups {
		known := func(q api.Requirement) bool { return slices.Equal(q.Groups, group.From) && q.Count >= group.Count }
		if !slices.ContainsFunc(have, known) {
			says.More = append(says.More, api.Requirement{Groups: group.From, Count: group.Count})
		}
	}
	return says
}
