package desk_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// fixture is a request, a clock, and the people around it.
type fixture struct {
	t       testing.TB
	now     time.Time
	members desk.StaticDirectory
	args    json.RawMessage
	policy  desk.EditPolicy
	request desk.Request
	last    desk.Change
	notices []desk.Notice
}

var (
	start    = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC) // a Monday
	dropArgs = json.RawMessage(`{"table":"users","limit":100}`)
)

// actionSpec is a request to one dba. rita is the requester, arno is the author.
func actionSpec() desk.RequestSpec {
	digest, err := fermata.ApprovalRequest{Action: "drop"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: dropArgs})
	if err != nil {
		panic(err)
	}
	return desk.RequestSpec{
		ID: "int_1", Args: dropArgs, Route: desk.DefaultRoute(desk.DefaultPage),
		Subject: desk.Subject{Kind: "approval", Action: "drop", ActionDigest: digest, ShownDigest: "shown", Requester: "rita", Authors: []string{"arno"}},
		Requirement: requirement.Requirement{
			Groups:   []requirement.Group{{From: []string{"group:dba"}}},
			Exclude:  []requirement.Duty{requirement.DutyRequester, requirement.DutyAuthor, requirement.DutyLastEditor},
			Editable: []string{"/limit"},
		},
	}
}

// questionSpec is a request to one dba for an answer.
func questionSpec() desk.RequestSpec {
	ask := actionSpec()
	ask.Subject.Action, ask.Subject.ActionDigest, ask.Args = "", "", nil
	ask.Subject.Kind = "review"
	return ask
}

func specNeeding(groups ...requirement.Group) desk.RequestSpec {
	ask := actionSpec()
	ask.Requirement.Groups = groups
	return ask
}

func group(count int, from ...string) requirement.Group {
	return requirement.Group{From: from, Count: count}
}

func open(t testing.TB, ask desk.RequestSpec) *fixture {
	t.Helper()
	w := &fixture{t: t, now: start, args: dropArgs, members: desk.StaticDirectory{
		"group:dba":      {"ann", "bob", "cleo", "rita", "arno"},
		"group:finops":   {"ann", "fay"},
		"group:managers": {"max"},
	}}
	change, err := desk.New(ask, w.env())
	if err != nil {
		t.Fatal(err)
	}
	w.accept(change)
	return w
}

func (w *fixture) env() desk.Env {
	return desk.Env{Now: w.now, Directory: w.members, Args: w.args, Policy: w.policy}
}

// accept encodes and decodes the document, as a store does.
func (w *fixture) accept(change desk.Change) {
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

// from returns an actor that saw the current request.
func (w *fixture) from(person string) desk.From {
	return desk.From{
		Actor: desk.PersonActor(person, requirement.AuthSSO), Via: "web",
		Seen: desk.Seen{Rev: w.request.Rev, Digest: w.request.Digest()},
	}
}

// leave removes a person from group:dba.
func (w *fixture) leave(person string) {
	w.members["group:dba"] = slices.DeleteFunc(slices.Clone(w.members["group:dba"]), func(p string) bool { return p == person })
}

func (w *fixture) fromRun() desk.From {
	return desk.From{Actor: desk.Actor{ID: "run", Kind: desk.ActorAgent}}
}

// apply applies a command that must succeed.
func (w *fixture) apply(act desk.Command) desk.Change {
	w.t.Helper()
	before := w.text()
	change, err := desk.Apply(w.request, act, w.env())
	if err != nil {
		w.t.Fatalf("%T: %v", act, err)
	}
	if after := w.text(); after != before {
		w.t.Fatalf("%T has changed its input:\n%s\n%s", act, before, after)
	}
	w.accept(change)
	return change
}

func (w *fixture) text() string {
	w.t.Helper()
	text, err := w.request.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// mustRefuse applies a command that must be refused.
func (w *fixture) mustRefuse(code string, act desk.Command) error {
	w.t.Helper()
	change, err := desk.Apply(w.request, act, w.env())
	if got := desk.Code(err); got != code || err == nil {
		w.t.Fatalf("%T: %v (%s), want it refused with %s", act, err, got, code)
	}
	if change.Changed() || change.Decision != nil || len(change.Notices) > 0 {
		w.t.Fatalf("%T was refused but has changed something: %+v", act, change)
	}
	return err
}

// advanceTo moves the clock from timer to timer, up to a time after the creation.
func (w *fixture) advanceTo(after time.Duration) {
	w.t.Helper()
	to := start.Add(after)
	for n := 0; ; n++ {
		if n > 100 {
			w.t.Fatalf("the next timer stays at %s", w.now)
		}
		next := desk.NextDue(w.request, w.now)
		if next.IsZero() || next.After(to) {
			break
		}
		w.now = latest(w.now, next)
		w.apply(desk.Tick{})
	}
	w.now = latest(w.now, to)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *fixture) mustEnd(outcome desk.Outcome, by ...string) {
	w.t.Helper()
	f := w.last.Decision
	if f == nil || f.Outcome != outcome || !slices.Equal(f.By, by) {
		w.t.Fatalf("decision = %+v, want %s by %v", f, outcome, by)
	}
	if w.request.State != outcome.State() || w.request.Decision == nil {
		w.t.Fatalf("state = %s after %s", w.request.State, outcome)
	}
}

func (w *fixture) mustBeOpen() {
	w.t.Helper()
	if w.request.State != desk.StateOpen || w.last.Decision != nil {
		w.t.Fatalf("it is closed: %+v", w.last.Decision)
	}
}

func (w *fixture) mustHaveProgress(want string) {
	w.t.Helper()
	if got := w.request.VoteProgress.String(); got != want {
		w.t.Errorf("progress = %q, want %q", got, want)
	}
}

// sentTargets returns the targets of the notices of a kind.
func (w *fixture) sentTargets(kind desk.NoticeKind) [][]string {
	var all [][]string
	for _, n := range w.notices {
		if n.Kind == kind {
			all = append(all, n.Targets)
		}
	}
	return all
}
