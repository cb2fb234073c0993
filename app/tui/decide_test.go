package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// expectSent checks the one decision that was sent.
func (b *harness) expectSent(id, answer string) {
	b.t.Helper()
	if len(b.sends) != 1 || b.ids[0] != id || string(b.sends[0].Answer) != answer {
		b.t.Fatalf("sent %s %s, not %s to %s", b.ids, b.sends, answer, id)
	}
}

func TestI6_ADecisionCarriesTheDigestThatWasShown(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter")
	b.sees("digest   " + dropUsers().Shown)
	b.keys("a")
	b.sees("digest   "+dropUsers().Shown, `verb: "approve"`, "decision-1", "48213")
	b.keys("y")
	b.expectSent("int_drop", `{"verb":"approve"}`)
	if got := b.sends[0]; got.Shown != dropUsers().Shown || got.ResumeID != "decision-1" {
		t.Errorf("%+v", got)
	}
	b.sees("sending")
	b.answer(fermata.Completed{Content: "the table users is gone"}, nil)
	b.sees("Approved. drop-users completed: the table users is gone", "no longer open", "Inbox 0 open")
}

// A key that is held down or pressed twice decides nothing on any screen.
func TestConfirm_SingleKeyDoesNotDecide(t *testing.T) {
	keys := []string{"enter", "esc", "tab", "space", "up", "down", "left", "right", "end", "home", "backspace", "ctrl+s", "ctrl+u"}
	for r := '!'; r <= '~'; r++ {
		keys = append(keys, string(r))
	}
	for _, first := range []api.Request{dropUsers(), refund(), review()} {
		for _, key := range keys {
			b := newHarness(t, 80, 24, first)
			b.keys("enter")
			for range 6 {
				b.keys(key)
			}
			if len(b.sends) != 0 {
				t.Errorf("%s: the key %q alone decided %s", first.ID, key, b.sends)
			}
		}
	}
}

func TestConfirm_PastedTextDecidesNothing(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter")
	b.update(tea.PasteMsg{Content: "ay"})
	b.keys("a")
	b.update(tea.PasteMsg{Content: "y"})
	if len(b.sends) != 0 {
		t.Errorf("%s", b.sends)
	}
}

func TestConfirm_OneDecisionIsSentOnce(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter", "a", "y", "y", "esc", "y")
	b.expectSent("int_drop", `{"verb":"approve"}`)
}

func TestReject_NeedsAReason(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter", "r", "enter")
	b.sees("required")
	b.types("  ")
	b.keys("enter")
	b.sees("required")
	b.types("we need <them> & more")
	b.keys("alt+enter")
	b.types("ann")
	b.keys("enter")
	b.sees("Reject?", "we need <them> & more")
	b.keys("y")
	b.expectSent("int_drop", `{"verb":"reject","reason":"  we need <them> & more\nann"}`)
}

func TestApproveEdited_SendsExactlyTheEdit(t *testing.T) {
	b := newHarness(t, 80, 24, refund())
	b.keys("enter", "e", "enter", "ctrl+u")
	b.types("40.10")
	b.keys("ctrl+s")
	b.sees("was  120.50", "is   40.10")
	b.keys("y")
	// The order does not fit into a float, and was not touched.
	b.expectSent("int_refund", `{"verb":"approve","args":{"order":9007199254740993,"amount":40.10,"note":"sorry"}}`)
}

func TestApproveEdited_WithoutEditIsRejected(t *testing.T) {
	b := newHarness(t, 80, 24, refund())
	b.keys("enter", "e", "ctrl+s")
	b.sees("nothing was edited")
	b.keys("end", "1", "backspace", "ctrl+s")
	b.sees("nothing was edited")
}

func TestApproveEdited_ErrorIsShownAtTheField(t *testing.T) {
	b := newHarness(t, 80, 24, refund())
	b.keys("enter", "e", "tab", "ctrl+u")
	b.types("900")
	b.keys("ctrl+s")
	frame := b.frame()
	_, after, _ := strings.Cut(frame, "▸ amount")
	if complaint, _, _ := strings.Cut(after, "note"); !strings.Contains(complaint, "! ") || !strings.Contains(complaint, "500") {
		t.Errorf("no error at the field:\n%s", frame)
	}
	b.keys("ctrl+u")
	b.types("12,5")
	b.keys("ctrl+s")
	b.sees("not a number")
}

func TestEdit_IsNotOfferedWhereArgumentsAreFixed(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter")
	b.seesNot("edits")
	b.keys("e")
	b.seesNot("Approve with edits")
}

// Only verbs that the answer schema allows are offered.
func TestActions_FollowTheSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"verb":{"enum":["approve","reject","escalate"]},"reason":{"type":"string"}}}`:                                                     "approve reject escalate answer",
		`{"properties":{"verb":{"$ref":"#/$defs/v"}},"$defs":{"v":{"enum":["approve"]}}}`:                                                                 "approve answer",
		`{"properties":{"action":{"enum":["approve","revise","reject"]}}}`:                                                                                "approve reject answer",
		`{"properties":{"approved":{"type":"boolean"},"approvedAt":{"type":"string"},"feedback":{"type":"string"}},"required":["approved","approvedAt"]}`: "approve reject answer",
		`{"properties":{"approved":{"type":"string"}}}`:                                                                                                   "answer",
		`{"type":"boolean"}`: "answer",
		``:                   "answer",
	} {
		r := review()
		r.AnswerSchema = json.RawMessage(schema)
		var got []string
		for _, o := range actionsOf(r, start) {
			got = append(got, verbs[o.verb].label)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s offers %s", schema, got)
		}
		r.State = "decided"
		if actionsOf(r, start) != nil {
			t.Errorf("%s: a decided request offers an action", schema)
		}
	}
}

// Verbs that the server does not allow are not offered, whatever the schema allows.
func TestActions_FollowAllowedVerbs(t *testing.T) {
	for _, test := range []struct {
		r        api.Request
		activity api.Activity
		want     string
	}{
		{refund(), api.Activity{}, "approve approve with edits reject"},
		{refund(), api.Activity{Verbs: []string{"approve", "reject", "escalate"}}, "approve reject escalate"},
		{refund(), api.Activity{Verbs: []string{"reject"}}, "reject"},
		{refund(), api.Activity{IneligibleReason: "own_request"}, ""},
		{refund(), api.Activity{IneligibleReason: "own_request", Verbs: []string{"approve", "escalate"}}, ""},
		{refund(), api.Activity{Verbs: []string{"edit", "reject", "escalate"}}, "approve with edits reject escalate"},
		{review(), api.Activity{Verbs: []string{"respond", "ask"}}, "approve reject answer"},
		{review(), api.Activity{Verbs: []string{"ask"}}, ""},
	} {
		test.r.Activity = &test.activity
		var got []string
		for _, o := range actionsOf(test.r, start) {
			got = append(got, verbs[o.verb].label)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s with %+v offers %s", test.r.ID, test.activity, got)
		}
	}
	r := refund()
	r.Activity = &api.Activity{IneligibleReason: "own_request"}
	b := newHarness(t, 80, 24, r)
	b.keys("enter")
	b.sees("You are not an eligible approver: own_request.")
}

// If more votes are needed, the request stays.
func TestSend_VoteBelowQuorumKeepsRequestOpen(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter", "a", "y")
	b.answer(fermata.NeedsInput{StateKey: "drop-users", Interrupts: []fermata.OpenInterrupt{{ID: "int_drop"}}}, nil)
	b.sees("Your vote is recorded; more votes are needed", "Inbox 1 open")
	b.seesNot("no longer open")
}

// Escalation decides nothing: the request stays open, and typed text is kept.
func TestEscalate_IsNotADecision(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Verbs: []string{"approve", "reject", "escalate"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "r")
	b.types("half a reason")
	b.keys("esc", "x", "enter")
	b.sees("required")
	b.types("ask the owner")
	b.keys("enter")
	b.sees("Escalate?", `text: "ask the owner"`)
	if len(b.acts) != 0 {
		t.Fatal("it was done before the confirmation")
	}
	b.keys("y", "y")
	if len(b.acts) != 1 || b.acts[0] != "escalate int_drop: ask the owner" || len(b.sends) != 0 {
		t.Fatalf("%q, %v", b.acts, b.sends)
	}
	b.update(sendResult{resumeID: b.actName, err: errors.New("connection reset")})
	b.sees("It is unknown whether it was done", "▸ reason", "ask the owner")
	b.keys("enter", "y")
	if len(b.acts) != 2 {
		t.Errorf("after the loss it cannot be repeated: %q", b.acts)
	}
	b.update(sendResult{resumeID: b.actName, err: &api.Problem{Status: 409, Code: "action_not_allowed", Detail: "there is no further step"}})
	b.sees("This is not allowed now: there is no further step")
	b.keys("enter", "y")
	b.update(sendResult{resumeID: b.actName})
	b.sees("Escalated", "still open", "[a] approve")
	b.keys("r")
	b.sees("half a reason")
}

func TestGate_IsAnsweredWithTheTime(t *testing.T) {
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"approvedAt":{"type":"string"},"feedback":{"type":"string"}},"required":["approved","approvedAt"]}`)
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "r")
	b.types("no")
	b.keys("enter", "y")
	b.expectSent(r.ID, `{"approved":false,"approvedAt":"2026-11-15T03:12:44Z","feedback":"no"}`)
}

// An approval that needs more than the verb opens the form with the verb filled in.
func TestApprove_RequiredFieldsOpenAForm(t *testing.T) {
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"verb":{"enum":["approve","reject"]},"ticket":{"type":"integer"}},"required":["verb","ticket"]}`)
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "a")
	b.sees("(•) approve", "ticket  (integer, required)")
	b.keys("tab")
	b.types("123456789012345678901")
	b.keys("enter", "y")
	b.expectSent(r.ID, `{"verb":"approve","ticket":123456789012345678901}`)
}

// In the form of an approval another verb could be chosen: the confirmation said "Approve?", and a
// rejection was sent.
func TestI6_ApproveFormCannotChangeTheVerb(t *testing.T) {
	r := review()
	r.AnswerSchema = json.RawMessage(`{"type":"object","properties":{"verb":{"enum":["approve","reject"]},"ticket":{"type":"integer"}},"required":["verb","ticket"]}`)
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "a", "right", "tab", "7", "enter")
	b.sees("(•) reject", `verb is "reject", not "approve": go back and choose another action`)
	b.keys("shift+tab", "left", "ctrl+s", "y")
	b.expectSent(r.ID, `{"verb":"approve","ticket":7}`)
}

func TestRejection_IsExplainedAndListReloaded(t *testing.T) {
	decided := &api.Problem{Status: 409, Code: "already_decided", Decided: &api.PriorDecision{By: "bob", At: start.Add(-time.Second), Verdict: "reject"}}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"decided":   {decided, "Another person decided first. reject by bob at 03:12:43."},
		"expired":   {&api.Problem{Status: 410, Code: "expired"}, "The deadline has passed"},
		"changed":   {&api.Problem{Status: 412, Code: "digest_mismatch"}, "The request has changed"},
		"withdrawn": {&api.Problem{Status: 410, Code: "superseded"}, "no longer waits for this"},
		"role":      {&api.Problem{Status: 403, Code: "forbidden"}, "Your role does not allow"},
		"strange":   {&api.Problem{Status: 418, Code: "teapot", Title: "Teapot", Detail: "short and stout"}, "Teapot (teapot). short and stout"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, 80, 24, dropUsers())
			b.keys("enter", "a", "y")
			polls := len(b.polls)
			b.answer(nil, test.err)
			b.sees(test.want, "action   drop-table")
			if len(b.polls) != polls+1 || b.polls[polls] != "int_drop" {
				t.Errorf("the server was not polled afterwards: %q", b.polls)
			}
		})
	}
}

func TestRejection_KeepsTypedText(t *testing.T) {
	b := newHarness(t, 140, 24, review())
	b.keys("enter", "f", "right", "right", "ctrl+s", "y")
	b.answer(nil, fmt.Errorf("wrapped: %w", &api.Problem{Status: 400, Code: "bad_answer", Fields: []api.Field{{Message: "to revise, feedback must say what should change"}}}))
	b.sees("to revise, feedback must say what should change", "(•) revise")
	b.keys("tab")
	b.types("sugar")
	b.keys("ctrl+s", "y")
	if got := b.sends[1]; string(got.Answer) != `{"action":"revise","feedback":"sugar"}` || got.ResumeID == b.sends[0].ResumeID {
		t.Errorf("%+v", got)
	}
}

func TestSend_RetryUsesTheSameResumeID(t *testing.T) {
	for _, lost := range []error{errors.New("connection reset"), &api.Problem{Status: 503, Code: "unavailable"}, &api.Problem{Status: 429, Code: "rate_limited"}} {
		b := newHarness(t, 80, 24, dropUsers())
		b.keys("enter", "a", "y")
		b.answer(nil, lost)
		b.sees("It is unknown whether the decision was recorded", "send again, applied once")
		b.keys("y")
		if len(b.sends) != 2 || b.sends[0].ResumeID != b.sends[1].ResumeID {
			t.Errorf("%v: sent were %+v", lost, b.sends)
		}
		b.answer(nil, client.ErrPending)
		b.sees("Recorded; drop-users is in progress.")
	}
}

func TestTypedText_IsKept(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers(), refund())
	b.keys("enter", "r")
	b.types("because ä")
	b.poll(dropUsers(), refund())
	b.update(pollResult{seq: b.m.pollSeq, err: errors.New("offline")})
	b.resize(40, 20)
	b.sees("because ä")
	b.keys("esc", "esc", "j", "enter", "esc", "k", "enter", "r")
	b.sees("because ä")
	decided := dropUsers()
	decided.State, decided.Decision = "decided", &api.Decision{Verdict: "approve", By: "bob", At: start}
	b.update(pollResult{seq: b.m.pollSeq, items: []api.Request{refund()}, open: &decided})
	b.sees("because ä", "approve by bob", "can no longer be sent")
	b.keys("enter")
	b.sees("because ä") // and it cannot be sent
	b.keys("ctrl+c")
	b.sees("Quit?", "You typed text")
	b.keys("esc")
	b.sees("because ä")
	if b.quit {
		t.Error("it ended anyway")
	}
	b.keys("ctrl+c", "y")
	if !b.quit {
		t.Error("it does not end")
	}
}

func TestQuit_WithoutUnsavedTextIsImmediate(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"enter", "q"}, {"enter", "r", "x", "backspace", "ctrl+c"}} {
		b := newHarness(t, 80, 24, dropUsers())
		b.keys(keys...)
		if !b.quit {
			t.Errorf("%s does not end it", keys)
		}
	}
}
