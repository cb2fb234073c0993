package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

const originRules = `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, separation_of_duties: [requester]}}
tools: {refund: {risk: "facts.score > 50 ? 3 : 1"}}
rules:
- {id: fraud, when: 'has(facts.score) && facts.score > 90', then: deny, reason: "too risky"}
- {id: staging, when: 'req.stated.environment == "staging" && req.requester == "agent" && req.stated.requester == "eve"', then: allow}
`

// An external agent says for whom it works, where, and what the rules need to know: the person is
// excluded from deciding, and only the rules see the facts.
func TestCreateRequest_Origin(t *testing.T) {
	s := openDeskSiteWith(t, originRules)
	create := func(fields string) answer {
		return s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"approval","data":{"action":"refund","args":{"order":17},"summary":"It broke.","target":{"state":"paid"},`+
			`"evidence":[{"title":"Photo","text":"A broken cup","url":"https://shop.example/17.jpg"}]}`+fields+`}`)
	}
	asked := create(`,"requester":"bob","environment":"prod","facts":{"score":60}`)
	if asked.field("status") != "needs_input" {
		t.Fatalf("%+v", asked)
	}
	open := s.openRequests("acme")
	r := s.activity("eve@acme", open[0].ID)
	p := r.Presentation
	if r.Activity.Requester != "agent" || r.Activity.StatedRequester != "bob" || r.Activity.StatedEnvironment != "prod" || r.Activity.Risk != 3 || p.Sentence != "agent for bob (stated by the agent) wants to refund on order 17" {
		t.Errorf("%+v, %+v", r.Activity, p)
	}
	if last := p.Facts[len(p.Facts)-1]; last.Label != "environment (stated by the agent)" || last.Value != "prod" {
		t.Errorf("the facts are %+v", p.Facts)
	}
	if len(p.Evidence) != 2 || p.Evidence[0].Text != `{"state":"paid"}` || p.Evidence[1].URL != "https://shop.example/17.jpg" || len(p.Said) != 1 || p.Said[0].By != "request" || p.Said[0].Text != "It broke." {
		t.Errorf("the evidence is %+v, %+v", p.Evidence, p.Said)
	}
	if got := s.call("eve@acme", "GET", "/api/v1/requests/"+r.ID, ""); strings.Contains(got.body, "score") {
		t.Errorf("people see the facts: %s", got.body)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/requests/"+r.ID, ""); got.status != 200 {
		t.Errorf("the agent does not see its request: %+v", got)
	}
	past := s.call("auditor@acme", "POST", "/api/v1/policies/replay", `{"seconds":3600,"policy":`+asJSON(t, strings.Replace(originRules, "> 90", "> 50", 1))+`}`)
	if !strings.Contains(past.body, `"stricter":1`) {
		t.Errorf("the recorded ruling has no facts: %+v", past)
	}
	decide := func(who string) answer {
		return s.call(who+"@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"`+who+`","answer":{"verb":"approve"},"shown":"`+r.Shown+`"}`)
	}
	if got := decide("bob"); got.status != 403 {
		t.Errorf("the stated requester decides: %+v", got)
	}
	if got := decide("eve"); got.status != 200 || got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}

	if got := create(`,"requester":"eve","environment":"staging","facts":{"score":1}`); got.field("status") != "completed" {
		t.Errorf("a rule about the origin: %+v", got)
	}
	if got := create(`,"requester":"eve","environment":"staging","facts":{"score":91}`); !strings.Contains(got.body, "too risky") {
		t.Errorf("a rule about the facts: %+v", got)
	}
	first, again, other := create(`,"requester":"bob","facts":{"score":5}`), create(`,"facts":{ "score":5},"requester":"bob"`), create(`,"requester":"eve","facts":{"score":5}`)
	if again.field("runId") != first.field("runId") || other.field("deduplicated") != nil {
		t.Errorf("duplicates: %+v, %+v, %+v", first, again, other)
	}
	for fields, name := range map[string]string{
		`"requester":"` + strings.Repeat("x", 257) + `"`:      "requester",
		`"requester":" bob"`:                                  "requester",
		`"environment":"` + strings.Repeat("x", 257) + `"`:    "environment",
		`"environment":"pr\u200bod"`:                          "environment",
		`"facts":[1]`:                                         "facts",
		`"facts":{"x":"` + strings.Repeat("x", 16<<10) + `"}`: "facts",
		`"facts":{"x":1,"x":2}`:                               "",
	} {
		if got := create("," + fields); got.status != 400 || name != "" && !strings.Contains(got.body, `"`+name+`"`) && !strings.Contains(got.body, name+":") {
			t.Errorf("%.40s: %+v", fields, got)
		}
	}
}

const statementRules = `
version: "1"
default: deny
rules:
- {id: refund, when: req.tool == "refund", then: ask, ask: {groups: [{from: ["group:owners"]}], deadline: 1h, remember_max: 1h}}
- {id: pay, when: req.tool == "pay", then: allow, limit: {amount: args.cents, max: 100, window: 24h, by: [requester]}}
- {id: confirm, when: req.tool == "confirm", then: ask, ask: {groups: [{from: [requester]}], deadline: 1h}}
- {id: secret, when: req.tool == "secret", then: ask, ask: {groups: [{from: ["group:owners"]}], deadline: 1h, visible_to: [requester, "group:owners"]}}
- {id: drop, when: req.tool == "drop", then: allow}
- {id: prod, when: 'req.tool == "drop" && req.environment == "prod"', then: deny, reason: "not in prod"}
`

// An agent that names another person or another environment gets nothing that it would not get
// without the statement.
func TestCreateRequest_StatementsReplaceNothing(t *testing.T) {
	people := authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
		p, err := testPeople(r)
		if err == nil && p.ID == "robot" {
			p.Roles = []authn.Role{authn.RoleAgent}
		}
		return p, err
	})
	set, err := policy.Load("policy.yaml", []byte(statementRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, func(c *server.Config) { c.Auth = people }, func(c *executor.Config) {
		c.Desk = executor.DeskConfig{Policy: set, Environment: "prod", DefaultPage: []string{desk.DefaultPage}, Directory: desk.StaticDirectory{"group:owners": {"eve"}}}
	})
	create := func(agent, tool, args, fields string) answer {
		return s.call(agent+"@acme", "POST", "/api/v1/requests", `{"kind":"approval","allowDuplicate":true,"data":{"action":"`+tool+`","args":`+args+`}`+fields+`}`)
	}
	ask := func(agent, tool, fields string) string {
		t.Helper()
		got := create(agent, tool, `{"order":17}`, fields)
		if got.field("status") != "needs_input" {
			t.Fatalf("%s: %+v", tool, got)
		}
		return got.field("interrupts").([]any)[0].(map[string]any)["id"].(string)
	}
	decide := func(who, id string) answer {
		return s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"`+who+`","answer":{"verb":"approve"}}`)
	}

	t.Run("the grant of another", func(t *testing.T) {
		id := ask("robot", "refund", "")
		if got := decide("eve", id); got.status != 200 {
			t.Fatal(got)
		}
		if got := s.call("eve@acme", "POST", "/api/v1/requests/"+id+"/grant", `{"seconds":60,"uses":5}`, "Idempotency-Key", "k"); got.status != 200 {
			t.Fatal(got)
		}
		if got := create("robot", "refund", `{"order":17}`, `,"requester":"agent"`); got.field("status") != "completed" {
			t.Errorf("its own grant: %+v", got)
		}
		if got := create("agent", "refund", `{"order":17}`, `,"requester":"robot"`); got.field("status") != "needs_input" {
			t.Errorf("the grant of robot: %+v", got)
		}
	})
	t.Run("the limit of another", func(t *testing.T) {
		if got := create("agent", "pay", `{"cents":60}`, ""); got.field("status") != "completed" {
			t.Fatal(got)
		}
		if got := create("agent", "pay", `{"cents":60}`, `,"requester":"somebody"`); got.field("status") == "completed" {
			t.Errorf("above the limit of agent: %+v", got)
		}
	})
	t.Run("the confirmation", func(t *testing.T) {
		if got := decide("bob", ask("agent", "confirm", `,"requester":"bob"`)); got.status != 403 {
			t.Errorf("the stated requester confirms: %+v", got)
		}
	})
	t.Run("the audience", func(t *testing.T) {
		id := ask("agent", "secret", `,"requester":"bob"`)
		if got := s.call("bob@acme", "GET", "/api/v1/requests/"+id, ""); got.status != 404 {
			t.Errorf("the stated requester sees it: %+v", got)
		}
		for _, who := range []string{"eve", "agent"} {
			if got := s.call(who+"@acme", "GET", "/api/v1/requests/"+id, ""); got.status != 200 {
				t.Errorf("%s does not see it: %+v", who, got)
			}
		}
	})
	t.Run("the environment", func(t *testing.T) {
		if got := create("agent", "drop", `{}`, `,"environment":"dev"`); !strings.Contains(got.body, "not in prod") {
			t.Errorf("a rule about the environment: %+v", got)
		}
	})
}
