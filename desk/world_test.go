package desk_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
)

// world is a request, a clock, and the people around it.
type world struct {
	t       testing.TB
	now     time.Time
	members desk.Members
	args    json.RawMessage
	policy  desk.Policy
	request desk.Request
	last    desk.Change
	notices []desk.Notice
}

var (
	start    = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC) // a Monday
	dropArgs = json.RawMessage(`{"table":"users","limit":100}`)
)

// action is a request for one of the dba; rita asks, and arno wrote what is asked.
func action() desk.Ask {
	digest, err := fermata.ApprovalRequest{Action: "drop"}.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: dropArgs})
	if err != nil {
		panic(err)
	}
	return desk.Ask{
		ID: "int_1", Args: dropArgs,
		Asked: desk.Asked{Kind: "approval", Action: "drop", Digest: digest, Shown: "shown", Requester: "rita", Authors: []string{"arno"}},
		Need: desk.Requirement{
			Groups:   []desk.Group{{From: []string{"group:dba"}}},
			Exclude:  []desk.Duty{desk.Requester, desk.Author, desk.LastEditor},
			Editable: []string{"/limit"},
		},
	}
}

// question is a request for any answer of one of the dba.
func question() desk.Ask {
	ask := action()
	ask.Asked.Action, ask.Asked.Digest, ask.Args = "", "", nil
	ask.Asked.Kind = "review"
	return ask
}

func needing(groups ...desk.Group) desk.Ask {
	ask := action()
	ask.Need.Groups = groups
	return ask
}

func group(count int, from ...string) desk.Group { return desk.Group{From: from, Count: count} }

func open(t testing.TB, ask desk.Ask) *world {
	t.Helper()
	w := &world{t: t, now: start, args: dropArgs, members: desk.Members{
		"group:dba":      {"ann", "bob", "cleo", "rita", "arno"},
		"group:finops":   {"ann", "fay"},
		"group:managers": {"max"},
	}}
	change, err := desk.New(ask, w.env())
	if err != nil {
		t.Fatal(err)
	}
	w.take(change)
	return w
}

func (w *world) env() desk.Env {
	return desk.Env{Now: w.now, Directory: w.members, Args: w.args, Policy: w.policy}
}

// take does what a store does: it keeps the bytes.
func (w *world) take(change desk.Change) {
	w.t.Helper()
	text, err := change.Request.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if w.request, err = desk.Decode(text); err != nil {
		w.t.Fatalf("%v in %s", err, text)
	}
	w.last = change
	w.notices = append(w.notices, change.Notices...)
}

// by is somebody who looks at the request as it is.
func (w *world) by(person string) desk.From {
	return desk.From{
		Actor: desk.Person(person, desk.AuthSSO), Via: "web",
		Seen: desk.Seen{Rev: w.request.Rev, Digest: w.request.Digest()},
	}
}

// leaves takes somebody out of the group of the dba.
func (w *world) leaves(person string) {
	w.members["group:dba"] = slices.DeleteFunc(slices.Clone(w.members["group:dba"]), func(p string) bool { return p == person })
}

func (w *world) run() desk.From {
	return desk.From{Actor: desk.Actor{ID: "run", Kind: desk.Agent}}
}

// do applies an act that must succeed.
func (w *world) do(act desk.Act) desk.Change {
	w.t.Helper()
	before := w.text()
	change, err := desk.Apply(w.request, act, w.env())
	if err != nil {
		w.t.Fatalf("%T: %v", act, err)
	}
	if after := w.text(); after != before {
		w.t.Fatalf("%T has changed what it was given:\n%s\n%s", act, before, after)
	}
	w.take(change)
	return change
}

func (w *world) text() string {
	w.t.Helper()
	text, err := w.request.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// refused applies an act that must be refused.
func (w *world) refused(code string, act desk.Act) error {
	w.t.Helper()
	change, err := desk.Apply(w.request, act, w.env())
	if got := desk.Code(err); got != code || err == nil {
		w.t.Fatalf("%T: %v (%s), want it refused as %s", act, err, got, code)
	}
	if change.Changed() || change.Final != nil || len(change.Notices) > 0 {
		w.t.Fatalf("%T was refused, and has changed something: %+v", act, change)
	}
	return err
}

// at moves the clock, tick by tick as the clock wants it, up to a time after the asking.
func (w *world) at(after time.Duration) {
	w.t.Helper()
	to := start.Add(after)
	for n := 0; ; n++ {
		if n > 100 {
			w.t.Fatalf("the clock does not get beyond %s", w.now)
		}
		next := desk.Next(w.request, w.now)
		if next.IsZero() || next.After(to) {
			break
		}
		w.now = later(w.now, next)
		w.do(desk.Tick{})
	}
	w.now = later(w.now, to)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *world) ended(outcome desk.Outcome, by ...string) {
	w.t.Helper()
	f := w.last.Final
	if f == nil || f.Outcome != outcome || !slices.Equal(f.By, by) {
		w.t.Fatalf("final = %+v, want %s by %v", f, outcome, by)
	}
	if w.request.State != outcome.State() || w.request.Final == nil {
		w.t.Fatalf("state = %s after %s", w.request.State, outcome)
	}
}

func (w *world) stillOpen() {
	w.t.Helper()
	if w.request.State != desk.Open || w.last.Final != nil {
		w.t.Fatalf("it has ended: %+v", w.last.Final)
	}
}

func (w *world) progress(want string) {
	w.t.Helper()
	if got := w.request.Progress.String(); got != want {
		w.t.Errorf("progress = %q, want %q", got, want)
	}
}

// sent lists the notices of a kind, as their targets.
func (w *world) sent(kind desk.NoticeKind) [][]string {
	var all [][]string
	for _, n := range w.notices {
		if n.Kind == kind {
			all = append(all, n.Targets)
		}
	}
	return all
}
