package desk_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// lister lists the groups of a static directory.
type lister struct{ desk.StaticDirectory }

func (l lister) People(_ context.Context, who string) ([]string, bool, error) {
	people, known := l.StaticDirectory[who]
	return people, known, nil
}

func TestDelegates_ListsEligibleOthers(t *testing.T) {
	for name, c := range map[string]struct {
		groups []requirement.Group
		want   []string
		all    bool
	}{
		"a group, without the requester and the author": {[]requirement.Group{group(1, "group:dba")}, []string{"bob", "cleo"}, true},
		"two groups":      {[]requirement.Group{group(1, "group:dba"), group(1, "group:finops")}, []string{"bob", "cleo", "fay"}, true},
		"a person":        {[]requirement.Group{group(1, "user:max", "user:ann")}, []string{"max"}, true},
		"anyone":          {[]requirement.Group{group(1, "anyone"), group(1, "user:max")}, []string{"max"}, false},
		"an unknown name": {[]requirement.Group{group(1, "group:gone", "group:finops")}, []string{"fay"}, false},
	} {
		w := open(t, specNeeding(c.groups...))
		got, all, err := desk.Delegates(t.Context(), w.request, "ann", w.members, lister{w.members})
		if err != nil || !slices.Equal(got, c.want) || all != c.all {
			t.Errorf("%s: %v, %v, %v", name, got, all, err)
		}
	}
}

func TestNextEscalation_IsTheStepThatFires(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.Route{Name: "r", Steps: []desk.Step{
		{Notify: []string{desk.TargetInbox}}, {At: hoursOf(1), Remind: []string{desk.TargetApprovers}}, {At: hoursOf(2), Page: []string{"oncall:dba"}}, {At: hoursOf(4), Expire: "stale"},
	}}
	w := open(t, ask)
	step, ok := w.request.NextEscalation()
	if !ok || !slices.Equal(step.Page, []string{"oncall:dba"}) {
		t.Fatalf("%+v, %v", step, ok)
	}
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(time.Hour)})
	if step, ok := w.request.NextEscalation(); !ok || len(step.Page) == 0 {
		t.Errorf("snoozed: %+v, %v", step, ok)
	}
	w.apply(desk.Escalate{From: w.from("ann")})
	if step, ok := w.request.NextEscalation(); ok {
		t.Errorf("after the last step: %+v", step)
	}
	verbs, err := desk.AllowedVerbs(w.request, "ann", w.members)
	if err != nil || slices.Contains(verbs, requirement.VerbEscalate) {
		t.Errorf("%v, %v: escalate is offered without a step", verbs, err)
	}
	w.request.Requirement.OnEscalate = requirement.EscalateReturns
	if verbs, _ := desk.AllowedVerbs(w.request, "ann", w.members); !slices.Contains(verbs, requirement.VerbEscalate) {
		t.Errorf("%v: a return needs no step", verbs)
	}
}

func TestLatestDeadline_IsTheLastThatExtendAccepts(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.DefaultRoute(desk.DefaultPage)
	ask.Route.Cap = hoursOf(30)
	w := open(t, ask)
	last := w.request.LatestDeadline()
	if !last.Equal(start.Add(30 * time.Hour)) {
		t.Fatalf("latest deadline %s", last)
	}
	w.mustRefuse("bad_time", desk.Extend{From: w.from("ann"), Until: last.Add(time.Second)})
	w.apply(desk.Extend{From: w.from("ann"), Until: last})
	if verbs, _ := desk.AllowedVerbs(w.request, "ann", w.members); slices.Contains(verbs, requirement.VerbExtend) {
		t.Errorf("%v: it cannot be extended further", verbs)
	}
}
