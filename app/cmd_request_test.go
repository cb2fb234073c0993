package app

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/cli"
)

// refundFor starts a run that waits, and returns the id of its request.
func (o *deskEnv) refundFor(order string) string {
	o.Helper()
	if code, out, errOut := o.as("bot", "run", "inproc:refund", `{"order":`+order+`,"cents":4000}`, "--key", "refund-"+order); code != cli.ExitOK {
		o.Fatal(code, out, errOut)
	}
	return o.last().ID
}

// activity returns a request's activity as an auditor sees it, which does not count as a view.
func (o *deskEnv) activity(id string) *api.Activity { return o.request(id).Activity }

func (o *deskEnv) request(id string) (r api.Request) {
	o.Helper()
	code, out, errOut := o.as("aud", "show", id, "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK || r.Activity == nil {
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
		{"mallory", []string{"claim", id}, cli.ExitRejected, "not_eligible"},
		{"bot", []string{"claim", id}, cli.ExitRejected, "forbidden"},
		{"bob", []string{"claim", "int_none"}, cli.ExitNotFound, "not_found"},
		{"bob", []string{"release", id}, cli.ExitConflict, "action_not_allowed"},
		{"bob", []string{"undo", id}, cli.ExitConflict, "no pending decision to withdraw"},
		{"bob", []string{"comment", id, ""}, cli.ExitUsage, "bad_request"},
		{"bob", []string{"comment", id}, cli.ExitUsage, "<text>"},
		{"bot", []string{"reply", id, "yes"}, cli.ExitConflict, "no open clarification request"},
		{"bot", []string{"reply", id, "yes", "--question", "7"}, cli.ExitConflict, "action_not_allowed"},
		{"bob", []string{"delegate", id, "bob"}, cli.ExitConflict, "themselves"},
		{"bob", []string{"snooze", id, "a while"}, cli.ExitUsage, "neither a time"},
		{"bob", []string{"snooze", id, "0s"}, cli.ExitUsage, "neither a time"},
		{"bob", []string{"snooze", id, "2020-01-01T00:00:00Z"}, cli.ExitUsage, "bad_request"},
		{"bob", []string{"extend", id, "1h"}, cli.ExitUsage, "the deadline is already"},
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
		if code, out, errOut := o.as("bob", act...); code != cli.ExitNotFound || out != "" {
			t.Errorf("%q: %d %s%s", act, code, out, errOut)
		}
	}
}

func TestRequestActions_JSONOutput(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	code, out, errOut := o.as("bob", "claim", id, "--json")
	var r api.Request
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK || r.Activity.Claim.By != "bob" {
		t.Errorf("%d %s%s %v", code, out, errOut, err)
	}
	if code, _, errOut := o.as("eve", "claim", id, "--json"); code != cli.ExitConflict || !strings.Contains(errOut, `"code":"action_not_allowed"`) {
		t.Errorf("%d %s", code, errOut)
	}
}

// A reply without a number goes to the first clarification request without a reply.
func TestReply_AnswersTheFirstOpenClarification(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	for _, step := range [][]string{{"bob", "clarify", id, "one?"}, {"eve", "clarify", id, "two?"}, {"bot", "reply", id, "first"}, {"bot", "reply", id, "second"}} {
		if code, _, errOut := o.as(step[0], step[1:]...); code != cli.ExitOK {
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
		if code, _, errOut := o.as(who, "show", id); code != cli.ExitOK {
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
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.ExitOK || len(report.People) != 2 {
		t.Fatal(code, out, errOut, err)
	}
	if bob, eve := report.People[0], report.People[1]; bob.Name != "bob" || bob.Unviewed != 1 || eve.Unviewed != 0 {
		t.Errorf("%+v", report.People)
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
	must("eve", cli.ExitOK, "show", id)
	first := o.request(id)
	must("bob", cli.ExitOK, "approve", id, "--args", `{"order":1,"cents":2500}`)
	if reply := must("eve", cli.ExitConflict, "approve", id); !strings.Contains(reply, "bob edited it") || !strings.Contains(reply, "fermata show "+id) {
		t.Errorf("it says %s", reply)
	}
	must("eve", cli.ExitConflict, "answer", id, `{"verb":"approve"}`)
	must("eve", cli.ExitConflict, "approve", id, "--shown", first.Shown)
	must("mallory", cli.ExitRejected, "approve", id) // the server explains and audits it
	if activity := o.activity(id); len(activity.Votes) != 1 {
		t.Fatalf("%+v", activity.Votes)
	}
	if shown := must("eve", cli.ExitOK, "show", id); !strings.Contains(shown, o.request(id).Shown) {
		t.Errorf("it does not print the digest: %s", shown)
	}
	must("eve", cli.ExitOK, "approve", id)
}

// A program sends the digest of what it has read: reading does not count as a view.
func TestI6_JSONClientSendsTheShownDigest(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, _, errOut := o.as("bob", "approve", id, "--args", `{"order":1,"cents":2500}`); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	if code, _, errOut := o.as("eve", "approve", id, "--json"); code != cli.ExitConflict || !strings.Contains(errOut, `"code":"digest_mismatch"`) {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := o.as("eve", "approve", id, "--json", "--shown", o.request(id).Shown); code != cli.ExitOK {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestUndo_WithdrawsTheVoteInItsWindow(t *testing.T) {
	o := openDeskEnvWith(t, `groups: [{from: ["group:support"]}, {from: ["group:finance"]}]`, "groups: [{from: [\"group:support\"]}]\n    undo: 10m")
	id := o.refundFor("1")
	code, out, errOut := o.as("bob", "approve", id)
	if code != cli.ExitOK || !strings.Contains(out, "effective at ") || !strings.Contains(out, "fermata undo "+id) {
		t.Fatal(code, out, errOut)
	}
	if p := o.activity(id).Pending; p == nil || p.By != "bob" || p.Outcome != "approve" {
		t.Fatalf("%+v", p)
	}
	if code, _, errOut := o.as("dan", "reject", id, "--reason", "no"); code != cli.ExitConflict || !strings.Contains(errOut, "decision_pending") {
		t.Error(code, errOut)
	}
	if code, out, errOut := o.as("bob", "undo", id); code != cli.ExitOK || !strings.Contains(out, "0 of 1") {
		t.Error(code, out, errOut)
	}
	if a := o.activity(id); a.Pending != nil || len(a.Votes) != 0 {
		t.Errorf("%+v", a)
	}
}
