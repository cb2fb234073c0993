package desk_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
)

// situations are the states of a request, and what can be said of an open one. Ann is the one who acts.
var situations = map[string]func(w *world){
	"open":      func(*world) {},
	"viewed":    func(w *world) { w.do(desk.View{From: w.by("bob")}) },
	"mine":      func(w *world) { w.do(desk.Claim{From: w.by("ann")}) },
	"bob's":     func(w *world) { w.do(desk.Claim{From: w.by("bob")}) },
	"asked":     func(w *world) { w.do(desk.AskBack{From: w.by("bob"), Question: "why?"}) },
	"escalated": func(w *world) { w.do(desk.Escalate{From: w.by("bob")}) },
	"snoozed":   func(w *world) { w.do(desk.Snooze{From: w.by("bob"), Until: w.now.Add(time.Hour)}) },
	"late":      func(w *world) { w.now = w.request.Deadline },
	"answered": func(w *world) {
		if w.request.Asked.Action == "" {
			w.do(desk.Respond{From: w.by("bob"), Value: json.RawMessage(`1`)})
		} else {
			w.do(desk.Approve{From: w.by("bob")})
		}
	},
	"expired":   func(w *world) { w.at(24 * time.Hour) },
	"withdrawn": func(w *world) { w.do(desk.Withdraw{From: desk.From{Actor: desk.Service("executor")}}) },
}

// The table: what becomes of each act in each situation. "ok" is done, "-" changes nothing, anything else is the code of the refusal.
const table = `
                open         viewed       mine         bob's        asked        escalated    snoozed      late     answered         expired  withdrawn
view            ok           ok           ok           ok           ok           ok           ok           -        -                -        -
claim           ok           ok           -            claimed      ok           ok           ok           expired  already_decided  expired  withdrawn
release         not_claimed  not_claimed  ok           not_claimed  not_claimed  not_claimed  not_claimed  expired  already_decided  expired  withdrawn
approve         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
edit            ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
reject          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
respond         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
escape          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
ask_back        ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
answer_back     no_question  no_question  no_question  no_question  ok           no_question  no_question  expired  already_decided  expired  withdrawn
comment         ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
delegate        ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
snooze          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
extend          ok           ok           ok           ok           ok           ok           ok           expired  already_decided  expired  withdrawn
escalate        ok           ok           ok           ok           ok           no_step      ok           expired  already_decided  expired  withdrawn
withdraw        ok           ok           ok           ok           ok           ok           ok           ok       already_decided  expired  withdrawn
tick            -            -            -            -            -            -            -            ok       -                -        -
delivered       ok           ok           ok           ok           ok           ok           ok           -        -                -        -
outage          -            -            -            -            -            -            -            ok       -                -        -
`

// acts are the rows. Acts on questions that are about no action have a request of their own.
func acts(w *world) map[string]desk.Act {
	ann := w.by("ann")
	return map[string]desk.Act{
		"view": desk.View{From: ann}, "claim": desk.Claim{From: ann}, "release": desk.Release{From: ann},
		"approve": desk.Approve{From: ann}, "edit": desk.ApproveEdited{From: ann, Args: json.RawMessage(`{"table":"users","limit":50}`)},
		"reject": desk.Reject{From: ann, Reason: "no"}, "respond": desk.Respond{From: ann, Value: json.RawMessage(`1`)},
		"escape": desk.Escape{From: ann}, "ask_back": desk.AskBack{From: ann, Question: "why?"},
		"answer_back": desk.AnswerBack{From: w.run(), Question: 1, Answer: "because"}, "comment": desk.Comment{From: ann, Text: "hm"},
		"delegate": desk.Delegate{From: ann, To: "bob"}, "snooze": desk.Snooze{From: ann, Until: w.now.Add(2 * time.Hour)},
		"extend": desk.Extend{From: ann, Until: w.request.Deadline.Add(time.Hour)}, "escalate": desk.Escalate{From: ann},
		"withdraw": desk.Withdraw{From: desk.From{Actor: desk.Service("executor")}}, "tick": desk.Tick{},
		"delivered": desk.Delivered{Target: "inbox", At: w.now},
		"outage":    desk.Outage{Start: w.now.Add(-time.Minute), End: w.now},
	}
}

func TestTable_EveryActInEverySituation(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	columns := strings.Fields(lines[0])
	if len(columns) != len(situations) {
		t.Fatalf("the table has %d situations of %d", len(columns), len(situations))
	}
	rows := map[string]bool{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		rows[cells[0]] = true
		for i, column := range columns {
			t.Run(cells[0]+" when "+column, func(t *testing.T) {
				ask := action()
				if cells[0] == "respond" {
					ask = question()
				}
				w := open(t, ask)
				situations[column](w)
				w.now = w.now.Add(time.Second)
				act := acts(w)[cells[0]]
				switch want := cells[1+i]; want {
				case "ok":
					if !w.do(act).Changed() {
						t.Error("nothing has changed")
					}
				case "-":
					before := w.request.Rev
					if change := w.do(act); change.Changed() || change.Request.Rev != before || len(change.Notices) > 0 {
						t.Errorf("something has changed: %+v", change)
					}
				default:
					w.refused(want, act)
				}
			})
		}
	}
	for name := range acts(open(t, action())) {
		if !rows[name] {
			t.Errorf("the table has no row for %s", name)
		}
	}
	for _, name := range desk.Acts() {
		if !rows[string(name)] {
			t.Errorf("the table has no row for %s", name)
		}
	}
}

func TestWho_EveryActByThoseWhoMayNot(t *testing.T) {
	robot := desk.Actor{ID: "ann", Kind: desk.Agent, Auth: desk.AuthHardware} // an agent with the name of somebody who may
	for name, test := range map[string]struct {
		actor desk.Actor
		code  map[string]string // by act; "*" for all that are not named
	}{
		"nobody":        {desk.Actor{}, map[string]string{"*": "not_yours"}},
		"no kind":       {desk.Actor{ID: "ann"}, map[string]string{"*": "not_yours"}},
		"a stranger":    {desk.Person("eve", desk.AuthHardware), map[string]string{"*": "not_member", "withdraw": "not_yours", "answer_back": "not_yours", "comment": "", "view": "", "release": "not_claimed"}},
		"the requester": {desk.Person("rita", desk.AuthHardware), map[string]string{"*": "excluded", "withdraw": "", "escape": "", "answer_back": "", "comment": "", "view": "", "release": "not_claimed"}},
		"the author":    {desk.Person("arno", desk.AuthHardware), map[string]string{"*": "excluded", "withdraw": "not_yours", "answer_back": "not_yours", "comment": "", "view": "", "release": "not_claimed"}},
		"an agent":      {robot, map[string]string{"*": "not_human", "withdraw": "not_yours", "answer_back": "", "comment": ""}},
		"the system":    {desk.Service("executor"), map[string]string{"*": "not_human", "withdraw": "", "answer_back": "", "comment": ""}},
	} {
		for row := range acts(open(t, action())) {
			if row == "tick" || row == "delivered" || row == "outage" {
				continue // they come from no actor
			}
			t.Run(name+" "+row, func(t *testing.T) {
				ask := action()
				if row == "respond" {
					ask = question()
				}
				w := open(t, ask)
				w.do(desk.AskBack{From: w.by("bob"), Question: "why?"})
				code, ok := test.code[row]
				if !ok {
					code = test.code["*"]
				}
				act := as(test.actor, acts(w)[row])
				if code == "" {
					w.do(act)
				} else {
					w.refused(code, act)
				}
			})
		}
	}
}

// as puts an actor into an act.
func as(actor desk.Actor, act desk.Act) desk.Act {
	other := reflect.New(reflect.TypeOf(act)).Elem()
	other.Set(reflect.ValueOf(act))
	other.FieldByName("Actor").Set(reflect.ValueOf(actor))
	return other.Interface().(desk.Act)
}
