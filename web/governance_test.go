package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/web/internal/webtest"
)

const demoPolicy = `version: "7"
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 24h}}
rules:
- id: tiny-refunds
  when: req.tool == "refund" && args.amount <= 5.0
  then: allow
- id: no-drops
  when: req.tool == "drop-table"
  then: deny
  reason: tables stay
`

func withPolicy(t *testing.T) func(*webtest.Config) {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(demoPolicy), policy.Options{UnknownFields: policy.OptionalFields})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *webtest.Config) { c.Desk = executor.DeskConfig{Policy: set} }
}

func TestPolicies_ExplainAndReplay(t *testing.T) {
	s := open(t, withPolicy(t))
	b := s.SignIn("ann")
	want(t, b.Get("/policies"), http.StatusOK, "tiny-refunds", "no-drops", "tables stay", "Allow", "Deny")
	want(t, b.Post("/policies/explain", "tool", "refund", "args", `{"amount":3}`), http.StatusOK, `value="refund"`, "tiny-refunds", "All rules")
	want(t, b.Post("/policies/explain", "tool", "refund", "args", `{`), http.StatusUnprocessableEntity, "not valid JSON", ">{</textarea>")
	start(t, s, "r1", "inproc:refund-order", `{"order":1,"customer":"x","amount":3,"currency":"EUR"}`)
	want(t, b.Post("/policies/replay", "policy", strings.ReplaceAll(demoPolicy, "5.0", "1.0")), http.StatusOK, "1 action was decided again.", "1 would be stricter")
	got := b.Post("/policies/replay", "policy", "rules: [")
	if got.Status < 400 || !strings.Contains(got.Body, "rules: [</textarea>") {
		t.Errorf("%d", got.Status)
	}
}

func TestPolicies_WithoutPolicy(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/policies"), http.StatusOK, "no policy file")
}

func TestRoutes_PlanAtATime(t *testing.T) {
	b := open(t).SignIn("ann")
	want(t, b.Get("/routes?at=2026-11-20T18:10"), http.StatusOK, "default", `value="2026-11-20T18:10"`, "expire")
	want(t, b.Get("/routes?at=tomorrow"), http.StatusOK, "This is not a time.")
}

func TestAnalytics_ChartAndCSV(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	want(t, b.Get("/analytics"), http.StatusOK, "No decisions yet")
	start(t, s, "tea", "inproc:content-review", `{"topic":"tea"}`)
	want(t, b.Get("/analytics?days=7"), http.StatusOK, "content-review", "<rect", "1 open")
	got := b.Get("/analytics?days=7&format=csv")
	want(t, got, http.StatusOK, "kind,content-review,1,1,")
	if got.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Error(got.Header)
	}
}

func TestAudit_RecordsAndFindings(t *testing.T) {
	s := open(t)
	start(t, s, "tea", "inproc:content-review", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/audit"), http.StatusOK, "run.started", "Verify it yourself")
	want(t, b.Get("/audit?findings=1"), http.StatusOK, "There are none.")
	want(t, b.Get("/audit?q=nonsense"), http.StatusOK, "No records")
	want(t, s.SignIn("bob", authn.RoleApprover).Get("/audit"), http.StatusForbidden)
}

func TestDocs_ListsOperations(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/docs"), http.StatusOK, "/api/v1/requests/{id}/decision", `id="decide"`, "POST")
}

func TestMe_ShowsRolesAndSession(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/me"), http.StatusOK, "admin", "Sign-in link", webtest.Account)
}
