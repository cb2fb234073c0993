package desk_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/desk"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestSummary_SaysWhereItStands(t *testing.T) {
	w := open(t, needing(group(1, "group:dba"), group(1, "group:finops")))
	says := func(want string) {
		t.Helper()
		if got := w.request.Summary(w.now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says("0 of 2, needs 1 × dba, needs 1 × finops, 24 h left")
	w.at(20*hour + 30*minute)
	w.do(desk.Claim{From: w.by("ann")})
	w.do(desk.Approve{From: w.by("bob")})
	says("claimed by ann, 1 of 2, needs 1 × finops, 3 h left")
	w.do(desk.AskBack{From: w.by("ann"), Question: "why?"})
	w.do(desk.Snooze{From: w.by("ann"), Until: start.Add(21 * hour)})
	says("snoozed until 2026-11-17 07:00 UTC, claimed by ann, ann waits for an answer of the run, 1 of 2, needs 1 × finops, 3 h left")
	w.at(24*hour - 30*minute)
	says("claimed by ann, ann waits for an answer of the run, 1 of 2, needs 1 × finops, 30 min left")
	w.do(desk.Approve{From: w.by("fay")})
	says("approved by bob, fay")

	w = open(t, action())
	w.now = w.request.Deadline
	says("0 of 1, needs 1 × dba, out of time")
	w.do(desk.Tick{})
	says("expired: stale")
}

func TestDiff_SaysWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"nothing":           {`{"a":1,"b":[1,2]}`, `{ "b":[1,2], "a":1 }`, ``},
		"a value":           {`{"limit":100}`, `{"limit":50}`, `/limit: 100 → 50`},
		"deep":              {`{"a":{"b/c":[1,{"~":2}]}}`, `{"a":{"b/c":[1,{"~":3}]}}`, `/a/b~1c/1/~0: 2 → 3`},
		"one more":          {`{}`, `{"force":true}`, `/force:  → true`},
		"one less":          {`{"force":null}`, `{}`, `/force: null → `},
		"null is not gone":  {`{"a":1}`, `{"a":null}`, `/a: 1 → null`},
		"types":             {`{"a":1}`, `{"a":"1"}`, `/a: 1 → "1"`},
		"large numbers":     {`{"a":9007199254740993}`, `{"a":9007199254740992}`, `/a: 9007199254740993 → 9007199254740992`},
		"a longer list":     {`{"a":[1]}`, `{"a":[1,2]}`, `/a: [1] → [1,2]`},
		"something else":    {`{}`, `[]`, `: {} → []`},
		"several, in order": {`{"b":1,"a":1}`, `{"a":2,"b":2}`, `/a: 1 → 2; /b: 1 → 2`},
		"no escapes":        {`{"q":"a<b"}`, `{"q":"a&b"}`, `/q: "a<b" → "a&b"`},
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

func TestCode_EveryRefusalHasOneOfItsOwn(t *testing.T) {
	seen := map[string]error{}
	for _, err := range []error{
		desk.ErrAnswered, desk.ErrExpired, desk.ErrWithdrawn, desk.ErrNotHuman, desk.ErrNotMember, desk.ErrExcluded, desk.ErrWeakAuth,
		desk.ErrNotAllowed, desk.ErrNotYours, desk.ErrClaimed, desk.ErrNotClaimed, desk.ErrNoQuestion, desk.ErrNoStep, desk.ErrTime, desk.ErrText,
		desk.ErrTooMany, desk.ErrValue, desk.ErrEdit, desk.ErrDenied, desk.ErrChanged, desk.ErrInvalid, desk.ErrDirectory, desk.ErrPolicy,
	} {
		code := desk.Code(&desk.RefusedError{Err: err})
		if seen[code] != nil || code == "" {
			t.Errorf("%v and %v have the code %q", err, seen[code], code)
		}
		seen[code] = err
	}
	if desk.Code(os.ErrNotExist) != "" || desk.Code(nil) != "" {
		t.Error("an error that is none of ours has a code")
	}
}

func TestMayDecide_SaysWhoWouldCount(t *testing.T) {
	w := open(t, action())
	for person, code := range map[string]string{"ann": "", "rita": "excluded", "eve": "not_member"} {
		if err := desk.MayDecide(w.request, person, w.members); desk.Code(err) != code {
			t.Errorf("%s: %v, want %q", person, err, code)
		}
		if verbs, err := desk.MayDo(w.request, person, w.members); desk.Code(err) != code || (len(verbs) > 0) != (code == "") {
			t.Errorf("%s: %v, %v, want %q", person, verbs, err, code)
		}
	}
}

// The document of version 1, as it was first written. It must be readable for ever.
func TestDecode_Version1(t *testing.T) {
	const file = "testdata/request.v1.json"
	if *update {
		if err := os.WriteFile(file, rich(t), 0o644); err != nil {
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
		t.Errorf("it is written differently now:\n%s", again)
	}
	if now := rich(t); string(now) != string(golden) {
		t.Errorf("the same story makes another document now:\n%s", now)
	}
}

// rich is a document with something in every member.
func rich(t *testing.T) []byte {
	t.Helper()
	ask := needing(desk.Group{From: []string{"group:dba"}, Count: 2, Widen: []string{"group:managers"}})
	ask.Route = sun()
	ask.Need.Deadline, ask.Need.MinAuth, ask.Need.Denials = d(48*hour), desk.AuthSSO, 2
	ask.Asked.Risk, ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = 3, "p1", []string{"bulk-delete"}, "destructive"
	w := open(t, ask)
	w.do(desk.Delivered{Target: "slack:emea", At: w.now})
	w.do(desk.View{From: w.by("ann")})
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.do(desk.Claim{From: w.by("bob")})
	w.do(desk.Comment{From: w.by("bob"), Text: "hm"})
	w.do(desk.AskBack{From: w.by("bob"), Question: "why?"})
	w.do(desk.AnswerBack{From: w.run(), Question: 1, Answer: "so"})
	w.do(desk.Delegate{From: w.by("bob"), To: "cleo"})
	w.do(desk.Escalate{From: w.by("bob")})
	w.do(desk.Reject{From: w.by("bob"), Codes: []string{"not_now"}, Reason: "not today", Retry: true})
	w.do(desk.Approve{From: w.by("cleo")})
	w.do(desk.Snooze{From: w.by("cleo"), Until: w.now.Add(hour)})
	w.do(desk.Withdraw{From: w.by("rita"), Reason: "never mind"})
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

func TestDecode_RefusesWhatItWouldLose(t *testing.T) {
	good, err := open(t, action()).request.Encode()
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
				t.Errorf("%v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestApply_RefusesWhatIsNoDocument(t *testing.T) {
	if _, err := desk.Apply(desk.Request{}, desk.Tick{}, desk.Env{Now: start}); err == nil || !strings.Contains(err.Error(), "version 0") {
		t.Errorf("Apply to nothing: %v", err)
	}
	if _, err := desk.Apply(open(t, action()).request, nil, desk.Env{Now: start}); desk.Code(err) != "invalid" {
		t.Errorf("Apply nothing: %v", err)
	}
}

func TestNew_WithoutARequirementAnyOnePersonDecides(t *testing.T) {
	ask := action()
	ask.Need = desk.Requirement{}
	w := open(t, ask)
	w.do(desk.ApproveEdited{From: w.by("eve"), Args: other})
	w.ended(desk.Approved, "eve")

	ask.Need = desk.Requirement{Exclude: []desk.Duty{desk.Requester}}
	w = open(t, ask)
	w.refused("not_allowed", desk.ApproveEdited{From: w.by("eve"), Args: other}) // it says what is required, and nothing of edits
	w.refused("excluded", desk.Approve{From: w.by("rita")})
	w.do(desk.Approve{From: w.by("eve")})
	w.ended(desk.Approved, "eve")
}

func TestNew_RefusesWhatIsIncomplete(t *testing.T) {
	for name, slip := range map[string]func(a *desk.Ask){
		"no id":                   func(a *desk.Ask) { a.ID = "" },
		"no kind":                 func(a *desk.Ask) { a.Asked.Kind = "" },
		"no digest of the action": func(a *desk.Ask) { a.Asked.Digest = "" },
		"a group of nobody":       func(a *desk.Ask) { a.Need.Groups = []desk.Group{{}} },
		"an unknown who":          func(a *desk.Ask) { a.Need.Groups[0].From = []string{"dba"} },
		"too many":                func(a *desk.Ask) { a.Need.Groups[0].Count = 51 },
		"an unknown duty":         func(a *desk.Ask) { a.Need.Exclude = []desk.Duty{"janitor"} },
		"an unknown verb":         func(a *desk.Ask) { a.Need.Verbs = []desk.Verb{"bless"} },
		"an unknown strength":     func(a *desk.Ask) { a.Need.MinAuth = "pinky swear" },
		"no pointer":              func(a *desk.Ask) { a.Need.Editable = []string{"limit"} },
		"approve on timeout":      func(a *desk.Ask) { a.Need.OnTimeout = "approve" },
		"escalate, but not when":  func(a *desk.Ask) { a.Need.OnTimeout = desk.EscalateOnTimeout },
		"a route without an end":  func(a *desk.Ask) { a.Route.Steps = []desk.Step{{Notify: []string{"inbox"}}} },
		"arguments that are none": func(a *desk.Ask) { a.Args = json.RawMessage(`{`) },
	} {
		t.Run(name, func(t *testing.T) {
			ask := action()
			slip(&ask)
			if _, err := desk.New(ask, desk.Env{Now: start}); desk.Code(err) != "invalid" {
				t.Errorf("New: %v", err)
			}
		})
	}
}
