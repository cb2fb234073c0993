package server_test

import (
	"strings"
	"testing"
)

const originRules = `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, separation_of_duties: [requester]}}
tools: {refund: {risk: "facts.score > 50 ? 3 : 1"}}
rules:
- {id: fraud, when: 'has(facts.score) && facts.score > 90', then: deny, reason: "too risky"}
- {id: staging, when: 'req.environment == "staging" && req.agent == "agent" && req.requester == "eve"', then: allow}
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
	if r.Activity.Requester != "bob" || r.Activity.Agent != "agent" || r.Activity.Risk != 3 || p.Sentence != "agent for bob wants to refund on order 17" {
		t.Errorf("%+v, %+v", r.Activity, p)
	}
	if len(p.Evidence) != 2 || p.Evidence[0].Text != `{"state":"paid"}` || p.Evidence[1].URL != "https://shop.example/17.jpg" || len(p.Said) != 1 || p.Said[0].By != "agent" || p.Said[0].Text != "It broke." {
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
		t.Errorf("the requester decides: %+v", got)
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
