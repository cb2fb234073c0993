package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
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
	open := b.Get("/analytics?days=7")
	want(t, open, http.StatusOK, "content-review", "<rect", "1 open")
	if strings.Contains(open.Body, "Decisions per day") {
		t.Error("a chart without a decision")
	}
	got := b.Get("/analytics?days=7&format=csv")
	want(t, got, http.StatusOK, "kind,content-review,1,1,")
	if got.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Error(got.Header)
	}
}

// Each chart over time has a description, columns that fit, and a table with the same numbers.
func TestAnalytics_DecisionsOverTime(t *testing.T) {
	report := analytics.Report{All: analytics.Row{Requests: 7}}
	for i := range 7 {
		report.ByDay = append(report.ByDay, analytics.DecisionCounts{Name: fmt.Sprintf("2026-11-%02d", 12+i)})
	}
	report.ByDay[5] = analytics.DecisionCounts{Name: "2026-11-17", Approved: 3, Rejected: 2}
	for i := range 24 {
		report.ByHour = append(report.ByHour, analytics.DecisionCounts{Name: fmt.Sprintf("%02d:00", i)})
	}
	report.ByHour[9].Answered = 1
	s := open(t, func(c *webtest.Config) {
		c.Site = func(api http.Handler) (http.Handler, error) {
			return web.New(web.Config{API: webtest.WithAnswer(api, "/api/v1/analytics", report)})
		}
	})
	b := s.SignIn("ann")
	want(
		t, b.Get("/analytics?days=7"), http.StatusOK,
		"Decisions per day: 5 in all; the most, 5, at Tue 17 Nov.", "Tue 17 Nov: 3 approved, 0 answered, 2 rejected, 0 expired",
		`<rect class="a" x="73.57%" y="50%" width="10%" height="50%"/><rect class="r" x="73.57%" y="16.67%" width="10%" height="33.33%"/>`,
		`<th scope="row">Tue 17 Nov</th><td class="num">5</td><td class="num">3</td><td class="num muted">0</td><td class="num">2</td>`,
		"Decisions by hour of the day: 1 in all; the most, 1, at 09:00.", ">18 Nov</text>", ">06:00</text>", "Times in UTC",
	)
	want(t, b.Get("/analytics?days=7&format=csv"), http.StatusOK, "day,2026-11-17,5,0,3,0,2,0,", "hour,09:00,1,0,0,0,0,1,")
}

func TestAudit_RecordsAndFindings(t *testing.T) {
	s := open(t)
	start(t, s, "tea", "inproc:content-review", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/audit"), http.StatusOK, "run.started", "Verify it yourself")
	want(t, b.Get("/audit?findings=1"), http.StatusOK, "There are none.")
	want(t, b.Get("/audit?q=nonsense"), http.StatusOK, "No records", "records were searched")
	want(t, b.Get("/audit?verify=1"), http.StatusOK, "records are valid")
	want(t, s.SignIn("bob", authn.RoleApprover).Get("/audit"), http.StatusForbidden)
}

func TestDocs_ListsOperations(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/docs"), http.StatusOK, "/api/v1/requests/{id}/decision", `id="decide"`, "POST")
}

func TestMe_ShowsRolesAndSession(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/me"), http.StatusOK, "admin", "Sign-in link", webtest.Account)
}
