// Package governance has the pages of policies, routes and grants.
package governance

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/web/page"
)

// Routes lists the pages of policies, routes and grants.
func Routes() page.Routes {
	return page.Routes{
		"GET /policies":            policies,
		"POST /policies/explain":   explainPolicy,
		"POST /policies/replay":    replayPolicy,
		"GET /routes":              routesPage,
		"GET /grants":              grants,
		"POST /grants/{id}/revoke": revokeGrant,
	}
}

// policiesData is the data of the page of the policy.
type policiesData struct {
	api.Policy
	Rules []policyRule
	Text  string
	Since *time.Time
	// Explain is the form about one action, with its result.
	Explain explainForm
	// Replay is the form about a changed policy, with its result.
	Replay replayForm
}

// policyRule is a rule with how often it decided in the last 30 days.
type policyRule struct {
	policy.Rule
	Hits int
}

type explainForm struct {
	Tool, Graph, Requester, Args string
	Problem                      *api.Problem
	Result                       *policy.Decision
}

type replayForm struct {
	Policy  string
	Days    int
	Problem *api.Problem
	Result  *replay.HistoryReport
}

// policyDays is the period of the numbers on the page.
const policyDays = 30

// policies shows the rules in force.
func policies(v *page.Visit) (page.Response, error) {
	return policiesPage(v, explainForm{Args: "{}"}, replayForm{Days: policyDays}, http.StatusOK)
}

func policiesPage(v *page.Visit, explain explainForm, past replayForm, status int) (page.Response, error) {
	data := policiesData{Explain: explain, Replay: past}
	var err error
	if data.Policy, err = v.API.Policy(v.Context()); err != nil {
		return nil, err
	}
	var rules []policy.Rule
	if err := json.Unmarshal(data.Policy.Rules, &rules); err != nil {
		return nil, err
	}
	hits := make(map[string]int)
	if report, err := v.API.Analytics(v.Context(), policyDays, v.ZoneName()); err == nil { // a busy server shows the rules without numbers
		for _, row := range report.ByRule {
			hits[row.Name] = row.Requests
		}
	}
	for _, r := range rules {
		data.Rules = append(data.Rules, policyRule{Rule: r, Hits: hits[r.ID]})
	}
	if data.Digest != "" {
		text, err := v.API.PolicyText(v.Context(), data.Digest)
		if err != nil {
			return nil, err
		}
		data.Text, data.Since = text.Text, text.Since
	}
	if data.Replay.Policy == "" {
		data.Replay.Policy = data.Text
	}
	return page.Page{Name: "policies", Title: v.T("policies.title"), Nav: "/policies", Status: status, Data: data}, nil
}

// explainPolicy says what the policy decides about an action.
func explainPolicy(v *page.Visit) (page.Response, error) {
	form := explainForm{Tool: v.FormValue("tool"), Graph: v.FormValue("graph"), Requester: v.FormValue("requester"), Args: v.FormValue("args")}
	status := http.StatusOK
	if !json.Valid([]byte(form.Args)) {
		form.Problem = &api.Problem{Status: http.StatusUnprocessableEntity, Detail: v.T("policies.badjson")}
		return policiesPage(v, form, replayForm{Days: policyDays}, form.Problem.Status)
	}
	result, err := v.API.ExplainPolicy(v.Context(), api.HypotheticalAction{Tool: form.Tool, Graph: form.Graph, Requester: form.Requester, Args: json.RawMessage(form.Args)})
	switch problem, ok := errors.AsType[*api.Problem](err); {
	case ok && problem.Status < 500 && problem.Status != http.StatusUnauthorized:
		form.Problem, status = problem, problem.Status
	case err != nil:
		return nil, err
	default:
		form.Result = new(policy.Decision)
		if err := json.Unmarshal(result, form.Result); err != nil {
			return nil, err
		}
	}
	return policiesPage(v, form, replayForm{Days: policyDays}, status)
}

// replayPolicy says what a changed policy would have decided.
func replayPolicy(v *page.Visit) (page.Response, error) {
	form := replayForm{Policy: v.FormValue("policy"), Days: policyDays}
	status := http.StatusOK
	result, err := v.API.ReplayPolicy(v.Context(), api.ReplayPolicy{Policy: form.Policy, Seconds: int64(policyDays * 24 * time.Hour / time.Second)})
	switch problem, ok := errors.AsType[*api.Problem](err); {
	case ok && problem.Status != http.StatusUnauthorized:
		form.Problem, status = problem, problem.Status
	case err != nil:
		return nil, err
	default:
		form.Result = new(replay.HistoryReport)
		if err := json.Unmarshal(result, form.Result); err != nil {
			return nil, err
		}
	}
	return policiesPage(v, explainForm{Args: "{}"}, form, status)
}
