package desk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// saturday is a time at which every region is closed.
var saturday = time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)

// openAt creates a request at another time.
func openAt(t *testing.T, ask desk.RequestSpec, at time.Time) *fixture {
	t.Helper()
	w := open(t, actionSpec())
	w.now, w.notices = at, nil
	change, err := desk.New(ask, w.env())
	if err != nil {
		t.Fatal(err)
	}
	w.accept(change)
	return w
}

// tickUntil runs the timers up to a time.
func (w *fixture) tickUntil(t time.Time) {
	w.t.Helper()
	w.advanceTo(t.Sub(start))
}

// The rules give a request less time than a region is closed. It is notified at once, at night,
// because it would expire before the region opens.
func TestI17_RequestThatExpiresBeforeRegionOpensIsNotifiedAtOnce(t *testing.T) {
	business := followTheSunRoute()
	business.Clock, business.DeadlineFrom = desk.BusinessClock, desk.DeadlineFromCreated
	business.Steps[0].Notify = []string{"inbox"}
	late := followTheSunRoute()
	late.Steps = slices.Clone(late.Steps)
	late.Steps[0].At = dur(30 * minute)
	for name, c := range map[string]struct {
		route desk.Route
		limit time.Duration
		want  string
	}{
		"region is closed":             {followTheSunRoute(), 24 * hour, "[[slack:apac inbox]] at 0s, paged at 2h"},
		"region opens in time":         {followTheSunRoute(), 40 * hour, "[[slack:apac inbox]] at 37h, paged at 39h"},
		"region opens at the deadline": {followTheSunRoute(), 37 * hour, "[[slack:apac inbox]] at 0s, paged at 2h"},
		"business hours":               {business, 24 * hour, "[[inbox]] at 0s, paged at "},
		"first step at a later time":   {late, 20 * minute, "[[slack:apac inbox]] at 0s, paged at "},
	} {
		t.Run(name, func(t *testing.T) {
			ask := actionSpec()
			ask.Route, ask.Requirement.Deadline = c.route, dur(c.limit)
			w := openAt(t, ask, saturday)
			var told, paged timespan.Duration
			var seen int
			got := func() string {
				text := fmt.Sprintf("%v at %s, paged at ", w.sentTargets(desk.NoticeNotify), told)
				if len(w.sentTargets(desk.NoticePage)) > 0 {
					text += paged.String()
				}
				return text
			}
			for w.request.State == desk.StateOpen {
				for _, n := range w.notices[seen:] {
					switch n.Kind {
					case desk.NoticeNotify:
						told = timespan.Duration(w.now.Sub(saturday))
					case desk.NoticePage:
						paged = timespan.Duration(w.now.Sub(saturday))
					}
				}
				seen = len(w.notices)
				w.tickUntil(desk.NextDue(w.request, w.now))
			}
			if got() != c.want {
				t.Errorf("told %s, want %s", got(), c.want)
			}
			mustHaveUniqueKeys(t, w.notices)
		})
	}
}

// One rule routes to a closed region, another to the inbox with a deadline of four hours. The inbox
// is notified within these hours.
func TestI17_JoinedRoutesNotifyBeforeShorterExpiry(t *testing.T) {
	short := desk.Route{Name: "short", Steps: []desk.Step{{Notify: []string{"group:x"}}, {At: dur(hour), Page: []string{"oncall:x"}}, {At: dur(4 * hour), Expire: "stale"}}}
	for _, routes := range [][]desk.Route{{followTheSunRoute(), short}, {short, followTheSunRoute()}} {
		joined, err := desk.Join(routes...)
		if err != nil {
			t.Fatal(err)
		}
		ask := actionSpec()
		ask.Route = joined
		w := openAt(t, ask, saturday)
		w.tickUntil(saturday.Add(3 * hour))
		told := fmt.Sprint(w.sentTargets(desk.NoticeNotify))
		if !slices.ContainsFunc(w.sentTargets(desk.NoticeNotify), func(to []string) bool { return slices.Equal(to, []string{"group:x"}) }) || len(w.sentTargets(desk.NoticePage)) != 2 {
			t.Errorf("%s: told %s, paged %v", joined.Name, told, w.sentTargets(desk.NoticePage))
		}
	}
}

// One rule routes to a closed region, another to the inbox with a page. The inbox step and the page
// do not wait for Monday, in any order of the rules.
func TestI17_JoinedRoutesDoNotDelayEachOther(t *testing.T) {
	first := desk.Route{Name: "inbox", Steps: []desk.Step{{Notify: []string{"group:x"}}, {At: dur(hour), Page: []string{"oncall:x"}}, {At: dur(96 * hour), Expire: "stale"}}}
	later := first
	later.Steps = slices.Clone(first.Steps)
	later.Steps[0].At = dur(hour / 2)
	region := followTheSunRoute()
	region.Steps, region.Cap = slices.Clone(region.Steps), dur(200*hour)
	region.Steps[len(region.Steps)-1].At = dur(96 * hour)
	for _, routes := range [][]desk.Route{{region, first}, {first, region}, {region, later}, {later, region}} {
		joined, err := desk.Join(routes...)
		if err != nil {
			t.Fatal(err)
		}
		planned, err := desk.Simulate(joined, saturday, 20)
		if err != nil {
			t.Fatal(err)
		}
		at := make(map[string]timespan.Duration)
		for _, p := range planned {
			at[strings.Join(p.Targets, " ")] = p.After
		}
		if at["group:x"] > dur(hour/2) || at["oncall:x"] != dur(hour) || len(at) < 4 {
			t.Errorf("%s:\n%s", joined.Name, desk.FormatPlan(planned, time.UTC))
		}
	}
	if both, err := desk.Join(followTheSunRoute(), followTheSunRoute()); err != nil || both.StartImmediately {
		t.Errorf("two routes that wait for a region must wait when joined: %+v, %v", both, err)
	}
}

// On the business clock a cap is also an expiry. Joining with a route without a cap must keep it.
func TestJoin_EarliestExpiryCountsOnBusinessClock(t *testing.T) {
	capped := followTheSunRoute()
	capped.Clock, capped.DeadlineFrom, capped.Cap = desk.BusinessClock, desk.DeadlineFromCreated, dur(50*hour)
	free := capped
	free.Cap = 0
	for _, routes := range [][]desk.Route{{capped, free}, {free, capped}} {
		if joined, err := desk.Join(routes...); err != nil || joined.Cap != dur(50*hour) {
			t.Errorf("cap %s, %v", joined.Cap, err)
		}
	}
}

// The first delivery shortens the deadline while the region is closed.
func TestI17_EarlierDeadlineStillNotifiesRegion(t *testing.T) {
	ask := actionSpec()
	ask.Route = followTheSunRoute()
	w := openAt(t, ask, saturday)
	w.apply(desk.Delegate{From: w.from("ann"), To: "bob"})
	w.apply(desk.RecordDelivery{Target: "user:bob", At: w.now})
	w.tickUntil(w.request.Deadline.Add(-1))
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify)); got != "[[user:bob] [slack:apac inbox]]" {
		t.Errorf("expires on %s, notified %s", w.request.Deadline, got)
	}
}

// A route that is shortened to almost nothing still notifies someone.
func TestWithDeadline_KeepsFirstNotification(t *testing.T) {
	patient := desk.Route{Name: "patient", Steps: []desk.Step{{At: dur(hour), Notify: []string{"inbox"}}, {At: dur(2 * hour), Page: []string{"oncall:x"}}, {At: dur(3 * hour), Expire: "stale"}}}
	planned, err := desk.Simulate(patient.WithDeadline(time.Minute), start, 10)
	if err != nil || len(planned) != 2 || planned[0].Action != "notify" || planned[0].After != 0 {
		t.Errorf("%+v, %v", planned, err)
	}
	silent := desk.Route{Name: "silent", Steps: patient.Steps[2:]}
	if got := silent.WithDeadline(time.Minute).Steps; len(got) != 1 || got[0].Expire != "stale" {
		t.Errorf("a route without notices has become %+v", got)
	}
}

// An approver extends the deadline on Saturday. The region, which is closed until Monday, is not
// notified by that.
func TestExtend_DoesNotNotifyClosedRegion(t *testing.T) {
	ask := actionSpec()
	ask.Route = followTheSunRoute()
	monday := saturday.Add(37 * hour)
	for name, before := range map[string]func(w *fixture){
		"at once":       func(*fixture) {},
		"after a pause": func(w *fixture) { w.apply(desk.Snooze{From: w.from("ann"), Until: saturday.Add(hour)}) },
	} {
		t.Run(name, func(t *testing.T) {
			ask := ask
			ask.Route.DeadlineFrom, ask.Route.Steps = desk.DeadlineFromCreated, slices.Clone(ask.Route.Steps)
			ask.Route.Steps[4].At = dur(48 * hour)
			w := openAt(t, ask, saturday)
			before(w)
			w.apply(desk.Extend{From: w.from("ann"), Until: saturday.Add(96 * hour)})
			w.tickUntil(monday)
			if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify)); got != "[[slack:apac inbox]]" {
				t.Errorf("on Monday: notified %s", got)
			}
			w.apply(desk.Snooze{From: w.from("ann"), Until: w.now.Add(hour)}) // already notified
			w.request.Deadline = w.request.Deadline.Add(-hour)
			w.apply(desk.Extend{From: w.from("ann"), Until: saturday.Add(96 * hour)})
			w.tickUntil(w.now.Add(minute))
			if got := len(w.sentTargets(desk.NoticeNotify)); got != 1 {
				t.Errorf("notified %d times; no notice must be repeated", got)
			}
		})
	}
}

// A claimer who has left the group is not reminded.
func TestTargetClaimer_FormerMemberFallsBackToApprovers(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
		{At: dur(hour), Remind: []string{"claimer"}}, {At: dur(2 * hour), Remind: []string{"claimer"}}, {At: dur(3 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.apply(desk.Claim{From: w.from("ann")})
	w.advanceTo(hour)
	w.leave("ann")
	w.advanceTo(2 * hour)
	if got := fmt.Sprint(w.sentTargets(desk.NoticeRemind)); got != "[[user:ann] [group:dba]]" {
		t.Errorf("reminded %s", got)
	}
}

// Two groups of the same people are two people, also after an edit for which the rules require one
// of them.
func TestI4_MergeKeepsTwoPeopleRequired(t *testing.T) {
	one, two := []requirement.Group{group(1, "group:dba")}, []requirement.Group{{From: []string{"group:dba"}, Widen: []string{"group:managers"}}, group(1, "group:dba")}
	other := []requirement.Group{group(1, "group:finops")}
	for name, c := range map[string]struct {
		a, b []requirement.Group
		want int
	}{"two with one": {two, one, 2}, "one with two": {one, two, 2}, "two with two": {two, two, 2}, "others with two": {other, two, 3}, "two with others": {two, other, 3}} {
		need := requirement.Requirement{Groups: c.a}.Merge(requirement.Requirement{Groups: c.b})
		people := 0
		for _, g := range need.Groups {
			people += max(1, g.Count)
		}
		if people != c.want {
			t.Errorf("%s: %d people for %+v", name, people, need.Groups)
		}
	}
	w := open(t, specNeeding(two...))
	w.policy = func(json.RawMessage) (desk.EditRuling, error) {
		return desk.EditRuling{Requirement: &requirement.Requirement{Groups: one, Editable: []string{""}}}, nil
	}
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustBeOpen()
	w.apply(desk.Approve{From: w.from("cleo")})
	w.mustEnd(desk.OutcomeApproved, "bob", "cleo")
}

// The progress of a closed request is that of the decision, not of an earlier count.
func TestVoteProgress_IsFinalAfterDecision(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("ann")})
	w.members["group:dba"] = []string{"bob"}
	w.apply(desk.Approve{From: w.from("bob")})
	w.members["group:dba"] = []string{"bob", "ann"}
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "ann", "bob")
	w.mustHaveProgress("2 of 2")
}
