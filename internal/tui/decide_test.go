package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
		for _, o := range actionsOf(r, "ann", start) {
			got = append(got, verbs[o.verb].label)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s offers %s", schema, got)
		}
		r.State = "decided"
		if actionsOf(r, "ann", start) != nil {
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
		{refund(), api.Activity{}, "approve approve with edits reject comment"},
		{refund(), api.Activity{Verbs: []string{"approve", "reject", "escalate"}}, "approve reject comment escalate"},
		{refund(), api.Activity{Verbs: []string{"reject"}}, "reject comment"},
		{refund(), api.Activity{IneligibleReason: "excluded"}, "comment"},
		{refund(), api.Activity{IneligibleReason: "own_request", Verbs: []string{"approve", "escalate", "ask", "claim"}}, "comment"},
		{refund(), api.Activity{Verbs: []string{"edit", "reject", "escalate"}}, "approve with edits reject comment escalate"},
		{review(), api.Activity{Verbs: []string{"respond", "ask"}}, "approve reject answer ask the agent comment"},
		{review(), api.Activity{Verbs: []string{"ask"}}, "ask the agent comment"},
		{refund(), api.Activity{Verbs: []string{"reject", "claim", "delegate", "snooze"}}, "reject comment claim delegate snooze"},
		{refund(), api.Activity{Verbs: []string{"reject", "claim"}, Claim: &api.Stamp{By: "ann"}}, "reject comment release"},
		{refund(), api.Activity{Verbs: []string{"reject", "claim"}, Claim: &api.Stamp{By: "bob"}}, "reject comment claim"},
		{refund(), api.Activity{IneligibleReason: "decision_pending", Pending: &api.PendingDecision{Stamp: api.Stamp{By: "ann"}}}, "comment undo"},
		{refund(), api.Activity{IneligibleReason: "decision_pending", Pending: &api.PendingDecision{Stamp: api.Stamp{By: "bob"}}}, "comment"},
		{refund(), api.Activity{Verbs: []string{"approve", "reject"}, Votes: []api.Vote{vote("ann", "approve")}}, "reject comment"},
		{refund(), api.Activity{Verbs: []string{"approve", "reject"}, Votes: []api.Vote{vote("bob", "approve")}}, "approve reject comment"},
		{refund(), api.Activity{Verbs: []string{"approve", "reject"}, Votes: []api.Vote{vote("ann", "approve")}, Edit: &api.Edit{Stamp: api.Stamp{By: "bob", At: start}, Args: json.RawMessage(`{}`)}}, "approve reject comment"},
	} {
		test.r.Activity = &test.activity
		var got []string
		for _, o := range actionsOf(test.r, "ann", start) {
			got = append(got, verbs[o.verb].label)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s with %+v offers %s", test.r.ID, test.activity, got)
		}
	}
	r := refund()
	r.Activity = &api.Activity{IneligibleReason: "excluded"}
	b := newHarness(t, 80, 24, r)
	b.keys("enter")
	b.sees("Separation of duties excludes you from this decision.")
}

// A decision with an undo window stays in the list, and says when it takes effect.
func TestSend_DecisionInItsUndoWindowKeepsRequestOpen(t *testing.T) {
	b := newHarness(t, 80, 24, refund())
	b.keys("enter", "a", "y")
	at := start.Add(30 * time.Second)
	b.answer(nil, &client.PendingError{Pending: api.Pending{StateKey: "k", EffectiveAt: &at}})
	b.sees("Approved. It takes effect at ", "Inbox 1 open")
}

// If more votes are needed, the request stays.
func TestSend_VoteBelowQuorumKeepsRequestOpen(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter", "a", "y")
	voted := dropUsers()
	voted.Activity = &api.Activity{Progress: "1 of 2, needs 1 × finops", Verbs: []string{"approve", "reject"}, Votes: []api.Vote{vote("ann", "approve")}}
	b.update(sendResult{resumeID: b.sends[0].ResumeID, r: &voted, outcome: fermata.NeedsInput{StateKey: "drop-users", Interrupts: []fermata.OpenInterrupt{{ID: "int_drop"}}}})
	b.sees("Approved. 1 of 2 approvals, needs 1 × finops.", "Inbox 1 open")
	b.seesNot("no longer open")
}

// After the vote the list and the request say so, and approve is not offered again.
func TestDetail_OwnVoteIsShown(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Progress: "1 of 2", Verbs: []string{"approve", "reject"}, Votes: []api.Vote{vote("ann", "approve")}}
	b := newHarness(t, 80, 24, r)
	b.sees("you approved · drop-users")
	b.keys("enter")
	b.sees("· you approved", "[r] reject")
	b.seesNot("[a] approve")
}

// The person who rejects gets what they wanted: it does not read as a failure of the run.
func TestSend_RejectionIsNotACrash(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter", "r")
	b.types("too many rows")
	b.keys("enter", "y")
	b.answer(fermata.Failed{Code: "rejected", Message: "the run failed at node:drop: rejected"}, nil)
	b.sees("Rejected. drop-users ended because it was rejected.")
	b.seesNot("failed")
}

// Every verb of the desk has a key. The body says what the person entered.
func TestActs_SendTheirBody(t *testing.T) {
	for _, test := range []struct {
		keys       []string
		typed      []string
		want, done string
	}{
		{[]string{"t"}, []string{"which table?"}, `clarify int_drop {"text":"which table?"}`, "Asked. The agent was asked. The request is still open."},
		{[]string{"c"}, []string{"I look at it"}, `comment int_drop {"text":"I look at it"}`, "Commented. The comment was added."},
		{[]string{"m"}, nil, `claim int_drop {}`, "Claimed. Others see"},
		{[]string{"d"}, []string{"bob", "he knows it"}, `delegate int_drop {"to":"bob","text":"he knows it"}`, "Delegated. The delegate was notified."},
		{[]string{"d"}, []string{"bob", ""}, `delegate int_drop {"to":"bob"}`, "Delegated."},
		{[]string{"s"}, []string{"2d"}, `snooze int_drop {"until":"2026-11-17T03:12:44Z"}`, "Snoozed. Reminders are paused."},
		{[]string{"s"}, []string{"90m"}, `snooze int_drop {"until":"2026-11-15T04:42:44Z"}`, "Snoozed."},
		{[]string{"s"}, []string{"2026-11-15T09:00:00Z"}, `snooze int_drop {"until":"2026-11-15T09:00:00Z"}`, "Snoozed."},
	} {
		r := dropUsers()
		r.Activity = &api.Activity{Verbs: []string{"approve", "ask", "claim", "delegate", "snooze"}}
		b := newHarness(t, 80, 24, r)
		b.keys("enter")
		b.keys(test.keys...)
		for _, text := range test.typed {
			b.types(text)
			b.keys("enter")
		}
		b.keys("y")
		if len(b.acts) != 1 {
			t.Errorf("%s: sent %q\n%s", test.want, b.acts, b.frame())
			continue
		}
		name, _, _ := strings.Cut(b.acts[0], ":")
		if body, _ := json.Marshal(b.body); !sameBody(string(body), name, test.want) {
			t.Errorf("sent %s %s, not %s", name, body, test.want)
		}
		b.update(sendResult{resumeID: b.actName})
		b.sees(test.done, "drop-table")
	}
}

// sameBody compares a body with the wanted one, whatever the order of its members.
func sameBody(body, name, want string) bool {
	text, ok := strings.CutPrefix(want, name+" ")
	var a, b map[string]string
	return ok && json.Unmarshal([]byte(body), &a) == nil && json.Unmarshal([]byte(text), &b) == nil && maps.Equal(a, b)
}

// An approval that the rules want typed is sent after the exact name of the object; y is a letter.
func TestApprove_TypesTheNameOfTheObject(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Confirm: "prod users", ConfirmFields: []string{"/db", "/name"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "a")
	b.sees("type     prod users")
	b.keys("y", "enter")
	b.sees("This is not the name of the object.", "typed    y_")
	if len(b.sends) != 0 {
		t.Fatalf("sent %s", b.sends)
	}
	b.keys("backspace")
	b.types("prod users")
	b.keys("enter")
	b.expectSent("int_drop", `{"verb":"approve"}`)
	if b.sends[0].Confirm != "prod users" {
		t.Errorf("confirmed %q", b.sends[0].Confirm)
	}
}

// The terminal does not know the name of the edited object: the server compares it.
func TestApproveEdited_TypesTheNewName(t *testing.T) {
	r := refund()
	r.Activity = &api.Activity{Confirm: "120.50", ConfirmFields: []string{"/amount"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "e", "enter", "ctrl+u")
	b.types("40.10")
	b.keys("ctrl+s")
	b.sees("type     the new value of /amount")
	b.keys("enter")
	if len(b.sends) != 0 {
		t.Fatalf("sent without a name: %s", b.sends)
	}
	b.types("40.10")
	b.keys("enter")
	b.expectSent("int_refund", `{"verb":"approve","args":{"order":9007199254740993,"amount":40.10,"note":"sorry"}}`)
	if b.sends[0].Confirm != "40.10" {
		t.Errorf("confirmed %q", b.sends[0].Confirm)
	}
}

// A rejection is never typed.
func TestReject_IsNotTyped(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Confirm: "users"}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "r")
	b.types("no")
	b.keys("enter", "y")
	b.expectSent("int_drop", `{"verb":"reject","reason":"no"}`)
}

func TestReject_SelectsAReasonCodeOfTheRules(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{RejectReasons: []string{"risk", "cost"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "r")
	b.sees("reason code", "risk", "cost")
	b.keys("ctrl+s")
	b.sees("choose a reason code")
	b.keys("right", "right", "ctrl+s", "y")
	b.expectSent("int_drop", `{"verb":"reject","codes":["cost"]}`)
}

func TestDelegate_OffersThePeopleWhoMayDecide(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Verbs: []string{"delegate"}, Delegates: []string{"bob", "carl"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "d")
	b.sees("bob", "carl")
	b.types("x") // nothing to type
	b.keys("right", "right", "enter", "enter", "y")
	if body, _ := json.Marshal(b.body); len(b.acts) != 1 || string(body) != `{"to":"carl"}` {
		t.Errorf("sent %q %s\n%s", b.acts, body, b.frame())
	}
}

func TestSnooze_NamesTheMistake(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Verbs: []string{"snooze"}}
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "s")
	b.types("two days")
	b.keys("enter")
	b.sees(`"two days" is neither a duration, such as 30m, 4h or 2d, nor a time`)
}

func TestList_ShowsSnoozedAndEscalated(t *testing.T) {
	r, until := dropUsers(), start.Add(2*time.Hour)
	r.Activity = &api.Activity{SnoozedUntil: &until, History: []api.HistoryEntry{{Event: "escalated", Text: "escalated it"}}, Claim: &api.Stamp{By: "bob"}}
	b := newHarness(t, 110, 24, r)
	b.sees("escalated · snoozed until 05:12:44 · claimed by bob · drop-users")
	b.keys("enter")
	b.sees("· escalated · snoozed until 05:12:44 · claimed by bob", "snoozed  until 05:12:44")
	b.now = until.Add(time.Minute)
	b.keys("esc")
	b.seesNot("snoozed")
}

// An effect in doubt is a sentence with two answers, and JSON only for the rest.
func TestInDoubt_IsASentenceWithChoices(t *testing.T) {
	doubt := fermata.InDoubtRequest{Action: "pay", Args: json.RawMessage(`{"cents":120}`), Digest: "d1", Key: "k-17", Started: start.Add(-time.Minute), Error: "i/o timeout", Attempt: 1}
	r := request("int_doubt", "run", "inproc:pay", fermata.EffectInDoubt.Name(), doubt, fermata.EffectInDoubt.HumanAnswerSchema(), nil)
	for key, want := range map[string]string{"p": `{"happened":true}`, "n": `{"happened":false}`} {
		b := newHarness(t, 200, 30, r)
		b.sees("Did it happen? pay cents 120")
		b.keys("enter")
		b.sees(`The action pay was started at 2026-11-15 03:11:44 UTC, but the call returned the error "i/o timeout".`,
			"It is unknown whether it happened. Look for the key k-17 at the target. Did it happen?",
			"p  It happened: the run continues, and the action is not performed again.", "n  It did not happen: the action is performed now.",
			"[p] it happened", "[n] it did not happen", "cents: 120")
		b.keys(key)
		b.keys("y")
		b.expectSent("int_doubt", want)
	}
}

func vote(by, verb string) api.Vote {
	return api.Vote{Stamp: api.Stamp{By: by, At: start.Add(-time.Minute)}, Verb: verb}
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
	b.update(sendResult{resumeID: b.actName, err: &api.Problem{Status: 409, Code: "action_not_allowed", Detail: "The route has no further step."}})
	b.sees("The route has no further step.")
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
		"decided":   {decided, "The request was already decided. reject by bob at 03:12:43."},
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
