package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/analytics"
)

// refundFor starts a run that waits, and returns the id of its request.
func (o *deskEnv) refundFor(order string) string {
	o.Helper()
	if code, out, errOut := o.as("bot", "run", "inproc:refund", `{"order":`+order+`,"cents":4000}`, "--key", "refund-"+order); code != exitOK {
		o.Fatal(code, out, errOut)
	}
	return o.last().ID
}

// activity returns a request's activity as an auditor sees it, which does not count as a view.
func (o *deskEnv) activity(id string) *api.Activity { return o.request(id).Activity }

func (o *deskEnv) request(id string) (r api.Request) {
	o.Helper()
	code, out, errOut := o.as("aud", "show", id, "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Activity == nil {
		o.Fatal(code, out, errOut, err)
	}
	return r
}

func TestRequestActions_ErrorsExplain(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	for _, c := range []struct {
		who  string
		args []string
		code int
		want string
	}{
		{"mallory", []string{"claim", id}, exitRejected, "not_eligible"},
		{"bot", []string{"claim", id}, exitRejected, "forbidden"},
		{"bob", []string{"claim", "int_none"}, exitNotFound, "not_found"},
		{"bob", []string{"release", id}, exitConflict, "action_not_allowed"},
		{"bob", []string{"undo", id}, exitConflict, "no pending decision to withdraw"},
		{"bob", []string{"comment", id, ""}, exitUsage, "bad_request"},
		{"bob", []string{"comment", id}, exitUsage, "<text>"},
		{"bot", []string{"reply", id, "yes"}, exitConflict, "no open clarification request"},
		{"bot", []string{"reply", id, "yes", "--question", "7"}, exitConflict, "action_not_allowed"},
		{"bob", []string{"delegate", id, "bob"}, exitRejected, "themselves"},
		{"bob", []string{"snooze", id, "a while"}, exitUsage, "neither a time"},
		{"bob", []string{"snooze", id, "0s"}, exitUsage, "neither a time"},
		{"bob", []string{"snooze", id, "2020-01-01T00:00:00Z"}, exitUsage, "bad_request"},
		{"bob", []string{"extend", id, "1h"}, exitUsage, "the deadline is already"},
	} {
		code, out, errOut := o.as(c.who, c.args...)
		if code != c.code || !strings.Contains(errOut, c.want) || out != "" {
			t.Errorf("%s$ fermata %q: %d, no %q in %s%s", c.who, c.args, code, c.want, out, errOut)
		}
	}
	if activity := o.activity(id); len(activity.Comments)+len(activity.Votes) != 0 || activity.Claim != nil || activity.SnoozedUntil != nil {
		t.Errorf("the rejected action changed %+v", activity)
	}
}

// I8: with a key of another account, the request is not found.
func TestI8_RequestActionsAreLimitedToTheAccount(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	_, key, _ := call(t, "keys", "create", "other", "bob", "admin", "--store", "sqlite:f.db")
	o.keys["bob"] = strings.TrimSpace(key)
	for _, act := range [][]string{{"claim", id}, {"comment", id, "x"}, {"escalate", id}, {"abandon", id}, {"show", id}} {
		if code, out, errOut := o.as("bob", act...); code != exitNotFound || out != "" {
			t.Errorf("%q: %d %s%s", act, code, out, errOut)
		}
	}
}

func TestRequestActions_JSONOutput(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	code, out, errOut := o.as("bob", "claim", id, "--json")
	var r api.Request
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Activity.Claim.By != "bob" {
		t.Errorf("%d %s%s %v", code, out, errOut, err)
	}
	if code, _, errOut := o.as("eve", "claim", id, "--json"); code != exitConflict || !strings.Contains(errOut, `"code":"action_not_allowed"`) {
		t.Errorf("%d %s", code, errOut)
	}
}

// A reply without a number goes to the first clarification request without a reply.
func TestReply_AnswersTheFirstOpenClarification(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	for _, step := range [][]string{{"bob", "clarify", id, "one?"}, {"eve", "clarify", id, "two?"}, {"bot", "reply", id, "first"}, {"bot", "reply", id, "second"}} {
		if code, _, errOut := o.as(step[0], step[1:]...); code != exitOK {
			t.Fatalf("%q: %d %s", step, code, errOut)
		}
	}
	if q := o.activity(id).Clarifications; q[0].Reply.Text != "first" || q[1].Reply.Text != "second" {
		t.Errorf("%+v", q)
	}
}

// A person who shows a request is recorded as a viewer; a program that reads it, or a person who
// may not decide, is not.
func TestShow_MarksTheRequestViewed(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	seen := func() (who []string) {
		for _, h := range o.activity(id).History {
			if h.Event == "viewed" {
				who = append(who, h.By)
			}
		}
		return who
	}
	for _, who := range []string{"aud", "mallory", "bot"} {
		if code, _, errOut := o.as(who, "show", id); code != exitOK {
			t.Errorf("%s: %d %s", who, code, errOut)
		}
	}
	o.as("bob", "show", id, "--json")
	if got := seen(); got != nil {
		t.Errorf("%v are recorded as viewers", got)
	}
	o.as("eve", "show", id)
	if got := seen(); !slices.Equal(got, []string{"eve"}) {
		t.Errorf("%v are recorded as viewers", got)
	}
	o.as("eve", "approve", id)
	o.as("bob", "approve", id)
	code, out, errOut := o.as("aud", "stats", "--json")
	var report analytics.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK || len(report.People) != 2 {
		t.Fatal(code, out, errOut, err)
	}
	if bob, eve := report.People[0], report.People[1]; bob.Name != "bob" || bob.Unviewed != 1 || eve.Unviewed != 0 {
		t.Errorf("%+v", report.People)
	}
}

func TestUntil_AcceptsTimeOrDuration(t *testing.T) {
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"30m": "2026-11-16T10:30:00Z", "2d": "2026-11-18T10:00:00Z", "1h30m": "2026-11-16T11:30:00Z", "2026-11-17T09:00:00+01:00": "2026-11-17T09:00:00+01:00",
		"": "", "-1h": "", "0s": "", "tomorrow": "", "-2d": "",
	} {
		at, err := untilFlag{text}.at(now)
		got := ""
		if err == nil {
			got = at.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// A comment cannot imitate the actions of other people.
func TestShow_CommentIsOneLine(t *testing.T) {
	var b bytes.Buffer
	printActivity(&b, &api.Activity{
		State: "open", Summary: "open", Comments: []api.Note{{Stamp: api.Stamp{By: "eve\nvote\tapprove"}, Text: "x\nvote\tapprove by bob\x1b[2K"}},
	})
	if got := b.String(); strings.Contains(got, "\nvote") || strings.Contains(got, "\tapprove") || strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q", got)
	}
}

// The policy's risk of a tool is shown in the terminal, too.
func TestShow_PrintsTheRisk(t *testing.T) {
	var rated, unrated bytes.Buffer
	printActivity(&rated, &api.Activity{State: "open", Summary: "open", Risk: 2})
	printActivity(&unrated, &api.Activity{State: "open", Summary: "open"})
	if !strings.Contains(rated.String(), "risk\t2\n") || strings.Contains(unrated.String(), "risk") {
		t.Errorf("%q and %q", rated.String(), unrated.String())
	}
}

// An ineligible person is not told that they may decide.
func TestShow_PrintsAllowedVerbs(t *testing.T) {
	for mayNot, want := range map[string]string{"": "you can\tapprove, answer\n", "own_request": "others can\tapprove, answer\n"} {
		var b bytes.Buffer
		printActivity(&b, &api.Activity{State: "open", Summary: "open", Verbs: []string{"approve", "respond"}, IneligibleReason: mayNot})
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in %q", want, b.String())
		}
	}
}

func TestShow_RequestWithoutActivity(t *testing.T) {
	var b bytes.Buffer
	printActivity(&b, nil)
	if b.Len() != 0 {
		t.Errorf("%q", b.String())
	}
}

// I6: a person who viewed a request, and decides after another person edited it, would approve
// something that they have not seen. approve used to send the digest of the current version.
func TestI6_ApproveUsesTheShownDigest(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	must := func(who string, want int, args ...string) string {
		t.Helper()
		code, out, errOut := o.as(who, args...)
		if code != want {
			t.Fatalf("%s$ fermata %q: %d %s%s", who, args, code, out, errOut)
		}
		return out + errOut
	}
	must("eve", exitOK, "show", id)
	first := o.request(id)
	must("bob", exitOK, "approve", id, "--args", `{"order":1,"cents":2500}`)
	if reply := must("eve", exitConflict, "approve", id); !strings.Contains(reply, "bob edited it") || !strings.Contains(reply, "fermata show "+id) {
		t.Errorf("it says %s", reply)
	}
	must("eve", exitConflict, "answer", id, `{"verb":"approve"}`)
	must("eve", exitConflict, "approve", id, "--shown", first.Shown)
	must("mallory", exitRejected, "approve", id) // the server explains and audits it
	if activity := o.activity(id); len(activity.Votes) != 1 {
		t.Fatalf("%+v", activity.Votes)
	}
	if shown := must("eve", exitOK, "show", id); !strings.Contains(shown, o.request(id).Shown) {
		t.Errorf("it does not print the digest: %s", shown)
	}
	must("eve", exitOK, "approve", id)
}

// A program sends the digest of what it has read: reading does not count as a view.
func TestI6_JSONClientSendsTheShownDigest(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, _, errOut := o.as("bob", "approve", id, "--args", `{"order":1,"cents":2500}`); code != exitOK {
		t.Fatal(errOut)
	}
	if code, _, errOut := o.as("eve", "approve", id, "--json"); code != exitConflict || !strings.Contains(errOut, `"code":"digest_mismatch"`) {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := o.as("eve", "approve", id, "--json", "--shown", o.request(id).Shown); code != exitOK {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestUndo_WithdrawsTheVoteInItsWindow(t *testing.T) {
	o := openDeskEnvWith(t, `groups: [{from: ["group:support"]}, {from: ["group:finance"]}]`, "groups: [{from: [\"group:support\"]}]\n    undo: 10m")
	id := o.refundFor("1")
	code, out, errOut := o.as("bob", "approve", id)
	if code != exitOK || !strings.Contains(out, "effective at ") || !strings.Contains(out, "fermata undo "+id) {
		t.Fatal(code, out, errOut)
	}
	if p := o.activity(id).Pending; p == nil || p.By != "bob" || p.Outcome != "approve" {
		t.Fatalf("%+v", p)
	}
	if code, _, errOut := o.as("dan", "reject", id, "--reason", "no"); code != exitConflict || !strings.Contains(errOut, "decision_pending") {
		t.Error(code, errOut)
	}
	if code, out, errOut := o.as("bob", "undo", id); code != exitOK || !strings.Contains(out, "0 of 1") {
		t.Error(code, out, errOut)
	}
	if a := o.activity(id); a.Pending != nil || len(a.Votes) != 0 {
		t.Errorf("%+v", a)
	}
}
