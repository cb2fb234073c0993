package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/provider/inproc"
)

type table struct {
	Name string `json:"name"`
}

const (
	dropRules = `
version: "1"
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  reason: tables do not come back
  ask: {groups: [{from: ["group:dba"]}, {from: ["group:owners"]}], editable: [""], deadline: 1h, remember_max: 1h}
`
	startDrop = `{"graphId":"inproc:drop","stateKey":"drop-1","input":{"name":"users"}}`
)

// testPeople are approvers by name, whatever role the token has.
var testPeople = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
	p, err := testTokens(r)
	if err == nil && (p.ID == "bob" || p.ID == "eve") {
		p.Roles = []authn.Role{authn.RoleApprover}
	}
	return p, err
})

// openDeskSite is a server where a drop needs bob, a dba, and eve, an owner.
func openDeskSite(t *testing.T) *site {
	t.Helper()
	return openDeskSiteWith(t, dropRules)
}

func openDeskSiteWith(t *testing.T, rules string) *site {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	drop := single(t, "drop", func(ctx context.Context, s table) (table, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[table]{Name: "drop-table", Args: s, Summary: "Drop it"})
		if err != nil {
			return s, err
		}
		_, err = fermata.Effect(ctx, yes, func(context.Context, table, string) (string, error) { return "done", nil })
		return s, err
	})
	return openWith(t, func(c *server.Config) { c.Auth = testPeople }, func(c *executor.Config) {
		c.Desk = executor.DeskConfig{Policy: set, DefaultPage: []string{desk.DefaultPage}, Directory: desk.StaticDirectory{"group:dba": {"bob"}, "group:owners": {"eve"}}}
	}, drop)
}

// activity returns a request with its activity.
func (s *site) activity(token, id string) api.Request {
	s.Helper()
	got := s.call(token, "GET", "/api/v1/requests/"+id, "")
	var r api.Request
	if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != 200 || r.Activity == nil {
		s.Fatal(got, err)
	}
	return r
}

// The answer schema must not contain the expiry verb, which the server accepts from no client.
func TestRequest_AnswerSchemaOmitsExpiryVerb(t *testing.T) {
	s := openDeskSite(t)
	for name, got := range map[string]answer{
		"kinds":    s.call("agent@acme", "GET", "/api/v1/kinds", ""),
		"question": s.call("agent@acme", "POST", "/api/v1/ai/chat", startDrop),
	} {
		if got.status != 200 || strings.Contains(got.body, `"expire"`) || !strings.Contains(got.body, `"enum":["approve","reject"]`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// The last editor may still reject: they were shown as ineligible and had no action.
func TestRequest_LastEditorSeesAllowedVerbs(t *testing.T) {
	s := openDeskSiteWith(t, `
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba", "group:owners"]}], separation_of_duties: [last_editor], editable: [""], verbs: [approve, edit, reject], deadline: 1h}
`)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	edit := fmt.Sprintf(`{"resumeId":"1","answer":{"verb":"approve","args":{"name":"old"}},"shown":%q}`, s.activity("bob@acme", id).Shown)
	if got := s.call("bob@acme", "POST", "/api/v1/requests/"+id+"/decision", edit); got.status != 200 || got.field("status") != "needs_input" {
		t.Fatalf("the edit: %+v", got)
	}
	for who, want := range map[string]string{"bob": "edit,reject", "eve": "approve,edit,reject"} {
		if activity := s.activity(who+"@acme", id).Activity; activity.IneligibleReason != "" || strings.Join(activity.Verbs, ",") != want {
			t.Errorf("%s: %q, %v", who, activity.IneligibleReason, activity.Verbs)
		}
	}
	no := fmt.Sprintf(`{"resumeId":"2","answer":{"verb":"reject","reason":"on second thoughts"},"shown":%q}`, s.activity("bob@acme", id).Shown)
	if got := s.call("bob@acme", "POST", "/api/v1/requests/"+id+"/decision", no); got.status != 200 {
		t.Errorf("the no: %+v", got)
	}
}

// A person has approved one of two requests of a run. For the other they were shown as eligible,
// and the server rejected their decision.
func TestRequest_PriorApproverSeesAllowedVerbs(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte(`
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"], count: 2}], separation_of_duties: [prior_approver], deadline: 1h}
`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New[table]("drop")
	for _, name := range []string{"one", "two"} {
		g.Node(name, func(ctx context.Context, s table) (table, error) {
			_, err := fermata.Approve(ctx, fermata.Action[table]{Name: "drop-table", Args: s})
			return s, err
		})
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	s := openWith(t, func(c *server.Config) { c.Auth = testPeople }, func(c *executor.Config) {
		c.Desk = executor.DeskConfig{Policy: set, DefaultPage: []string{desk.DefaultPage}, Directory: desk.StaticDirectory{"group:dba": {"bob", "eve"}}}
	}, compiled(t, g, inproc.FlowConfig[table]{}))
	s.chat("agent@acme", startDrop)
	asked := s.openRequests("acme")
	one, two := asked[0].ID, asked[1].ID
	yes := fmt.Sprintf(`{"resumeId":"1","answer":{"verb":"approve"},"shown":%q}`, s.activity("bob@acme", one).Shown)
	if got := s.call("bob@acme", "POST", "/api/v1/requests/"+one+"/decision", yes); got.status != 200 {
		t.Fatalf("the yes: %+v", got)
	}
	for _, c := range []struct{ who, id, want string }{{"bob", one, ""}, {"bob", two, "excluded"}, {"eve", two, ""}} {
		if activity := s.activity(c.who+"@acme", c.id).Activity; activity.IneligibleReason != c.want {
			t.Errorf("%s: %q, want %q", c.who, activity.IneligibleReason, c.want)
		}
	}
}

func TestRequest_QuorumOfTwoOverHTTP(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	r := s.activity("bob@acme", id)
	if r.Activity.Progress != "0 of 2, needs 1 × dba, needs 1 × owners" || r.Activity.IneligibleReason != "" || strings.Join(r.Activity.Rules, "") != "drop" || r.Activity.Reason == "" || len(r.Activity.Requirements) != 2 {
		t.Fatalf("%+v", r.Activity)
	}
	if other := s.activity("auditor@acme", id); other.Activity.IneligibleReason != "not_member" {
		t.Errorf("an auditor: %+v", other.Activity)
	}
	decide := func(who, resume string) answer {
		return s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/decision", fmt.Sprintf(`{"resumeId":%q,"answer":{"verb":"approve"},"shown":%q}`, resume, r.Shown))
	}
	if got := decide("bob", "1"); got.status != 200 || got.field("status") != "needs_input" {
		t.Fatalf("the first: %+v", got)
	}
	if r := s.activity("eve@acme", id); r.Activity.Progress != "1 of 2, needs 1 × owners" || len(r.Activity.Votes) != 1 || r.Activity.Votes[0].By != "bob" {
		t.Errorf("%+v", r.Activity)
	}
	if got := decide("approver", "2"); got.status != 403 || got.field("code") != "not_eligible" {
		t.Errorf("unauthenticated: %+v", got)
	}
	if got := decide("eve", "3"); got.status != 200 || got.field("status") != "completed" {
		t.Errorf("the second: %+v", got)
	}
}

func TestRequestActions_EachChangesTheRequest(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	do := func(who, act, body string, status int) answer {
		t.Helper()
		got := s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/"+act, body)
		if got.status != status {
			t.Fatalf("%s by %s: %+v", act, who, got)
		}
		return got
	}
	do("bob", "view", `{}`, 200)
	do("bob", "claim", `{}`, 200)
	do("eve", "comment", `{"text":"Why now?"}`, 200)
	do("eve", "clarify", `{"text":"Is there a backup?"}`, 200)
	do("agent", "reply", `{"question":1,"text":"Of last night."}`, 200)
	do("agent", "reply", `{"question":7,"text":"?"}`, 409)
	do("bob", "release", `{}`, 200)
	do("bob", "delegate", `{"to":"eve"}`, 200)
	do("bob", "delegate", `{"to":"mallory"}`, 422)
	later := time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
	do("bob", "snooze", fmt.Sprintf(`{"until":%q}`, later), 200)
	do("bob", "snooze", `{}`, 400)
	do("bob", "escalate", `{"text":"it is urgent"}`, 200)
	do("bob", "comment", `{}`, 400)
	do("mallory", "claim", `{}`, 403)
	activity := s.activity("bob@acme", id).Activity
	if len(activity.Comments) != 1 || len(activity.Clarifications) != 1 || activity.Clarifications[0].Reply == nil || activity.Clarifications[0].Reply.Text != "Of last night." || activity.Claim != nil || len(activity.History) < 8 {
		t.Errorf("%+v", activity)
	}
	if got := s.call("bob@other", "POST", "/api/v1/requests/"+id+"/claim", `{}`); got.status != 404 {
		t.Errorf("I8: from another account: %+v", got)
	}
}

// A caller without a response repeats the action with the same key, which must not apply it twice.
func TestRequestActions_IdempotencyKeyAppliesOnce(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	do := func(who, act, key, body string) answer {
		t.Helper()
		return s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/"+act, body, "Idempotency-Key", key)
	}
	for _, act := range []struct{ who, name, body string }{
		{"eve", "comment", `{"text":"Why now?"}`}, {"eve", "clarify", `{"text":"Is there a backup?"}`}, {"agent", "reply", `{"question":1,"text":"Yes."}`},
		{"bob", "delegate", `{"to":"eve"}`}, {"bob", "escalate", `{}`}, {"bob", "abandon", `{}`},
	} {
		if got := do(act.who, act.name, act.name, act.body); got.status != 200 {
			t.Fatalf("%s: %+v", act.name, got)
		}
		before := s.activity("bob@acme", id)
		if got := do(act.who, act.name, act.name, act.body); got.status != 200 {
			t.Errorf("%s again: %+v", act.name, got)
		}
		if after := s.activity("bob@acme", id); after.Activity.Revision != before.Activity.Revision {
			t.Errorf("%s again: revision %d after %d", act.name, after.Activity.Revision, before.Activity.Revision)
		}
	}
	if got := do("eve", "comment", "comment", `{"text":"Why not?"}`); got.status != 422 || got.field("code") != "idempotency_key_reused" {
		t.Errorf("another action with the same key: %+v", got)
	}
}

func TestGrants_CreateUseAndRevoke(t *testing.T) {
	s := openDeskSiteWith(t, strings.Replace(dropRules, `{from: ["group:dba"]}, `, "", 1))
	s.chat("agent@acme", startDrop)
	r := s.activity("bob@acme", s.openRequests("acme")[0].ID)
	s.call("eve@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
	remember := func(body string) answer {
		t.Helper()
		return s.call("eve@acme", "POST", "/api/v1/requests/"+r.ID+"/grant", body, "Idempotency-Key", "k")
	}
	made := remember(`{"seconds":60,"uses":3,"relax":{"/name":{"op":"prefix","value":"us"}}}`)
	if made.status != 200 || made.field("tool") != "drop-table" {
		t.Fatalf("%+v", made)
	}
	if got := remember(`{"seconds":60,"uses":3,"relax":{"/name":{"op":"prefix","value":"us"}}}`); got.field("id") != made.field("id") {
		t.Errorf("repeated: %+v", got)
	}
	if got := remember(`{"seconds":60,"uses":4}`); got.status != 422 || got.field("code") != "idempotency_key_reused" {
		t.Errorf("another grant with the same key: %+v", got)
	}
	again := strings.Replace(startDrop, "drop-1", "drop-2", 1)
	if got := s.chat("agent@acme", strings.Replace(again, "users", "us_old", 1)); got.field("status") != "completed" {
		t.Errorf("within its bounds: %+v", got)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/grants", ""); !strings.Contains(got.body, `"uses":1`) {
		t.Errorf("%+v", got)
	}
	if got := s.call("bob@acme", "POST", fmt.Sprintf("/api/v1/grants/%s/revoke", made.field("id")), ""); got.status != 204 {
		t.Errorf("%+v", got)
	}
	if got := s.chat("agent@acme", strings.Replace(startDrop, "drop-1", "drop-3", 1)); got.field("status") != "needs_input" {
		t.Errorf("after it was revoked: %+v", got)
	}
	for _, bad := range []string{`{"seconds":0,"uses":1}`, `{"seconds":60,"uses":1,"relax":[1]}`, `{"seconds":60,"uses":1,"relax":{"/nothing":{"op":"any"}}}`} {
		if got := s.call("eve@acme", "POST", "/api/v1/requests/"+r.ID+"/grant", bad); got.status != 400 {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

func TestAbandon_CancelsTheRun(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	id := s.openRequests("acme")[0].ID
	if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/abandon", `{"text":"forget it"}`); got.status != 200 || got.field("state") != "withdrawn" {
		t.Fatalf("%+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/demo-1", ""); !strings.Contains(got.body, `"cancelled"`) {
		t.Errorf("%+v", got)
	}
	if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/abandon", `{}`); got.status < 400 || got.status >= 500 {
		t.Errorf("again: %+v", got)
	}
}

func TestPolicies_ExplainAndRoutes(t *testing.T) {
	s := openDeskSite(t)
	if got := s.call("auditor@acme", "GET", "/api/v1/policies", ""); got.field("version") != "1" || !strings.Contains(got.body, `"id":"drop"`) {
		t.Errorf("%+v", got)
	}
	if got := s.call("auditor@acme", "POST", "/api/v1/policies/explain", `{"tool":"drop-table","args":{"name":"x"}}`); got.field("verdict") != "ask" || !strings.Contains(got.body, `group:dba`) {
		t.Errorf("%+v", got)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/routes", ""); got.status != 200 || !strings.Contains(got.body, `"default"`) {
		t.Errorf("%+v", got)
	}
}

func TestAnalytics_NamesAreForAdminsOnly(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	r := s.activity("bob@acme", s.openRequests("acme")[0].ID)
	for _, who := range []string{"bob", "eve"} {
		s.call(who+"@acme", "POST", "/api/v1/requests/"+r.ID+"/view", `{}`)
		s.call(who+"@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", fmt.Sprintf(`{"resumeId":"%s-1","answer":{"verb":"approve"}}`, who))
	}
	for who, names := range map[string]string{"auditor": "bob eve", "bob": "bob", "approver": ""} {
		got := s.call(who+"@acme", "GET", "/api/v1/analytics?days=1&zone=Europe/Zurich", "")
		var report analytics.Report
		if err := json.Unmarshal([]byte(got.body), &report); err != nil || got.status != 200 {
			t.Fatal(got, err)
		}
		var seen []string
		for _, p := range report.People {
			seen = append(seen, p.Name)
		}
		if strings.Join(seen, " ") != names || report.All.Approved != 1 || len(report.ByRule) != 1 || report.ByRule[0].Name != "drop" || report.ByRule[0].ToDecide.N != 1 {
			t.Errorf("%s: %+v", who, report)
		}
	}
	if got := s.call("auditor@other", "GET", "/api/v1/analytics", ""); !strings.Contains(got.body, `"requests":0`) {
		t.Errorf("I8: %+v", got)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/analytics?zone=Nowhere", ""); got.status != 400 {
		t.Errorf("%+v", got)
	}
}

// The audit log is returned as stored, so that it can be verified.
func TestI12_ExportedAuditLogVerifies(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	var lines []string
	for after := 0; ; after = len(lines) {
		got := s.call("auditor@acme", "GET", fmt.Sprintf("/api/v1/audit?after=%d&limit=1", after), "")
		if got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("%+v", got)
		}
		if got.body == "" {
			break
		}
		lines = append(lines, strings.TrimSuffix(got.body, "\n"))
	}
	prev := strings.Repeat("0", 64)
	for _, line := range lines {
		if !strings.Contains(line, `"prev":"`+prev+`"`) {
			t.Errorf("%s does not follow %s", line, prev)
		}
		hash := chain.Hash([]byte(line))
		prev = fmt.Sprintf("%x", hash)
	}
	if len(lines) != 3 { // the run was started, under this policy, and created a request
		t.Errorf("%d lines: %s", len(lines), lines)
	}
}

// An agent can comment on its request, but not decide, nor reach another account, nor exceed the
// text limit.
func TestRequestActions_AgentMayCommentButNotDecide(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	post := func(who, act, body string) answer { return s.call(who, "POST", "/api/v1/requests/"+id+"/"+act, body) }
	if got := post("bob@acme", "clarify", `{"text":"why?"}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	long := strings.Repeat("a", 4001)
	for _, attack := range []struct {
		who, act, body string
		want           []int
	}{
		{"agent@acme", "clarify", `{"text":"may I?"}`, []int{403}},
		{"agent@acme", "decision", `{"resumeId":"1","answer":{"verb":"approve"}}`, []int{403}},
		{"agent@acme", "extend", `{"until":"2099-01-01T00:00:00Z"}`, []int{403}},
		{"agent@acme", "reply", `{"question":0,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":-1,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":9223372036854775807,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":1,"text":""}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"` + long + `"}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"a","verb":"approve"}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"a","answer":{"verb":"approve"}}`, []int{400}},
		{"agent@other", "reply", `{"question":1,"text":"a"}`, []int{404}},
		{"agent@other", "comment", `{"text":"a"}`, []int{404}},
		{"bob@acme", "reply", `{"question":1,"text":"I am the run"}`, []int{403}},
		{"bob@other", "clarify", `{"text":"what do they do?"}`, []int{404}},
	} {
		got := post(attack.who, attack.act, attack.body)
		good := false
		for _, want := range attack.want {
			good = good || got.status == want
		}
		if !good || strings.Contains(got.body, "users") {
			t.Errorf("%s %s %.60s: %d %.200s", attack.who, attack.act, attack.body, got.status, got.body)
		}
	}
	if got := post("agent@acme", "reply", `{"question":1,"text":"{\"verb\":\"approve\"}"}`); got.status != 200 {
		t.Errorf("an answer: %+v", got)
	}
	if got := post("agent@acme", "reply", `{"question":1,"text":"and more"}`); got.status != 409 {
		t.Errorf("a second answer: %+v", got)
	}
	if activity := s.activity("bob@acme", id).Activity; activity.State != "open" || len(activity.Votes) != 0 || len(activity.Clarifications) != 1 || activity.Clarifications[0].Reply.By != "agent" {
		t.Errorf("%+v", activity)
	}
}

// The comment of an agent used to be recorded as that of a person.
func TestI12_AgentCommentIsRecordedAsAgent(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	for _, who := range []string{"agent", "bob"} {
		if got := s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/comment", `{"text":"The CFO has agreed."}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	log := s.call("auditor@acme", "GET", "/api/v1/audit", "").body
	for who, kind := range map[string]string{"agent": "agent", "bob": "person"} {
		said := regexp.MustCompile(`"kind":"request.commented","actor":{"principal":"` + who + `","kind":"(\w+)"`).FindStringSubmatch(log)
		if len(said) != 2 || said[1] != kind {
			t.Errorf("%s is a %s in the log: %q", who, kind, said)
		}
	}
}

// A channel reports what it put on the screen with the view, and the decision names it.
func TestRequest_RenderingIsRecordedAndNamed(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	shown, hash := s.activity("bob@acme", id).Shown, desk.RenderingHash("drop-table users")
	view := func(rendering string) answer {
		return s.call("bob@acme", "POST", "/api/v1/requests/"+id+"/view", fmt.Sprintf(`{"shown":%q,"rendering":%s}`, shown, rendering))
	}
	for _, bad := range []string{`{"hash":"x","channel":"web","template":"page@1"}`, fmt.Sprintf(`{"hash":%q,"channel":"web","template":"page"}`, hash), fmt.Sprintf(`{"hash":%q,"channel":"web","template":"page@1","text":"drop-table orders"}`, hash), `{}`} {
		if got := view(bad); got.status != 400 {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	if n := len(s.activity("bob@acme", id).Activity.Renderings); n != 0 {
		t.Fatalf("%d renderings", n)
	}
	if got := view(fmt.Sprintf(`{"hash":%q,"channel":"web","template":"page@1","visible":"part","text":"drop-table users"}`, hash)); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	seen := s.activity("eve@acme", id).Activity.Renderings
	if len(seen) != 1 || seen[0].By != "bob" || seen[0].At.IsZero() || seen[0].Shown != shown || seen[0].Rendering != (api.Rendering{Hash: hash, Channel: "web", Template: "page@1", Visible: "part"}) {
		t.Fatalf("renderings: %+v", seen)
	}
	decide := func(resume, rendering string) answer {
		return s.call("bob@acme", "POST", "/api/v1/requests/"+id+"/decision", fmt.Sprintf(`{"resumeId":%q,"answer":{"verb":"approve"},"shown":%q,"rendering":%q}`, resume, shown, rendering))
	}
	if got := decide("1", desk.RenderingHash("other")); got.status != 412 || got.field("code") != "digest_mismatch" {
		t.Errorf("an unknown rendering: %+v", got)
	}
	if got := decide("2", hash); got.status != 200 {
		t.Errorf("%+v", got)
	}
}
