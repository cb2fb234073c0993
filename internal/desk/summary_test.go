package desk_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestSummary_ShowsState(t *testing.T) {
	w := open(t, specNeeding(group(1, "group:dba"), group(1, "group:finops")))
	says := func(want string) {
		t.Helper()
		if got := w.request.Summary(w.now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("0 of 2, needs 1 × dba, needs 1 × finops, 24 h left")
	w.advanceTo(20*hour + 30*minute)
	w.apply(desk.Claim{From: w.from("ann")})
	w.apply(desk.Approve{From: w.from("bob")})
	says("claimed by ann, 1 of 2, needs 1 × finops, 3 h left")
	w.apply(desk.AskClarification{From: w.from("ann"), Question: "why?"})
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(21 * hour)})
	says("snoozed until 2026-11-17 07:00 UTC, claimed by ann, ann waits for clarification, 1 of 2, needs 1 × finops, 3 h left")
	w.advanceTo(24*hour - 30*minute)
	says("claimed by ann, ann waits for clarification, 1 of 2, needs 1 × finops, 30 min left")
	w.apply(desk.Approve{From: w.from("fay")})
	says("approved by bob, fay")

	w = open(t, actionSpec())
	w.now = w.request.Deadline
	says("0 of 1, needs 1 × dba, deadline passed")
	w.apply(desk.Tick{})
	says("expired: stale")
}

func TestDiff_ListsDifferences(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"nothing":             {`{"a":1,"b":[1,2]}`, `{ "b":[1,2], "a":1 }`, ``},
		"a value":             {`{"limit":100}`, `{"limit":50}`, `/limit: 100 → 50`},
		"deep":                {`{"a":{"b/c":[1,{"~":2}]}}`, `{"a":{"b/c":[1,{"~":3}]}}`, `/a/b~1c/1/~0: 2 → 3`},
		"one more":            {`{}`, `{"force":true}`, `/force:  → true`},
		"one less":            {`{"force":null}`, `{}`, `/force: null → `},
		"null is not missing": {`{"a":1}`, `{"a":null}`, `/a: 1 → null`},
		"types":               {`{"a":1}`, `{"a":"1"}`, `/a: 1 → "1"`},
		"large numbers":       {`{"a":9007199254740993}`, `{"a":9007199254740992}`, `/a: 9007199254740993 → 9007199254740992`},
		"a longer list":       {`{"a":[1]}`, `{"a":[1,2]}`, `/a: [1] → [1,2]`},
		"something else":      {`{}`, `[]`, `: {} → []`},
		"several, in order":   {`{"b":1,"a":1}`, `{"a":2,"b":2}`, `/a: 1 → 2; /b: 1 → 2`},
		"no escapes":          {`{"q":"a<b"}`, `{"q":"a&b"}`, `/q: "a<b" → "a&b"`},
	} {
		t.Run(name, func(t *testing.T) {
			differences, err := desk.Diff(json.RawMessage(test.before), json.RawMessage(test.after))
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, d := range differences {
				words = append(words, fmt.Sprintf("%s: %s → %s", d.Pointer, d.Before, d.After))
			}
			if got := strings.Join(words, "; "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckEligible_ReportsReason(t *testing.T) {
	w := open(t, actionSpec())
	for person, code := range map[string]string{"ann": "", "rita": "excluded", "eve": "not_member"} {
		if err := desk.CheckEligible(w.request, person, w.members); desk.Code(err) != code {
			t.Errorf("%s: %v, want %q", person, err, code)
		}
		if verbs, err := desk.AllowedVerbs(w.request, person, w.members); desk.Code(err) != code || (len(verbs) > 0) != (code == "") {
			t.Errorf("%s: %v, %v, want %q", person, verbs, err, code)
		}
	}
}

// The golden document of version 1. It must always be readable.
func TestDecode_Version1(t *testing.T) {
	const file = "testdata/request.v1.json"
	if *update {
		if err := os.WriteFile(file, fullRequest(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := desk.Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	if again := indented(t, r); string(again) != string(golden) {
		t.Errorf("it is encoded differently now:\n%s", again)
	}
	if now := fullRequest(t); string(now) != string(golden) {
		t.Errorf("the same commands make another document now:\n%s", now)
	}
}

// fullRequest is a document in which every member is set.
func fullRequest(t *testing.T) []byte {
	t.Helper()
	ask := specNeeding(requirement.Group{From: []string{"group:dba"}, Count: 2, Widen: []string{"group:managers"}})
	ask.Route = followTheSunRoute()
	ask.Requirement.Deadline, ask.Requirement.MinAuth, ask.Requirement.DenyCount = dur(48*hour), requirement.AuthSSO, 2
	ask.Subject.Risk, ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = 3, "p1", []string{"bulk-delete"}, "destructive"
	w := open(t, ask)
	w.apply(desk.RecordDelivery{Target: "slack:emea", At: w.now})
	w.apply(desk.View{From: w.from("ann")})
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.apply(desk.Claim{From: w.from("bob")})
	w.apply(desk.Comment{From: w.from("bob"), Text: "hm"})
	w.apply(desk.AskClarification{From: w.from("bob"), Question: "why?"})
	w.apply(desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "so"})
	w.apply(desk.Delegate{From: w.from("bob"), To: "cleo"})
	w.apply(desk.Escalate{From: w.from("bob")})
	w.apply(desk.Reject{From: w.from("bob"), Codes: []string{"not_now"}, Reason: "not today", Retry: true})
	w.apply(desk.Approve{From: w.from("cleo")})
	w.apply(desk.Snooze{From: w.from("cleo"), Until: w.now.Add(hour)})
	w.apply(desk.Withdraw{From: w.from("rita"), Reason: "never mind"})
	return indented(t, w.request)
}

func indented(t *testing.T, r desk.Request) []byte {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestDecode_UnknownFieldsAreRefused(t *testing.T) {
	good, err := open(t, actionSpec()).request.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, replaced, want string }{
		"another version":  {`"v":1`, `"v":2`, "version 2"},
		"another shape":    {`"v":1`, `"v":2,"hold":true`, "version 2"},
		"no version":       {`"v":1,`, ``, "version 0"},
		"an unknown field": {`"v":1`, `"v":1,"hold":true`, "hold"},
		"a field twice":    {`"state":"open"`, `"state":"open","state":"answered"`, "state"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(string(good), test.old, test.replaced, 1)
			if _, err := desk.Decode([]byte(bad)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want an error that contains %q", err, test.want)
			}
		})
	}
}

func TestApply_UnknownVersionIsRefused(t *testing.T) {
	if _, err := desk.Apply(desk.Request{}, desk.Tick{}, desk.Env{Now: start}); err == nil || !strings.Contains(err.Error(), "version 0") {
		t.Errorf("Apply to an empty request: %v", err)
	}
	if _, err := desk.Apply(open(t, actionSpec()).request, nil, desk.Env{Now: start}); desk.Code(err) != "invalid" {
		t.Errorf("Apply without a command: %v", err)
	}
}

func TestNew_WithoutRequirementOnePersonDecides(t *testing.T) {
	ask := actionSpec()
	ask.Requirement = requirement.Requirement{}
	w := open(t, ask)
	w.apply(desk.ApproveEdited{From: w.from("eve"), Args: other})
	w.mustEnd(desk.OutcomeApproved, "eve")

	ask.Requirement = requirement.Requirement{Exclude: []requirement.Duty{requirement.DutyRequester}}
	w = open(t, ask)
	// it sets a requirement but no editable fields
	w.mustRefuse("not_allowed", desk.ApproveEdited{From: w.from("eve"), Args: other})
	w.mustRefuse("excluded", desk.Approve{From: w.from("rita")})
	w.apply(desk.Approve{From: w.from("eve")})
	w.mustEnd(desk.OutcomeApproved, "eve")
}

func TestNew_IncompleteSpecIsRefused(t *testing.T) {
	for name, slip := range map[string]func(a *desk.RequestSpec){
		"no id":                       func(a *desk.RequestSpec) { a.ID = "" },
		"no kind":                     func(a *desk.RequestSpec) { a.Subject.Kind = "" },
		"no digest of the action":     func(a *desk.RequestSpec) { a.Subject.ActionDigest = "" },
		"an empty group":              func(a *desk.RequestSpec) { a.Requirement.Groups = []requirement.Group{{}} },
		"an unknown principal":        func(a *desk.RequestSpec) { a.Requirement.Groups[0].From = []string{"dba"} },
		"too many":                    func(a *desk.RequestSpec) { a.Requirement.Groups[0].Count = 51 },
		"an unknown duty":             func(a *desk.RequestSpec) { a.Requirement.Exclude = []requirement.Duty{"janitor"} },
		"an unknown verb":             func(a *desk.RequestSpec) { a.Requirement.Verbs = []requirement.Verb{"bless"} },
		"an unknown strength":         func(a *desk.RequestSpec) { a.Requirement.MinAuth = "pinky swear" },
		"an invalid pointer":          func(a *desk.RequestSpec) { a.Requirement.Editable = []string{"limit"} },
		"approve on timeout":          func(a *desk.RequestSpec) { a.Requirement.OnTimeout = "approve" },
		"escalate without a deadline": func(a *desk.RequestSpec) { a.Requirement.OnTimeout = requirement.EscalateOnTimeout },
		"a route without expiry":      func(a *desk.RequestSpec) { a.Route.Steps = []desk.Step{{Notify: []string{"inbox"}}} },
		"invalid arguments":           func(a *desk.RequestSpec) { a.Args = json.RawMessage(`{`) },
	} {
		t.Run(name, func(t *testing.T) {
			ask := actionSpec()
			slip(&ask)
			if _, err := desk.New(ask, desk.Env{Now: start}); desk.Code(err) != "invalid" {
				t.Errorf("New: %v", err)
			}
		})
	}
}
