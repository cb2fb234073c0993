package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-go/fermata/api"
)

func TestDetail_ChangedRequestDisablesActions(t *testing.T) {
	decided := dropUsers()
	decided.State, decided.Decision = "decided", &api.Decision{Verdict: "reject", By: "bob", Source: "person", Via: "slack", At: start.Add(-time.Minute), Answer: json.RawMessage(`{"verb":"reject","reason":"no way"}`)}
	expired := dropUsers()
	expired.State, expired.Decision = "decided", &api.Decision{Verdict: "expire", Source: "clock", At: start}
	withdrawn := dropUsers()
	withdrawn.State = "withdrawn"
	changed := dropUsers()
	changed.Shown, changed.Data = strings.Repeat("b", 64), json.RawMessage(strings.ReplaceAll(string(changed.Data), "users", "orders"))
	for name, test := range map[string]struct {
		now   api.Request
		says  string
		after string
	}{
		"decided":   {decided, "Already decided: reject by bob at 03:11:44.", "no way"},
		"expired":   {expired, "Not answered in time: it expired at 03:12:44.", "clock"},
		"withdrawn": {withdrawn, "It is withdrawn: the run no longer waits for this.", "drop-table"},
		"changed":   {changed, "The request has changed since you opened it.", `name: "orders"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range [][]string{{}, {"a"}} { // on the request and on the confirmation
				b := newHarness(t, 80, 24, dropUsers())
				b.keys("enter")
				b.keys(before...)
				b.update(pollResult{seq: b.m.pollSeq, open: &test.now})
				b.sees(test.says, `name: "users"`)
				b.keys("a", "y")
				if len(b.sends) != 0 {
					t.Fatal("a decision on an outdated version was sent")
				}
				b.keys("esc")
			}
			b := newHarness(t, 80, 24, dropUsers())
			b.keys("enter")
			b.update(pollResult{seq: b.m.pollSeq, open: &test.now})
			b.seesNot("[a] approve")
			b.keys("u")
			b.sees(test.after)
		})
	}
}

func TestDetail_LaterDeadlineKeepsActions(t *testing.T) {
	later := dropUsers()
	deadline := start.Add(72 * time.Hour)
	later.Deadline = &deadline
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter")
	b.poll(later)
	b.sees("3d 0h left", "[a] approve")
}

func TestDetail_UnknownRequestDisablesActions(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.keys("enter")
	b.update(pollResult{seq: b.m.pollSeq, openErr: &api.Problem{Status: 404, Code: "not_found"}})
	b.sees("The server no longer knows this request.")
	b.seesNot("[a] approve")
}

func TestDetail_CountdownUpdates(t *testing.T) {
	b := newHarness(t, 80, 24, refund())
	b.keys("enter")
	b.sees("! 9m 03s left")
	b.advance(9 * time.Minute)
	b.sees("! 3s left")
	b.advance(3 * time.Second)
	b.sees("! overdue")
}

// Long values are folded with their exact length, and a decision without seeing them shows a
// warning.
func TestDetail_LongValuesAreFolded(t *testing.T) {
	r := review()
	body := strings.Repeat("ä", 700) + "the end"
	var lines, items []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	for i := range 100 {
		items = append(items, fmt.Sprint(i))
	}
	text, _ := json.Marshal(strings.Join(lines, "\n"))
	r.Data = json.RawMessage(`{"body":"` + body + `","lines":` + string(text) + `,"items":[` + strings.Join(items, ",") + `]}`)
	b := newHarness(t, 80, 200, r)
	b.keys("enter")
	b.sees("[… 407 more of 707 characters, 1407 bytes: o shows all]", "text, 20 lines, 149 characters", "[… 12 more lines: o shows all]", "[… 70 more of 100 items: o shows all]")
	b.seesNot("the end", "line 19", "- 99")
	b.keys("a")
	b.sees("You have not seen all of the request: 3 values folded")
	b.keys("esc", "o")
	b.sees("the end", "line 19", "- 99")
	b.keys("a")
	b.seesNot("You have not seen")
}

func TestDetail_UnscrolledContentIsAWarning(t *testing.T) {
	r := review()
	var lines []string
	for i := range 14 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	r.Data, _ = json.Marshal(map[string]string{"a": strings.Join(lines, "\n"), "b": strings.Join(lines, "\n")})
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "a")
	b.sees("You have not seen all of the request: some of it was not on the screen yet.")
	b.keys("esc", "G", "a")
	b.seesNot("You have not seen")
}

// Jumping to the end skips lines, which do not count as seen.
func TestDetail_SkippedLinesAreNotSeen(t *testing.T) {
	r := review()
	r.Data, _ = json.Marshal(map[string]string{"a": strings.Repeat("line\n", 14), "b": strings.Repeat("line\n", 14), "c": strings.Repeat("line\n", 14), "d": strings.Repeat("line\n", 14)})
	b := newHarness(t, 80, 24, r)
	b.keys("enter", "G", "a")
	b.sees("You have not seen all of the request")
	b.keys("esc", "b", "b", "a") // from the end upwards
	b.seesNot("You have not seen")
}

func TestDetail_WrongDigestIsAWarning(t *testing.T) {
	asked := approval("drop-table", "", `{"name":"users"}`)
	asked.Args = json.RawMessage(`{"name":"orders"}`)
	b := newHarness(t, 80, 24, request("int_1", "run", "inproc:g", "approval", asked, dropUsers().AnswerSchema, nil))
	b.keys("enter")
	b.sees("The action's digest does not match these arguments.")
	b.keys("a")
	b.sees("The action's digest does not match the arguments.")
}

// Numbers, the order of members and duplicate members are shown as sent.
func TestDetail_ShowsJSONAsItIs(t *testing.T) {
	r := review()
	r.Data = json.RawMessage(`{"z":1.10,"a":12345678901234567890123,"a":-0.0,"e":1E400,"n":null,"t":true,"o":{},"l":[],"deep":[[1,{"x y":"\"q\"\\"}]]}`)
	b := newHarness(t, 80, 40, r)
	b.keys("enter")
	want := "  z: 1.10\n  a: 12345678901234567890123\n  a: -0.0\n  e: 1E400\n  n: null\n  t: true\n  o: {}\n  l: []\n  deep:\n    - - 1\n      - \"x y\": \"\\\"q\\\"\\\\\"\n"
	b.sees(want)
}

// The activity is shown, and does not change what is decided.
func TestDetail_ShowsActivity(t *testing.T) {
	r := dropUsers()
	r.Activity = &api.Activity{Revision: 3, Requester: "deploy-bot", Risk: 70, Rules: []string{"big-tables", "prod"}, Reason: "it is production", MinAuth: "mfa", Progress: "1 of 2, needs 1 × dba", Claim: &api.Stamp{By: "carl", At: start},
		Votes: []api.Vote{{Stamp: api.Stamp{By: "bob", At: start}, Verb: "approve", Reason: "fine"}}, Comments: []api.Note{{Stamp: api.Stamp{By: "bob", At: start}, Text: "careful\x1b[2J"}},
		Clarifications: []api.Clarification{{Note: api.Note{Stamp: api.Stamp{By: "bob", At: start}, Text: "why now?"}, Reply: &api.Note{Stamp: api.Stamp{By: "bot", At: start}, Text: "disk full"}}}}
	b := newHarness(t, 140, 40, r)
	b.sees("drop-users · inproc:drop-table · deploy-bot · 1 of 2, needs 1 × dba")
	b.keys("enter")
	b.sees("from     deploy-bot", "risk     70", "rules    big-tables, prod", "reason   it is production", "sign-in  mfa", "progress 1 of 2, needs 1 × dba", "vote     bob at 03:12:44: approve fine", `comment  bob at 03:12:44: careful\u001b[2J`, "question bob at 03:12:44: why now?", "reply    bot at 03:12:44: disk full", "claimed  carl")
	b.seesNot("updated")
	activity := *r.Activity
	activity.Revision, activity.Progress = 4, "2 of 3"
	r.Activity = &activity
	b.poll(r)
	b.sees("updated 03:12:44", "progress 2 of 3", "[a] approve")
}

// An approval after an edit approves the edit: it is shown first, and again before sending.
func TestI6_PlainApproveUsesThePriorEdit(t *testing.T) {
	edited := refund()
	edited.Shown = strings.Repeat("e", 64)
	edited.Activity = &api.Activity{Revision: 2, Edit: &api.Edit{Stamp: api.Stamp{By: "bob", At: start}, Args: json.RawMessage(`{"order":9007199254740993,"amount":7.00}`)}}
	edited.Activity.Verbs = []string{"approve", "edit", "reject"}
	edited = worded(edited)
	b := newHarness(t, 90, 40, refund())
	b.keys("enter")
	b.poll(edited)
	b.sees("The request has changed")
	b.keys("a", "y")
	if len(b.sends) != 0 {
		t.Fatal("a decision on an outdated version was sent")
	}
	b.keys("u")
	b.sees("Arguments as edited by bob: these will be used", "amount: 7.00", "Arguments as requested", "amount: 120.50")
	b.keys("a")
	b.sees("amount: 7.00")
	b.seesNot("120.50")
	b.keys("y")
	if b.sends[0].Shown != edited.Shown {
		t.Errorf("%+v", b.sends[0])
	}
}

// The list may be outdated: decisions are based on the loaded request.
func TestDetail_ActionsAppearWhenServerAllows(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.update(namedKeys["enter"])
	b.sees("loading")
	b.seesNot("[a] approve")
	b.keys("a", "y")
	if len(b.sends) != 0 {
		t.Errorf("%+v", b.sends)
	}
	edited := dropUsers()
	edited.Shown = strings.Repeat("e", 64)
	b.update(pollResult{seq: b.m.pollSeq, items: []api.Request{dropUsers()}, open: &edited})
	b.keys("a", "y")
	if len(b.sends) != 1 || b.sends[0].Shown != edited.Shown {
		t.Errorf("%+v", b.sends)
	}
}

// A person who decided in the inbox was not recorded as a viewer.
func TestDetail_ViewIsReported(t *testing.T) {
	open := func(mayNot string) api.Request {
		r := refund()
		r.Activity = &api.Activity{Revision: 1, State: "open", IneligibleReason: mayNot, Verbs: []string{"approve", "reject"}}
		return r
	}
	b := newHarness(t, 80, 24, open(""))
	if len(b.views) != 0 {
		t.Errorf("the list does not count as a view: %q", b.views)
	}
	b.keys("enter")
	b.poll(open(""))
	if first := "int_refund " + refund().Shown; len(b.views) != 1 || b.views[0] != first {
		t.Fatalf("the server received %q", b.views)
	}
	edited := open("")
	edited.Shown, edited.Activity.Revision = "another", 2
	b.poll(edited)
	if len(b.views) != 1 {
		t.Errorf("the old version is shown: %q", b.views)
	}
	b.keys("u")
	b.poll(edited)
	if len(b.views) != 2 || b.views[1] != "int_refund another" {
		t.Errorf("the current version is shown: %q", b.views)
	}
	b = newHarness(t, 80, 24, open("not_member"))
	b.keys("enter")
	if len(b.views) != 0 {
		t.Errorf("an ineligible person does not count: %q", b.views)
	}
}

// A summary is about the requested arguments, and is shown with those.
func TestI6_SummaryIsShownWithItsArguments(t *testing.T) {
	edited := dropUsers()
	edited.Activity = &api.Activity{Revision: 2, Edit: &api.Edit{Stamp: api.Stamp{By: "bob", At: start}, Args: json.RawMessage(`{"name":"orders","rows":7}`)}}
	b := newHarness(t, 90, 40, edited)
	b.keys("enter")
	frame := b.frame()
	if used, says := strings.Index(frame, "name: \"orders\""), strings.Index(frame, "Drop the table users"); used < 0 || says < used {
		t.Errorf("the summary is at %d, the used arguments at %d:\n%s", says, used, frame)
	}
}

// Masked values are shown after a reveal, which is one call; a poll does not mask them again.
func TestDetail_RevealShowsMaskedValues(t *testing.T) {
	open := refund()
	masked := open
	masked.Masked, masked.Data = []string{"/note"}, json.RawMessage(strings.ReplaceAll(string(open.Data), "sorry", "•••"))
	b := newHarness(t, 80, 24, masked)
	b.keys("enter")
	b.poll(masked)
	b.sees("[v] reveal masked values", `note: "•••"`, "[a] approve")
	b.seesNot("sorry", "approve with edits", "digest does not match")
	b.keys("a")
	b.sees("1 value masked")
	b.keys("esc", "v")
	if len(b.reveals) != 1 || b.reveals[0] != open.ID {
		t.Fatalf("revealed %q", b.reveals)
	}
	b.update(revealResult{id: open.ID, err: &api.Problem{Status: 403, Code: "not_eligible", Detail: "not in a group"}})
	b.sees("still masked: not in a group")
	b.update(revealResult{id: open.ID, r: open})
	b.sees(`note: "sorry"`, "approve with edits")
	b.seesNot("reveal masked values")
	b.poll(masked)
	b.sees(`note: "sorry"`)
	b.keys("v")
	if len(b.reveals) != 1 {
		t.Errorf("revealed again: %q", b.reveals)
	}
}

// The server learns what was on the screen, and the decision names it.
func TestDetail_RenderingIsReportedAndNamed(t *testing.T) {
	r := refund()
	r.Activity = &api.Activity{Revision: 1, State: "open", Verbs: []string{"approve", "reject"}}
	b := newHarness(t, minWidth, minHeight, r)
	b.keys("enter")
	b.poll(r)
	if len(b.renderings) != 1 || b.renderings[0].Visible != "part" || b.renderings[0].Channel != "terminal" || b.renderings[0].Template != inboxTemplate {
		t.Fatalf("opened: %+v", b.renderings)
	}
	text := ansi.Strip(strings.Join(b.m.openDetail().question.lines, "\n"))
	if b.renderings[0].Hash != api.NewRendering(text, "", "").Hash || b.renderings[0].Text != text || !strings.Contains(text, "action") {
		t.Errorf("hash %s of %q", b.renderings[0].Hash, text)
	}
	b.poll(r)
	if len(b.renderings) != 1 {
		t.Errorf("reported again: %+v", b.renderings)
	}
	for range 60 {
		b.keys("j")
	}
	b.keys("a")
	if len(b.renderings) != 2 || b.renderings[1].Visible != "all" || b.renderings[1].Hash != b.renderings[0].Hash {
		t.Fatalf("read to the end: %+v", b.renderings)
	}
	b.keys("y")
	if len(b.sends) != 1 || b.sends[0].Rendering != b.renderings[0].Hash {
		t.Errorf("decision: %+v", b.sends)
	}
}

func TestDetail_ShowsWhatChangedAndWhyAnAnswerWasRefused(t *testing.T) {
	again := refund()
	again.Supersedes, again.Changed, again.Refused = "int_old", []string{"/args/amount"}, "the order is\x1b[2J closed"
	b := newHarness(t, 80, 24, again)
	b.keys("enter")
	b.sees("This replaces an earlier request: what it showed has changed.", "/args/amount", "did not accept the last answer", "the order is")
	b.seesNot("\x1b[2J closed")
}
