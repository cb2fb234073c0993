package desk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/desk/hours"
)

const (
	minute = time.Minute
	hour   = time.Hour
)

func d(t time.Duration) desk.Duration { return desk.Duration(t) }

func TestDefaultRoute_TellsRemindsPagesAndExpires(t *testing.T) {
	w := open(t, action())
	if got := w.sent(desk.Notify); len(got) != 1 || got[0][0] != "inbox" {
		t.Errorf("at the beginning: %v", got)
	}
	w.at(30*minute - 1)
	if got := w.sent(desk.Remind); len(got) != 0 {
		t.Errorf("reminded too early: %v", got)
	}
	w.at(2 * hour)
	if got := fmt.Sprint(w.sent(desk.Remind), w.sent(desk.Page)); got != "[[inbox]] [[oncall:default]]" {
		t.Errorf("after two hours: %s", got)
	}
	w.at(24 * hour)
	w.ended(desk.Lapsed)
	if w.last.Final.Reason != "stale" || !w.last.Final.At.Equal(start.Add(24*hour)) {
		t.Errorf("final = %+v", w.last.Final)
	}
	if got := w.sent(desk.Resolve); len(got) != 1 || got[0][0] != "oncall:default" {
		t.Errorf("the page is not resolved: %v", got)
	}
	if got := w.sent(desk.TellRequester); len(got) != 1 || got[0][0] != "user:rita" {
		t.Errorf("the requester is not told: %v", got)
	}
}

func TestI11_ExpiredIsNeitherRejectedNorApproved(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	w.do(desk.Approve{From: w.by("ann")})
	w.at(24 * hour)
	w.ended(desk.Lapsed)
	if w.request.State != desk.Expired || w.last.Final.Digest != "" {
		t.Errorf("state %s, %+v", w.request.State, w.last.Final)
	}
}

func TestI10_NothingIsDecidedAtOrAfterTheDeadline(t *testing.T) {
	w := open(t, action())
	w.now = w.request.Deadline
	err := w.refused("expired", desk.Approve{From: w.by("ann")})
	if over, ok := errors.AsType[*desk.OverError](err); !ok || over.Outcome != desk.Lapsed || !over.At.Equal(w.request.Deadline) {
		t.Errorf("%+v", err)
	}
	w.now = w.now.Add(-time.Nanosecond)
	w.do(desk.Approve{From: w.by("ann")})
	w.ended(desk.Approved, "ann")
	w.now = w.request.Deadline.Add(hour)
	if w.do(desk.Tick{}).Changed() {
		t.Error("the clock acts after the decision")
	}
}

func TestI10_AStepHasItsTurnOnce(t *testing.T) {
	w := open(t, action())
	before := w.request
	w.now = start.Add(2 * hour)
	first := w.do(desk.Tick{})
	for range 3 {
		if w.do(desk.Tick{}).Changed() {
			t.Fatal("the same tick acts again")
		}
	}
	// A second replica that read the row before it was written makes the same notices, and the outbox knows their keys.
	second, err := desk.Apply(before, desk.Tick{}, w.env())
	if err != nil || keys(second.Notices) != keys(first.Notices) {
		t.Errorf("%s, %v; want %s", keys(second.Notices), err, keys(first.Notices))
	}
}

func keys(notices []desk.Notice) string {
	var all []string
	for _, n := range notices {
		all = append(all, n.Key)
	}
	return strings.Join(all, " ")
}

func TestDowntime_GivesNoBurstOfOldReminders(t *testing.T) {
	ask := action()
	ask.Route = desk.Route{Name: "noisy", Steps: []desk.Step{
		{At: 0, Notify: []string{"inbox"}},
		{At: d(10 * minute), Remind: []string{"slack:a"}},
		{At: d(20 * minute), Remind: []string{"slack:b"}},
		{At: d(30 * minute), Remind: []string{"slack:c"}},
		{At: d(hour), Page: []string{"oncall:x"}},
		{At: d(24 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.now = start.Add(50 * minute)
	w.do(desk.Tick{})
	if got := fmt.Sprint(w.sent(desk.Remind)); got != "[[slack:c]]" {
		t.Errorf("reminders after 50 minutes of downtime: %s, want the last one", got)
	}
	w = open(t, ask)
	w.now = start.Add(2 * hour)
	w.do(desk.Tick{})
	if got := fmt.Sprint(w.sent(desk.Remind), w.sent(desk.Page)); got != "[] [[oncall:x]]" {
		t.Errorf("after two hours of downtime: %s, want the page alone", got)
	}
}

func TestRemind_IsSkippedIf(t *testing.T) {
	for name, test := range map[string]struct {
		skip  desk.Condition
		does  func(w *world)
		skips bool
	}{
		"nobody did anything":     {desk.IfViewed, func(*world) {}, false},
		"somebody saw it":         {desk.IfViewed, func(w *world) { w.do(desk.View{From: w.by("ann")}) }, true},
		"the requester saw it":    {desk.IfViewed, func(w *world) { w.do(desk.View{From: w.by("rita")}) }, false},
		"somebody claimed it":     {desk.IfClaimed, func(w *world) { w.do(desk.Claim{From: w.by("ann")}) }, true},
		"and gave it back":        {desk.IfClaimed, func(w *world) { w.do(desk.Claim{From: w.by("ann")}); w.do(desk.Release{From: w.by("ann")}) }, false},
		"the run owes an answer":  {desk.IfAsked, func(w *world) { w.do(desk.AskBack{From: w.by("ann"), Question: "?"}) }, true},
		"somebody has voted":      {desk.IfVoted, func(w *world) { w.do(desk.Approve{From: w.by("ann")}) }, true},
		"who claimed it has left": {desk.IfClaimed, func(w *world) { w.do(desk.Claim{From: w.by("ann")}); w.leaves("ann") }, false},
		"who saw it has left":     {desk.IfViewed, func(w *world) { w.do(desk.View{From: w.by("ann")}); w.leaves("ann") }, false},
		"who voted has left":      {desk.IfVoted, func(w *world) { w.do(desk.Approve{From: w.by("ann")}); w.leaves("ann") }, false},
		"claimed is not voted":    {desk.IfVoted, func(w *world) { w.do(desk.Claim{From: w.by("ann")}) }, false},
		"seen before it was moved": {desk.IfViewed, func(w *world) {
			w.do(desk.View{From: w.by("ann")})
			w.do(desk.Snooze{From: w.by("ann"), Until: w.now.Add(minute)})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ask := needing(group(2, "group:dba"))
			ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
				{At: d(10 * minute), Remind: []string{"inbox"}, SkipIf: []desk.Condition{test.skip}}, {At: d(hour), Expire: "stale"},
			}}
			w := open(t, ask)
			test.does(w)
			w.at(20 * minute)
			if got := len(w.sent(desk.Remind)) == 0; got != test.skips {
				t.Errorf("skipped = %v", got)
			}
		})
	}
}

// Whoever still has what was asked first in front of them has not seen the edit.
func TestView_OfWhatIsNoLongerAskedIsNone(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	old := w.by("bob")
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: []byte(`{"table":"users","limit":5}`)})
	if w.do(desk.View{From: old}).Changed() {
		t.Error("they saw something else")
	}
	if !w.do(desk.View{From: w.by("bob")}).Changed() {
		t.Error("now they saw it")
	}
}

func TestView_CountsAgainWhenTheRouteBeginsAnew(t *testing.T) {
	w := open(t, action())
	w.do(desk.View{From: w.by("ann")})
	w.do(desk.Snooze{From: w.by("ann"), Until: start.Add(hour)})
	w.at(hour)
	if !w.do(desk.View{From: w.by("ann")}).Changed() || w.do(desk.View{From: w.by("ann")}).Changed() {
		t.Error("a view counts once in an epoch")
	}
	if v := w.request.Views; len(v) != 1 || !v[0].At.Equal(start) || !v[0].Again.Equal(start.Add(hour)) {
		t.Errorf("views = %+v", v)
	}
	w.at(2 * hour)
	if n := len(w.sent(desk.Remind)); n != 0 {
		t.Errorf("reminded %d times", n)
	}
}

func TestSnooze_IsOverWhenTheRouteBeginsAnew(t *testing.T) {
	w := open(t, action())
	w.do(desk.Snooze{From: w.by("ann"), Until: start.Add(10 * hour)})
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	if n := len(w.sent(desk.Notify)); n != 2 || !w.request.Snoozed.IsZero() {
		t.Errorf("%d notices, snoozed until %s: people must know of the edit", n, w.request.Snoozed)
	}
}

func TestWiden_LetsMorePeopleDecideAsFarAsPermitted(t *testing.T) {
	ask := needing(desk.Group{From: []string{"group:dba"}, Widen: []string{"group:managers"}})
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
		{At: d(hour), Notify: []string{"approvers"}, Widen: []string{"group:managers", "group:finops"}}, {At: d(2 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.refused("not_member", desk.Approve{From: w.by("max")})
	w.at(hour)
	w.progress("0 of 1, needs 1 × dba or managers")
	if got := fmt.Sprint(w.sent(desk.Notify)); got != "[[group:dba group:managers]]" {
		t.Errorf("told %s", got)
	}
	w.refused("not_member", desk.Approve{From: w.by("fay")}) // the route names finops, the requirement does not
	w.do(desk.Approve{From: w.by("max")})
	w.ended(desk.Approved, "max")
}

func TestSnooze_IsQuietAndTheRouteBeginsAnew(t *testing.T) {
	w := open(t, action())
	w.at(10 * minute)
	w.refused("bad_time", desk.Snooze{From: w.by("ann"), Until: w.request.Deadline})
	w.refused("bad_time", desk.Snooze{From: w.by("ann"), Until: w.now})
	deadline := w.request.Deadline
	w.do(desk.Snooze{From: w.by("ann"), Until: start.Add(5 * hour)})
	if w.request.Place.Epoch != 2 || !w.request.Deadline.Equal(deadline) {
		t.Errorf("epoch %d, deadline %s", w.request.Place.Epoch, w.request.Deadline)
	}
	w.at(5*hour - 1)
	if n := len(w.sent(desk.Remind)) + len(w.sent(desk.Page)) + len(w.sent(desk.Notify)); n != 1 {
		t.Errorf("%d notices, want the one from before", n)
	}
	w.at(5 * hour)
	if n := len(w.sent(desk.Notify)); n != 2 || slices.Contains(w.request.Marks(), desk.MarkSnoozed) {
		t.Errorf("%d notices after the snooze, marks %v", n, w.request.Marks())
	}
	w.at(7 * hour)
	if n := len(w.sent(desk.Page)); n != 1 {
		t.Errorf("%d pages two hours after the snooze", n)
	}
	unique(t, w.notices)
}

func TestExtend_MovesTheDeadlineUpToTheCap(t *testing.T) {
	w := open(t, action())
	w.at(20 * hour)
	w.refused("bad_time", desk.Extend{From: w.by("ann"), Until: w.request.Deadline})
	w.refused("bad_time", desk.Extend{From: w.by("ann"), Until: start.Add(72*hour + 1)})
	w.do(desk.Extend{From: w.by("ann"), Until: start.Add(72 * hour)})
	w.at(72*hour - 1)
	w.stillOpen()
	if got := fmt.Sprint(w.sent(desk.Notify), w.sent(desk.Remind), w.sent(desk.Page)); got != "[[inbox]] [[inbox] [inbox]] [[oncall:default] [oncall:default]]" {
		t.Errorf("told %s", got)
	}
	unique(t, w.notices)
	w.at(72 * hour)
	w.ended(desk.Lapsed)

	ask := action()
	ask.Need.Deadline = d(hour)
	w = open(t, ask)
	w.refused("bad_time", desk.Extend{From: w.by("ann"), Until: start.Add(2 * hour)}) // what a policy limits, nobody extends
	w.at(hour)
	w.ended(desk.Lapsed)
}

func unique(t *testing.T, notices []desk.Notice) {
	t.Helper()
	seen := map[string]bool{}
	for _, n := range notices {
		if seen[n.Key] {
			t.Errorf("two notices have the key %s", n.Key)
		}
		seen[n.Key] = true
	}
}

func TestEscalate_TakesTheNextStepNow(t *testing.T) {
	w := open(t, action())
	w.do(desk.Escalate{From: w.by("ann"), Reason: "urgent"})
	if got := fmt.Sprint(w.sent(desk.Remind), w.sent(desk.Page)); got != "[] [[oncall:default]]" {
		t.Errorf("told %s, want a page", got)
	}
	w.refused("no_step", desk.Escalate{From: w.by("ann")})
	w.at(3 * hour)
	if n := len(w.sent(desk.Page)); n != 1 {
		t.Errorf("paged %d times", n)
	}
	w.do(desk.Approve{From: w.by("ann")})
	if got := fmt.Sprint(w.sent(desk.Resolve)); got != "[[oncall:default]]" {
		t.Errorf("resolved %s", got)
	}
}

func TestOnTimeout_EscalateSaysEverythingAndLetsTheRouteEnd(t *testing.T) {
	ask := action()
	ask.Need.Deadline, ask.Need.OnTimeout = d(hour), desk.EscalateOnTimeout
	w := open(t, ask)
	w.at(hour)
	w.stillOpen()
	if got := fmt.Sprint(w.sent(desk.Page)); got != "[[oncall:default]]" {
		t.Errorf("paged %s", got)
	}
	w.at(24*hour - 1)
	w.stillOpen()
	w.at(24 * hour)
	w.ended(desk.Lapsed)
	unique(t, w.notices)
}

func TestDeadline_FromDeliveryWithACap(t *testing.T) {
	ask := action()
	ask.Route = desk.DefaultRoute()
	ask.Route.DeadlineFrom, ask.Route.Cap = desk.FromDelivered, d(30*hour)
	w := open(t, ask)
	deadline := func(want time.Duration) {
		t.Helper()
		if got := w.request.Deadline.Sub(start); got != want {
			t.Errorf("the deadline is after %s, want %s", got, want)
		}
	}
	deadline(30 * hour)
	w.at(3 * hour)
	w.do(desk.Delivered{Target: "slack:a", At: start.Add(2 * hour)})
	deadline(26 * hour)
	w.do(desk.Delivered{Target: "mail:b", At: start.Add(3 * hour)})
	deadline(26 * hour)

	for _, wrong := range []time.Duration{99 * hour, -5 * hour} { // a channel whose clock is wrong
		w = open(t, ask)
		w.at(2 * hour)
		w.do(desk.Delivered{Target: "slack:a", At: start.Add(wrong)})
		deadline(26 * hour)
	}
	w = open(t, ask)
	w.at(10 * hour)
	w.do(desk.Delivered{Target: "slack:a", At: w.now})
	deadline(30 * hour)
}

// A pager knows a page and its all-clear by the incident. That of a question that is asked again is another one: an all-clear that comes late must
// not silence the new page.
func TestIncident_IsThatOfOneAsking(t *testing.T) {
	incident := func(asked time.Time) string {
		w := open(t, action())
		w.now = asked
		change, err := desk.New(action(), w.env())
		if err != nil {
			t.Fatal(err)
		}
		w.take(change)
		w.now = asked.Add(3 * hour)
		w.do(desk.Tick{})
		w.do(desk.Approve{From: w.by("ann")})
		named := make(map[string][]desk.NoticeKind)
		for _, n := range w.notices {
			if n.Kind == desk.Page || n.Kind == desk.Resolve {
				named[n.Incident] = append(named[n.Incident], n.Kind)
			}
		}
		for name, kinds := range named {
			if len(named) == 1 && fmt.Sprint(kinds) == "[page resolve]" {
				return name
			}
		}
		t.Fatalf("the incidents are %v", named)
		return ""
	}
	if first, again := incident(start), incident(start.Add(time.Minute)); first == again {
		t.Errorf("both are %s", first)
	}
}

func TestOutage_GivesPeopleTime(t *testing.T) {
	w := open(t, action())
	w.at(20 * hour)
	w.now = start.Add(30 * hour)
	w.do(desk.Outage{Start: start.Add(21 * hour), End: w.now})
	w.do(desk.Tick{})
	w.stillOpen()
	if want := w.now.Add(15 * minute); !w.request.Deadline.Equal(want) {
		t.Errorf("the deadline is %s, want %s", w.request.Deadline, want)
	}
	if w.do(desk.Outage{Start: start.Add(21 * hour), End: w.now}).Changed() {
		t.Error("the same outage counts twice")
	}
	w.do(desk.Approve{From: w.by("ann")})
	w.ended(desk.Approved, "ann")

	w = open(t, action())
	w.now = start.Add(30 * hour)
	if w.do(desk.Outage{Start: start.Add(25 * hour), End: w.now}).Changed() {
		t.Error("an outage after the deadline moves it")
	}
	w.do(desk.Tick{})
	w.ended(desk.Lapsed)
	if w.do(desk.Outage{Start: start, End: w.now}).Changed() {
		t.Error("an outage opens what is over")
	}
}

// What is asked after an outage has the time that it was given: for a quarter of an hour after a long deploy, every shorter deadline was put off.
func TestOutage_IsOverForWhatIsAskedLater(t *testing.T) {
	w := open(t, action())
	w.now = start.Add(24*hour - minute)
	if w.do(desk.Outage{Start: start.Add(-hour), End: start}).Changed() {
		t.Error("an outage that ended before it was asked moves the deadline")
	}
	soon := action()
	soon.Need.Deadline = desk.Duration(minute)
	w = open(t, soon)
	w.now = start.Add(minute)
	if w.do(desk.Outage{Start: start.Add(-hour), End: start}).Changed() {
		t.Error("an outage that ended before it was asked moves a deadline that comes soon")
	}
	w.do(desk.Tick{})
	w.ended(desk.Lapsed)
}

// sun is a route that follows the sun.
func sun() desk.Route {
	office := func(name, zone, channel string) hours.Region {
		return hours.Region{Name: name, Zone: zone, Channel: channel, Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(18, 0)}}}
	}
	return desk.Route{
		Name: "sun", MinRemaining: d(30 * minute), DeadlineFrom: desk.FromDelivered, Cap: d(96 * hour),
		Regions: []hours.Region{
			office("emea", "Europe/Zurich", "slack:emea"), office("apac", "Asia/Singapore", "slack:apac"), office("amer", "America/New_York", "slack:amer"),
		},
		Steps: []desk.Step{
			{At: 0, Notify: []string{"region", "inbox"}},
			{At: d(30 * minute), Remind: []string{"region"}, SkipIf: []desk.Condition{desk.IfViewed}},
			{At: d(2 * hour), Page: []string{"oncall:dba"}, Severity: "error"},
			{At: d(12 * hour), Notify: []string{"region"}},
			{At: d(24 * hour), Expire: "stale"},
		},
	}
}
