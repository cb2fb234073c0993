package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/policy"
)

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
func (s *Site) policies(v *visit) (response, error) {
	return s.policiesPage(v, explainForm{Args: "{}"}, replayForm{Days: policyDays}, http.StatusOK)
}

func (s *Site) policiesPage(v *visit, explain explainForm, past replayForm, status int) (response, error) {
	data := policiesData{Explain: explain, Replay: past}
	var err error
	if data.Policy, err = v.api.Policy(v.ctx()); err != nil {
		return nil, err
	}
	var rules []policy.Rule
	if err := json.Unmarshal(data.Policy.Rules, &rules); err != nil {
		return nil, err
	}
	hits := make(map[string]int)
	if report, err := v.api.Analytics(v.ctx(), policyDays, v.ZoneName()); err == nil { // a busy server shows the rules without numbers
		for _, row := range report.ByRule {
			hits[row.Name] = row.Requests
		}
	}
	for _, r := range rules {
		data.Rules = append(data.Rules, policyRule{Rule: r, Hits: hits[r.ID]})
	}
	if data.Digest != "" {
		text, err := v.api.PolicyText(v.ctx(), data.Digest)
		if err != nil {
			return nil, err
		}
		data.Text, data.Since = text.Text, text.Since
	}
	if data.Replay.Policy == "" {
		data.Replay.Policy = data.Text
	}
	return page{Name: "policies", Title: v.t("policies.title"), Nav: "/policies", Status: status, Data: data}, nil
}

// explainPolicy says what the policy decides about an action.
func (s *Site) explainPolicy(v *visit) (response, error) {
	form := explainForm{Tool: v.FormValue("tool"), Graph: v.FormValue("graph"), Requester: v.FormValue("requester"), Args: v.FormValue("args")}
	status := http.StatusOK
	if !json.Valid([]byte(form.Args)) {
		form.Problem = &api.Problem{Status: http.StatusUnprocessableEntity, Detail: v.t("policies.badjson")}
		return s.policiesPage(v, form, replayForm{Days: policyDays}, form.Problem.Status)
	}
	result, err := v.api.ExplainPolicy(v.ctx(), api.HypotheticalAction{Tool: form.Tool, Graph: form.Graph, Requester: form.Requester, Args: json.RawMessage(form.Args)})
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
	return s.policiesPage(v, form, replayForm{Days: policyDays}, status)
}

// replayPolicy says what a changed policy would have decided.
func (s *Site) replayPolicy(v *visit) (response, error) {
	form := replayForm{Policy: v.FormValue("policy"), Days: policyDays}
	status := http.StatusOK
	result, err := v.api.ReplayPolicy(v.ctx(), api.ReplayPolicy{Policy: form.Policy, Seconds: int64(policyDays * 24 * time.Hour / time.Second)})
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
	return s.policiesPage(v, explainForm{Args: "{}"}, form, status)
}
