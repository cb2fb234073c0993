package server_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
)

// An external agent gets the conditions with the decision, and checks them itself.
func TestConditions_ReachTheExternalAgent(t *testing.T) {
	s := open(t, nil)
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"refund","args":{"cents":500}}}`)
	id := s.openRequests("acme")[0].ID
	for conditions, detail := range map[string]string{
		`{"onlyIf":"args.cents < 100"}`:     "the condition is false",
		`{"onlyIf":"args.cents <"}`:         "Syntax error",
		`{"until":"2020-01-01T00:00:00Z"}`:  "in the past",
		`{"onlyIf":"args.euros <= 100000"}`: "missing key euros",
	} {
		got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve","conditions":`+conditions+`}}`)
		if text, _ := got.field("detail").(string); got.status != 422 || got.field("code") != "invalid_conditions" || !strings.Contains(text, detail) {
			t.Errorf("%s: %+v", conditions, got)
		}
	}
	body := `{"verb":"approve","conditions":{"until":"2999-01-01T00:00:00Z","onlyIf":"args.cents <= 500"}}`
	decided := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":`+body+`}`)
	if decided.status != 200 || !strings.Contains(decided.body, `"onlyIf":"args.cents \u003c= 500"`) && !strings.Contains(decided.body, `"onlyIf":"args.cents <= 500"`) {
		t.Fatalf("%+v", decided)
	}
	for _, who := range []string{"agent@acme", "approver@acme"} {
		r := decode[api.Request](t, s.call(who, "GET", "/api/v1/requests/"+id, ""))
		if r.Decision.Conditions == nil || r.Decision.Conditions.OnlyIf != "args.cents <= 500" || r.Decision.Conditions.Until.Year() != 2999 || *r.Activity.Votes[0].Conditions != *r.Decision.Conditions {
			t.Errorf("%s sees %+v, %+v", who, r.Decision, r.Activity.Votes)
		}
	}
	page := decode[api.AnswersPage](t, s.call("agent@acme", "GET", "/api/v1/answers", ""))
	said := decode[fermata.Decision](t, answer{status: 200, body: string(page.Items[0].Answer)})
	if said.Conditions.OnlyIf != "args.cents <= 500" || said.Conditions.Until.Year() != 2999 {
		t.Errorf("the agent gets %s", page.Items[0].Answer)
	}
}

// Invalid conditions are told apart from an invalid answer, and leave the resume id free.
func TestConditions_InvalidOnesAre422(t *testing.T) {
	s := open(t, nil)
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"refund","args":{"cents":500}}}`)
	path := "/api/v1/requests/" + s.openRequests("acme")[0].ID + "/decision"
	for answer, detail := range map[string]string{
		`{"verb":"approve","conditions":{"onlyIf":"` + strings.Repeat("x", 1001) + `"}}`: "onlyIf has 1001 bytes",
		`{"verb":"approve","conditions":{"onlyIf":"` + strings.Repeat("(", 900) + `"}}`:  "onlyIf: ",
		`{"verb":"approve","conditions":{"onlyIf":7}}`:                                   "onlyIf is not a text",
		`{"verb":"approve","conditions":{"until":"soon"}}`:                               "until is not a time",
		`{"verb":"approve","conditions":{"until":"99999-01-01T00:00:00Z"}}`:              "until is not a time",
		`{"verb":"approve","conditions":{"since":"2999-01-01T00:00:00Z"}}`:               "do not match the schema",
		`{"verb":"approve","conditions":[]}`:                                             "do not match the schema",
		`{"verb":"reject","reason":"no","conditions":{"until":"2999-01-01T00:00:00Z"}}`:  "only an approval",
	} {
		got := s.call("approver@acme", "POST", path, `{"resumeId":"1","answer":`+answer+`}`)
		if text, _ := got.field("detail").(string); got.status != 422 || got.field("code") != "invalid_conditions" || !strings.Contains(text, detail) {
			t.Errorf("%.60s: %+v", answer, got)
		}
	}
	if got := s.call("approver@acme", "POST", path, `{"resumeId":"1","answer":{"verb":"maybe","conditions":{"until":"soon"}}}`); got.status != 400 || got.field("code") != "bad_answer" {
		t.Errorf("an invalid answer: %+v", got)
	}
	if got := s.call("approver@acme", "POST", path, `{"resumeId":"1","answer":{"verb":"approve"}}`); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}

// A condition may contain a sensitive value, so it is masked like one.
func TestConditions_AreMaskedWithTheArguments(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte(`
default: deny
rules:
- {id: refund, when: req.tool == "refund", then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, sensitive: [/iban]}}
`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, nil, func(c *executor.Config) { c.Desk.Policy = set })
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"refund","args":{"iban":"CH93-0076"}}}`)
	id := s.openRequests("acme")[0].ID
	decided := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve","conditions":{"onlyIf":"args.iban == \"CH93-0076\""}}}`)
	if decided.status != 200 {
		t.Fatalf("%+v", decided)
	}
	got := s.call("approver@acme", "GET", "/api/v1/requests/"+id, "")
	if r := decode[api.Request](t, got); r.Decision.Conditions.OnlyIf != desk.Masked || strings.Contains(got.body, "CH93") {
		t.Errorf("%s", got.body)
	}
	if revealed := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/reveal", ""); !strings.Contains(revealed.body, `CH93-0076\"`) {
		t.Errorf("%s", revealed.body)
	}
}
