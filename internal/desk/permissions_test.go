package desk_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// situations are the states of a request and the flags of an open one. ann is the actor.
var situations = map[string]func(w *fixture){
	"open":      func(*fixture) {},
	"viewed":    func(w *fixture) { w.apply(desk.View{From: w.from("bob")}) },
	"mine":      func(w *fixture) { w.apply(desk.Claim{From: w.from("ann")}) },
	"bob's":     func(w *fixture) { w.apply(desk.Claim{From: w.from("bob")}) },
	"asked":     func(w *fixture) { w.apply(desk.AskClarification{From: w.from("bob"), Question: "why?"}) },
	"escalated": func(w *fixture) { w.apply(desk.Escalate{From: w.from("bob")}) },
	"snoozed":   func(w *fixture) { w.apply(desk.Snooze{From: w.from("bob"), Until: w.now.Add(time.Hour)}) },
	"late":      func(w *fixture) { w.now = w.request.Deadline },
	"answered": func(w *fixture) {
		if w.request.Subject.Action == "" {
			w.apply(desk.Respond{From: w.from("bob"), Value: json.RawMessage(`1`)})
		} else {
			w.apply(desk.Approve{From: w.from("bob")})
		}
	},
	"pending": func(w *fixture) {
		w.request.Requirement.Undo = timespan.Duration(time.Minute)
		if w.request.Subject.Action == "" {
			w.apply(desk.Respond{From: w.from("ann"), Value: json.RawMessage(`1`)})
		} else {
			w.apply(desk.Approve{From: w.from("ann")})
		}
	},
	"expired":   func(w *fixture) { w.advanceTo(24 * time.Hour) },
	"withdrawn": func(w *fixture) { w.apply(desk.Withdraw{From: desk.From{Actor: desk.SystemActor("executor")}}) },
}

// The result of each command in each situation. "ok" changes the request, "-" changes nothing,
// anything else is the code of the refusal.
const table = `
                open         viewed       mine         bob's        asked        escalated    snoozed      late     answered         expired  withdrawn  pending
view            ok           ok           ok           ok           ok           ok           ok           -        -                -        -          ok
claim           ok           ok           -            claimed      ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
release         not_claimed  not_claimed  ok           not_claimed  not_claimed  not_claimed  not_claimed  expired  already_decided  expired  withdrawn  not_claimed
approve         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
edit            ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
reject          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
respond         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
abandon         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  ok
ask_back        ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
answer_back     no_question  no_question  no_question  no_question  ok           no_question  no_question  expired  already_decided  expired  withdrawn  no_question
comment         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  ok
delegate        ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
snooze          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
extend          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn  decision_pending
escalate        ok           ok           ok           ok           ok           no_step      ok           expired  already_decided  expired  withdrawn  decision_pending
withdraw        ok           ok           ok           ok           ok           ok           ok           ok       already_decided  expired  withdrawn  ok
undo            nothing_to_undo  nothing_to_undo  nothing_to_undo  nothing_to_undo  nothing_to_undo  nothing_to_undo  nothing_to_undo  expired  already_decided  expired  withdrawn  ok
tick            -            -            -            -            -            -            -            ok       -                -        -          -
delivered       ok           ok           ok           ok           ok           ok           ok           -        -                -        -          ok
notice_failed   ok           ok           ok           ok           ok           ok           ok           ok       ok               ok       ok         ok
outage          -            -            -            -            -            -            -            ok       -                -        -          -
`

// allCommands are the rows. Commands for requests without an action have a request of their own.
func allCommands(w *fixture) map[string]desk.Command {
	ann := w.from("ann")
	return map[string]desk.Command{
		"view": desk.View{From: ann}, "claim": desk.Claim{From: ann}, "release": desk.Release{From: ann},
		"approve": desk.Approve{From: ann}, "edit": desk.ApproveEdited{From: ann, Args: json.RawMessage(`{"table":"users","limit":50}`)},
		"reject": desk.Reject{From: ann, Reason: "no"}, "respond": desk.Respond{From: ann, Value: json.RawMessage(`1`)},
		"abandon": desk.Abandon{From: ann}, "ask_back": desk.AskClarification{From: ann, Question: "why?"},
		"answer_back": desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "because"}, "comment": desk.Comment{From: ann, Text: "hm"},
		"delegate": desk.Delegate{From: ann, To: "bob"}, "snooze": desk.Snooze{From: ann, Until: w.now.Add(2 * time.Hour)},
		"extend": desk.Extend{From: ann, Until: w.request.Deadline.Add(time.Hour)}, "escalate": desk.Escalate{From: ann},
		"withdraw": desk.Withdraw{From: desk.From{Actor: desk.SystemActor("executor")}}, "tick": desk.Tick{}, "undo": desk.Undo{From: ann},
		"delivered":     desk.RecordDelivery{Target: "inbox", At: w.now},
		"notice_failed": desk.RecordNoticeFailure{Kind: desk.NoticeNotify, Target: "slack:C1", Code: "timeout", Attempt: 1, Next: w.now.Add(time.Second)},
		"outage":        desk.RecordOutage{Start: w.now.Add(-time.Minute), End: w.now},
	}
}

func TestPermissions_EveryCommandInEveryState(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	columns := strings.Fields(lines[0])
	if len(columns) != len(situations) {
		t.Fatalf("the table has %d of %d situations", len(columns), len(situations))
	}
	rows := map[string]bool{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		rows[cells[0]] = true
		for i, column := range columns {
			t.Run(cells[0]+" when "+column, func(t *testing.T) {
				ask := actionSpec()
				if cells[0] == "respond" {
					ask = questionSpec()
				}
				w := open(t, ask)
				situations[column](w)
				w.now = w.now.Add(time.Second)
				act := allCommands(w)[cells[0]]
				switch want := cells[1+i]; want {
				case "ok":
					if !w.apply(act).Changed() {
						t.Error("nothing has changed")
					}
				case "-":
					before := w.request.Rev
					if change := w.apply(act); change.Changed() || change.Request.Rev != before || len(change.Notices) > 0 {
						t.Errorf("something has changed: %+v", change)
					}
				default:
					w.mustRefuse(want, act)
				}
			})
		}
	}
	for name := range allCommands(open(t, actionSpec())) {
		if !rows[name] {
			t.Errorf("no row for %s", name)
		}
	}
	for _, name := range desk.Commands() {
		if !rows[string(name)] {
			t.Errorf("no row for %s", name)
		}
	}
}

func TestPermissions_EveryCommandByUnauthorizedActor(t *testing.T) {
	// an agent with the name of an approver
	robot := desk.Actor{ID: "ann", Kind: desk.ActorAgent, Auth: requirement.AuthHardware}
	for name, test := range map[string]struct {
		actor desk.Actor
		code  map[string]string // by command; "*" for all others
	}{
		"nobody":        {desk.Actor{}, map[string]string{"*": "not_yours"}},
		"no kind":       {desk.Actor{ID: "ann"}, map[string]string{"*": "not_yours"}},
		"a stranger":    {desk.PersonActor("eve", requirement.AuthHardware), map[string]string{"*": "not_member", "withdraw": "not_yours", "answer_back": "not_yours", "comment": "", "view": "", "undo": "nothing_to_undo", "release": "not_claimed"}},
		"the requester": {desk.PersonActor("rita", requirement.AuthHardware), map[string]string{"*": "excluded", "withdraw": "", "abandon": "", "answer_back": "", "comment": "", "view": "", "undo": "nothing_to_undo", "release": "not_claimed"}},
		"the author":    {desk.PersonActor("arno", requirement.AuthHardware), map[string]string{"*": "excluded", "withdraw": "not_yours", "answer_back": "not_yours", "comment": "", "view": "", "undo": "nothing_to_undo", "release": "not_claimed"}},
		"an agent":      {robot, map[string]string{"*": "not_human", "withdraw": "not_yours", "answer_back": "", "comment": ""}},
		"the system":    {desk.SystemActor("executor"), map[string]string{"*": "not_human", "withdraw": "", "answer_back": "", "comment": "", "undo": "nothing_to_undo"}},
	} {
		for row := range allCommands(open(t, actionSpec())) {
			if row == "tick" || row == "delivered" || row == "notice_failed" || row == "outage" {
				continue // commands without an actor
			}
			t.Run(name+" "+row, func(t *testing.T) {
				ask := actionSpec()
				if row == "respond" {
					ask = questionSpec()
				}
				w := open(t, ask)
				w.apply(desk.AskClarification{From: w.from("bob"), Question: "why?"})
				code, ok := test.code[row]
				if !ok {
					code = test.code["*"]
				}
				act := withActor(test.actor, allCommands(w)[row])
				if code == "" {
					w.apply(act)
				} else {
					w.mustRefuse(code, act)
				}
			})
		}
	}
}

// withActor sets the actor of a command.
func withActor(actor desk.Actor, act desk.Command) desk.Command {
	other := reflect.New(reflect.TypeOf(act)).Elem()
	other.Set(reflect.ValueOf(act))
	other.FieldByName("Actor").Set(reflect.ValueOf(actor))
	return other.Interface().(desk.Command)
}
