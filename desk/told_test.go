package desk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
)

// saturday is a time at which nobody is at work anywhere.
var saturday = time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)

// openAt is a request that is asked at another time than the others.
func openAt(t *testing.T, ask desk.Ask, at time.Time) *world {
	t.Helper()
	w := open(t, action())
	w.now, w.notices = at, nil
	change, err := desk.New(ask, w.env())
	if err != nil {
		t.Fatal(err)
	}
	w.take(change)
	return w
}

// until lets the clock do what is due up to a time.
func (w *world) until(t time.Time) {
	w.t.Helper()
	w.at(t.Sub(start))
}

// The rules give a request less time than the night of a region lasts: it was over before anybody heard of it. Better told at night than never.
func TestI17_WhatIsOverBeforeARegionWakesIsToldAtOnce(t *testing.T) {
	business := sun()
	business.Clock, business.DeadlineFrom = desk.BusinessClock, desk.FromCreated
	business.Steps[0].Notify = []string{"inbox"}
	late := sun()
	late.Steps = slices.Clone(late.Steps)
	late.Steps[0].At = d(30 * minute)
	for name, c := range map[string]struct {
		route desk.Route
		limit time.Duration
		want  string
	}{
		"a region that sleeps":           {sun(), 24 * hour, "[[slack:apac inbox]] at 0s, paged at 2h"},
		"a region that wakes in time":    {sun(), 40 * hour, "[[slack:apac inbox]] at 37h, paged at 39h"},
		"at the moment when it is over":  {sun(), 37 * hour, "[[slack:apac inbox]] at 0s, paged at 2h"},
		"business hours":                 {business, 24 * hour, "[[inbox]] at 0s, paged at "},
		"a first step that is not first": {late, 20 * minute, "[[slack:apac inbox]] at 0s, paged at "},
	} {
		t.Run(name, func(t *testing.T) {
			ask := action()
			ask.Route, ask.Need.Deadline = c.route, d(c.limit)
			w := openAt(t, ask, saturday)
			var told, paged desk.Duration
			var seen int
			got := func() string {
				text := fmt.Sprintf("%v at %s, paged at ", w.sent(desk.Notify), told)
				if len(w.sent(desk.Page)) > 0 {
					text += paged.String()
				}
				return text
			}
			for w.request.State == desk.Open {
				for _, n := range w.notices[seen:] {
					switch n.Kind {
					case desk.Notify:
						told = desk.Duration(w.now.Sub(saturday))
					case desk.Page:
						paged = desk.Duration(w.now.Sub(saturday))
					}
				}
				seen = len(w.notices)
				w.until(desk.Next(w.request, w.now))
			}
			if got() != c.want {
				t.Errorf("told %s, want %s", got(), c.want)
			}
			unique(t, w.notices)
		})
	}
}

// One rule sends it to a region that sleeps, another one to the inbox, and gives it four hours: whoever reads the inbox hears of it in these hours.
func TestI17_OfJoinedRoutesTheShorterTellsInTime(t *testing.T) {
	short := desk.Route{Name: "short", Steps: []desk.Step{{Notify: []string{"group:x"}}, {At: d(hour), Page: []string{"oncall:x"}}, {At: d(4 * hour), Expire: "stale"}}}
	for _, routes := range [][]desk.Route{{sun(), short}, {short, sun()}} {
		joined, err := desk.Join(routes...)
		if err != nil {
			t.Fatal(err)
		}
		ask := action()
		ask.Route = joined
		w := openAt(t, ask, saturday)
		w.until(saturday.Add(3 * hour))
		told := fmt.Sprint(w.sent(desk.Notify))
		if !slices.ContainsFunc(w.sent(desk.Notify), func(to []string) bool { return slices.Equal(to, []string{"group:x"}) }) || len(w.sent(desk.Page)) != 2 {
			t.Errorf("%s: told %s, paged %v", joined.Name, told, w.sent(desk.Page))
		}
	}
}

// One rule sends it to a region that sleeps, another one to the inbox, and pages: these do not wait for Monday, in whatever order the rules are. It was two days
// before anybody was told.
func TestI17_OfJoinedRoutesNoneHoldsUpAnother(t *testing.T) {
	first := desk.Route{Name: "inbox", Steps: []desk.Step{{Notify: []string{"group:x"}}, {At: d(hour), Page: []string{"oncall:x"}}, {At: d(96 * hour), Expire: "stale"}}}
	later := first
	later.Steps = slices.Clone(first.Steps)
	later.Steps[0].At = d(hour / 2)
	region := sun()
	region.Steps, region.Cap = slices.Clone(region.Steps), d(200*hour)
	region.Steps[len(region.Steps)-1].At = d(96 * hour)
	for _, routes := range [][]desk.Route{{region, first}, {first, region}, {region, later}, {later, region}} {
		joined, err := desk.Join(routes...)
		if err != nil {
			t.Fatal(err)
		}
		planned, err := desk.Simulate(joined, saturday, 20)
		if err != nil {
			t.Fatal(err)
		}
		at := make(map[string]desk.Duration)
		for _, p := range planned {
			at[strings.Join(p.Targets, " ")] = p.After
		}
		if at["group:x"] > d(hour/2) || at["oncall:x"] != d(hour) || len(at) < 4 {
			t.Errorf("%s:\n%s", joined.Name, desk.Render(planned, time.UTC))
		}
	}
	if both, err := desk.Join(sun(), sun()); err != nil || both.AtOnce {
		t.Errorf("two routes that wait for a region do not: %+v, %v", both, err)
	}
}

// On the business clock a cap is an end, too: it was lost beside a route that has none.
func TestJoin_TheEarliestEndCountsOnTheBusinessClock(t *testing.T) {
	capped := sun()
	capped.Clock, capped.DeadlineFrom, capped.Cap = desk.BusinessClock, desk.FromCreated, d(50*hour)
	free := capped
	free.Cap = 0
	for _, routes := range [][]desk.Route{{capped, free}, {free, capped}} {
		if joined, err := desk.Join(routes...); err != nil || joined.Cap != d(50*hour) {
			t.Errorf("cap %s, %v", joined.Cap, err)
		}
	}
}

// A first delivery makes the time short while the region still sleeps.
func TestI17_ADeadlineThatComesNearerDoesNotLeaveARegionUntold(t *testing.T) {
	ask := action()
	ask.Route = sun()
	w := openAt(t, ask, saturday)
	w.do(desk.Delegate{From: w.by("ann"), To: "bob"})
	w.do(desk.Delivered{Target: "user:bob", At: w.now})
	w.until(w.request.Deadline.Add(-1))
	if got := fmt.Sprint(w.sent(desk.Notify)); got != "[[user:bob] [slack:apac inbox]]" {
		t.Errorf("over on %s, told %s", w.request.Deadline, got)
	}
}

// Shortened so far that nothing of it is left, a route still tells somebody.
func TestWithin_SomebodyIsTold(t *testing.T) {
	patient := desk.Route{Name: "patient", Steps: []desk.Step{{At: d(hour), Notify: []string{"inbox"}}, {At: d(2 * hour), Page: []string{"oncall:x"}}, {At: d(3 * hour), Expire: "stale"}}}
	planned, err := desk.Simulate(patient.Within(time.Minute), start, 10)
	if err != nil || len(planned) != 2 || planned[0].Does != "notify" || planned[0].After != 0 {
		t.Errorf("%+v, %v", planned, err)
	}
	silent := desk.Route{Name: "silent", Steps: patient.Steps[2:]}
	if got := silent.Within(time.Minute).Steps; len(got) != 1 || got[0].Expire != "stale" {
		t.Errorf("a route that tells nobody has become %+v", got)
	}
}

// Somebody reads the inbox on Saturday and moves the deadline. That does not tell the region, which sleeps until Monday.
func TestExtend_DoesNotTellARegionThatSleeps(t *testing.T) {
	ask := action()
	ask.Route = sun()
	monday := saturday.Add(37 * hour)
	for name, before := range map[string]func(w *world){
		"at once":       func(*world) {},
		"after a pause": func(w *world) { w.do(desk.Snooze{From: w.by("ann"), Until: saturday.Add(hour)}) },
	} {
		t.Run(name, func(t *testing.T) {
			ask := ask
			ask.Route.DeadlineFrom, ask.Route.Steps = desk.FromCreated, slices.Clone(ask.Route.Steps)
			ask.Route.Steps[4].At = d(48 * hour)
			w := openAt(t, ask, saturday)
			before(w)
			w.do(desk.Extend{From: w.by("ann"), Until: saturday.Add(96 * hour)})
			w.until(monday)
			if got := fmt.Sprint(w.sent(desk.Notify)); got != "[[slack:apac inbox]]" {
				t.Errorf("on Monday: told %s", got)
			}
			w.do(desk.Snooze{From: w.by("ann"), Until: w.now.Add(hour)}) // which everybody was told of now
			w.request.Deadline = w.request.Deadline.Add(-hour)
			w.do(desk.Extend{From: w.by("ann"), Until: saturday.Add(96 * hour)})
			w.until(w.now.Add(minute))
			if got := len(w.sent(desk.Notify)); got != 1 {
				t.Errorf("told %d times: nobody is told what they know", got)
			}
		})
	}
}

// Whoever looked after it and has left the group is not the one to remind.
func TestClaimer_WhoHasLeftIsNobody(t *testing.T) {
	ask := action()
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
		{At: d(hour), Remind: []string{"claimer"}}, {At: d(2 * hour), Remind: []string{"claimer"}}, {At: d(3 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.do(desk.Claim{From: w.by("ann")})
	w.at(hour)
	w.leaves("ann")
	w.at(2 * hour)
	if got := fmt.Sprint(w.sent(desk.Remind)); got != "[[user:ann] [group:dba]]" {
		t.Errorf("reminded %s", got)
	}
}

// Two groups of the same people are two people, also after an edit that the rules want one of them for.
func TestI4_AMergeDoesNotMakeTwoPeopleOne(t *testing.T) {
	one, two := []desk.Group{group(1, "group:dba")}, []desk.Group{{From: []string{"group:dba"}, Widen: []string{"group:managers"}}, group(1, "group:dba")}
	other := []desk.Group{group(1, "group:finops")}
	for name, c := range map[string]struct {
		a, b []desk.Group
		want int
	}{"two with one": {two, one, 2}, "one with two": {one, two, 2}, "two with two": {two, two, 2}, "others with two": {other, two, 3}, "two with others": {two, other, 3}} {
		need := desk.Requirement{Groups: c.a}.Merge(desk.Requirement{Groups: c.b})
		people := 0
		for _, g := range need.Groups {
			people += max(1, g.Count)
		}
		if people != c.want {
			t.Errorf("%s: %d people for %+v", name, people, need.Groups)
		}
	}
	w := open(t, needing(two...))
	w.policy = func(json.RawMessage) (desk.Ruling, error) {
		return desk.Ruling{Need: &desk.Requirement{Groups: one, Editable: []string{""}}}, nil
	}
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.do(desk.Approve{From: w.by("bob")})
	w.stillOpen()
	w.do(desk.Approve{From: w.by("cleo")})
	w.ended(desk.Approved, "bob", "cleo")
}

// What is shown of a request that is over is how it ended, and not how it stood before somebody was back.
func TestProgress_IsThatOfTheEnd(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	w.do(desk.Approve{From: w.by("ann")})
	w.members["group:dba"] = []string{"bob"}
	w.do(desk.Approve{From: w.by("bob")})
	w.members["group:dba"] = []string{"bob", "ann"}
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "ann", "bob")
	w.progress("2 of 2")
}
