package desk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

const (
	minute = time.Minute
	hour   = time.Hour
)

func dur(t time.Duration) timespan.Duration { return timespan.Duration(t) }

func TestDefaultRoute_NotifiesRemindsPagesAndExpires(t *testing.T) {
	w := open(t, actionSpec())
	if got := w.sentTargets(desk.NoticeNotify); len(got) != 1 || got[0][0] != "inbox" {
		t.Errorf("at creation: %v", got)
	}
	w.advanceTo(30*minute - 1)
	if got := w.sentTargets(desk.NoticeRemind); len(got) != 0 {
		t.Errorf("reminded too early: %v", got)
	}
	w.advanceTo(2 * hour)
	if got := fmt.Sprint(w.sentTargets(desk.NoticeRemind), w.sentTargets(desk.NoticePage)); got != "[[inbox]] [[oncall:default]]" {
		t.Errorf("after two hours: %s", got)
	}
	w.advanceTo(24 * hour)
	w.mustEnd(desk.OutcomeExpired)
	if w.last.Decision.Reason != "stale" || !w.last.Decision.At.Equal(start.Add(24*hour)) {
		t.Errorf("final = %+v", w.last.Decision)
	}
	if got := w.sentTargets(desk.NoticeResolve); len(got) != 1 || got[0][0] != "oncall:default" {
		t.Errorf("the page is not resolved: %v", got)
	}
	if got := w.sentTargets(desk.NoticeRequester); len(got) != 1 || got[0][0] != "user:rita" {
		t.Errorf("the requester is not notified: %v", got)
	}
}

func TestI11_ExpiredIsNeitherRejectedNorApproved(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("ann")})
	w.advanceTo(24 * hour)
	w.mustEnd(desk.OutcomeExpired)
	if w.request.State != desk.StateExpired || w.last.Decision.Digest != "" {
		t.Errorf("state %s, %+v", w.request.State, w.last.Decision)
	}
}

func TestI10_NothingIsDecidedAtOrAfterTheDeadline(t *testing.T) {
	w := open(t, actionSpec())
	w.now = w.request.Deadline
	err := w.mustRefuse("expired", desk.Approve{From: w.from("ann")})
	if over, ok := errors.AsType[*desk.ClosedError](err); !ok || over.Outcome != desk.OutcomeExpired || !over.At.Equal(w.request.Deadline) {
		t.Errorf("%+v", err)
	}
	w.now = w.now.Add(-time.Nanosecond)
	w.apply(desk.Approve{From: w.from("ann")})
	w.mustEnd(desk.OutcomeApproved, "ann")
	w.now = w.request.Deadline.Add(hour)
	if w.apply(desk.Tick{}).Changed() {
		t.Error("a timer acts after the decision")
	}
}

func TestI10_RouteStepRunsOnce(t *testing.T) {
	w := open(t, actionSpec())
	before := w.request
	w.now = start.Add(2 * hour)
	first := w.apply(desk.Tick{})
	for range 3 {
		if w.apply(desk.Tick{}).Changed() {
			t.Fatal("the same tick acts again")
		}
	}
	// A second replica that read the document before the write makes the same notices. The outbox
	// deduplicates them by key.
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

func TestTick_AfterDowntimeSendsNoBurstOfOldReminders(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.Route{Name: "noisy", Steps: []desk.Step{
		{At: 0, Notify: []string{"inbox"}},
		{At: dur(10 * minute), Remind: []string{"slack:a"}},
		{At: dur(20 * minute), Remind: []string{"slack:b"}},
		{At: dur(30 * minute), Remind: []string{"slack:c"}},
		{At: dur(hour), Page: []string{"oncall:x"}},
		{At: dur(24 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.now = start.Add(50 * minute)
	w.apply(desk.Tick{})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeRemind)); got != "[[slack:c]]" {
		t.Errorf("reminders after 50 minutes of downtime: %s, want the last one", got)
	}
	w = open(t, ask)
	w.now = start.Add(2 * hour)
	w.apply(desk.Tick{})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeRemind), w.sentTargets(desk.NoticePage)); got != "[] [[oncall:x]]" {
		t.Errorf("after two hours of downtime: %s, want only the page", got)
	}
}

func TestRemind_SkipConditions(t *testing.T) {
	for name, test := range map[string]struct {
		skip  desk.SkipCondition
		does  func(w *fixture)
		skips bool
	}{
		"no action":               {desk.SkipIfViewed, func(*fixture) {}, false},
		"viewed by an approver":   {desk.SkipIfViewed, func(w *fixture) { w.apply(desk.View{From: w.from("ann")}) }, true},
		"viewed by the requester": {desk.SkipIfViewed, func(w *fixture) { w.apply(desk.View{From: w.from("rita")}) }, false},
		"claimed":                 {desk.SkipIfClaimed, func(w *fixture) { w.apply(desk.Claim{From: w.from("ann")}) }, true},
		"claimed and released":    {desk.SkipIfClaimed, func(w *fixture) { w.apply(desk.Claim{From: w.from("ann")}); w.apply(desk.Release{From: w.from("ann")}) }, false},
		"clarification open":      {desk.SkipIfClarificationOpen, func(w *fixture) { w.apply(desk.AskClarification{From: w.from("ann"), Question: "?"}) }, true},
		"voted":                   {desk.SkipIfVoted, func(w *fixture) { w.apply(desk.Approve{From: w.from("ann")}) }, true},
		"claimer has left":        {desk.SkipIfClaimed, func(w *fixture) { w.apply(desk.Claim{From: w.from("ann")}); w.leave("ann") }, false},
		"viewer has left":         {desk.SkipIfViewed, func(w *fixture) { w.apply(desk.View{From: w.from("ann")}); w.leave("ann") }, false},
		"voter has left":          {desk.SkipIfVoted, func(w *fixture) { w.apply(desk.Approve{From: w.from("ann")}); w.leave("ann") }, false},
		"claimed is not voted":    {desk.SkipIfVoted, func(w *fixture) { w.apply(desk.Claim{From: w.from("ann")}) }, false},
		"viewed before the restart": {desk.SkipIfViewed, func(w *fixture) {
			w.apply(desk.View{From: w.from("ann")})
			w.apply(desk.Snooze{From: w.from("ann"), Until: w.now.Add(minute)})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ask := specNeeding(group(2, "group:dba"))
			ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
				{At: dur(10 * minute), Remind: []string{"inbox"}, SkipIf: []desk.SkipCondition{test.skip}}, {At: dur(hour), Expire: "stale"},
			}}
			w := open(t, ask)
			test.does(w)
			w.advanceTo(20 * minute)
			if got := len(w.sentTargets(desk.NoticeRemind)) == 0; got != test.skips {
				t.Errorf("skipped = %v", got)
			}
		})
	}
}

// A view of the original request is not a view of the edit.
func TestView_OutdatedDigestIsIgnored(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	old := w.from("bob")
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: []byte(`{"table":"users","limit":5}`)})
	if w.apply(desk.View{From: old}).Changed() {
		t.Error("an outdated view was recorded")
	}
	if !w.apply(desk.View{From: w.from("bob")}).Changed() {
		t.Error("a current view was not recorded")
	}
}

func TestView_CountsAgainAfterRouteRestart(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.View{From: w.from("ann")})
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(hour)})
	w.advanceTo(hour)
	if !w.apply(desk.View{From: w.from("ann")}).Changed() || w.apply(desk.View{From: w.from("ann")}).Changed() {
		t.Error("a view counts once in an epoch")
	}
	if v := w.request.Views; len(v) != 1 || !v[0].At.Equal(start) || !v[0].LastAt.Equal(start.Add(hour)) {
		t.Errorf("views = %+v", v)
	}
	w.advanceTo(2 * hour)
	if n := len(w.sentTargets(desk.NoticeRemind)); n != 0 {
		t.Errorf("reminded %d times", n)
	}
}

func TestSnooze_EndsWhenRouteRestarts(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(10 * hour)})
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	if n := len(w.sentTargets(desk.NoticeNotify)); n != 2 || !w.request.Snoozed.IsZero() {
		t.Errorf("%d notices, snoozed until %s: people must be notified of the edit", n, w.request.Snoozed)
	}
}

func TestWiden_AddsPermittedApprovers(t *testing.T) {
	ask := specNeeding(requirement.Group{From: []string{"group:dba"}, Widen: []string{"group:managers"}})
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
		{At: dur(hour), Notify: []string{"approvers"}, Widen: []string{"group:managers", "group:finops"}}, {At: dur(2 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.mustRefuse("not_member", desk.Approve{From: w.from("max")})
	w.advanceTo(hour)
	w.mustHaveProgress("0 of 1, needs 1 × dba or managers")
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify)); got != "[[group:dba group:managers]]" {
		t.Errorf("told %s", got)
	}
	// the route names finops, the requirement does not permit it
	w.mustRefuse("not_member", desk.Approve{From: w.from("fay")})
	w.apply(desk.Approve{From: w.from("max")})
	w.mustEnd(desk.OutcomeApproved, "max")
}

func TestSnooze_SilencesThenRestartsRoute(t *testing.T) {
	w := open(t, actionSpec())
	w.advanceTo(10 * minute)
	w.mustRefuse("bad_time", desk.Snooze{From: w.from("ann"), Until: w.request.Deadline})
	w.mustRefuse("bad_time", desk.Snooze{From: w.from("ann"), Until: w.now})
	deadline := w.request.Deadline
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(5 * hour)})
	if w.request.RouteProgress.Epoch != 2 || !w.request.Deadline.Equal(deadline) {
		t.Errorf("epoch %d, deadline %s", w.request.RouteProgress.Epoch, w.request.Deadline)
	}
	w.advanceTo(5*hour - 1)
	if n := len(w.sentTargets(desk.NoticeRemind)) + len(w.sentTargets(desk.NoticePage)) + len(w.sentTargets(desk.NoticeNotify)); n != 1 {
		t.Errorf("%d notices, want the earlier one", n)
	}
	w.advanceTo(5 * hour)
	if n := len(w.sentTargets(desk.NoticeNotify)); n != 2 || slices.Contains(w.request.Flags(), desk.FlagSnoozed) {
		t.Errorf("%d notices after the snooze, flags %v", n, w.request.Flags())
	}
	w.advanceTo(7 * hour)
	if n := len(w.sentTargets(desk.NoticePage)); n != 1 {
		t.Errorf("%d pages two hours after the snooze", n)
	}
	mustHaveUniqueKeys(t, w.notices)
}

func TestExtend_MovesDeadlineUpToCap(t *testing.T) {
	w := open(t, actionSpec())
	w.advanceTo(20 * hour)
	w.mustRefuse("bad_time", desk.Extend{From: w.from("ann"), Until: w.request.Deadline})
	w.mustRefuse("bad_time", desk.Extend{From: w.from("ann"), Until: start.Add(72*hour + 1)})
	w.apply(desk.Extend{From: w.from("ann"), Until: start.Add(72 * hour)})
	w.advanceTo(72*hour - 1)
	w.mustBeOpen()
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify), w.sentTargets(desk.NoticeRemind), w.sentTargets(desk.NoticePage)); got != "[[inbox]] [[inbox] [inbox]] [[oncall:default] [oncall:default]]" {
		t.Errorf("told %s", got)
	}
	mustHaveUniqueKeys(t, w.notices)
	w.advanceTo(72 * hour)
	w.mustEnd(desk.OutcomeExpired)

	ask := actionSpec()
	ask.Requirement.Deadline = dur(hour)
	w = open(t, ask)
	// a deadline of the policy cannot be extended
	w.mustRefuse("bad_time", desk.Extend{From: w.from("ann"), Until: start.Add(2 * hour)})
	w.advanceTo(hour)
	w.mustEnd(desk.OutcomeExpired)
}

func mustHaveUniqueKeys(t *testing.T, notices []desk.Notice) {
	t.Helper()
	seen := map[string]bool{}
	for _, n := range notices {
		if seen[n.Key] {
			t.Errorf("two notices have the key %s", n.Key)
		}
		seen[n.Key] = true
	}
}

func TestEscalate_FiresNextStepNow(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.Escalate{From: w.from("ann"), Reason: "urgent"})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeRemind), w.sentTargets(desk.NoticePage)); got != "[] [[oncall:default]]" {
		t.Errorf("told %s, want a page", got)
	}
	w.mustRefuse("no_step", desk.Escalate{From: w.from("ann")})
	w.advanceTo(3 * hour)
	if n := len(w.sentTargets(desk.NoticePage)); n != 1 {
		t.Errorf("paged %d times", n)
	}
	w.apply(desk.Approve{From: w.from("ann")})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeResolve)); got != "[[oncall:default]]" {
		t.Errorf("resolved %s", got)
	}
}

// An escalation ends a snooze and goes forward: a step that fired before does not fire again.
func TestEscalate_AfterSnoozeGoesForward(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{
		{At: 0, Notify: []string{"group:dba"}}, {At: dur(hour), Page: []string{"oncall:a"}}, {At: dur(2 * hour), Page: []string{"oncall:b"}}, {At: dur(24 * hour), Expire: "stale"},
	}}
	w := open(t, ask)
	w.advanceTo(hour)
	w.apply(desk.Snooze{From: w.from("ann"), Until: start.Add(5 * hour)})
	w.apply(desk.Escalate{From: w.from("ann"), Reason: "urgent"})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify), w.sentTargets(desk.NoticePage)); got != "[[group:dba]] [[oncall:a] [oncall:b]]" || !w.request.Snoozed.IsZero() {
		t.Errorf("told %s, snoozed until %s", got, w.request.Snoozed)
	}
	w.mustRefuse("no_step", desk.Escalate{From: w.from("ann")})
	mustHaveUniqueKeys(t, w.notices)
}

// Without a cap nothing can be extended: it is not offered, and the refusal says so.
func TestExtend_NeedsACap(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.Route{Name: "x", Steps: []desk.Step{{At: 0, Notify: []string{"inbox"}}, {At: dur(hour), Expire: "stale"}}}
	w := open(t, ask)
	w.mustRefuse("bad_time", desk.Extend{From: w.from("ann"), Until: start.Add(2 * hour)})
	for cap, want := range map[timespan.Duration]bool{0: false, dur(2 * hour): true} {
		r := w.request
		r.Route.Cap = cap
		verbs, err := desk.AllowedVerbs(r, "ann", w.members)
		if err != nil || slices.Contains(verbs, requirement.VerbExtend) != want {
			t.Errorf("cap %s: %v, %v", cap, verbs, err)
		}
	}
}

func TestOnTimeout_EscalateFiresAllStepsAndKeepsRouteDeadline(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Deadline, ask.Requirement.OnTimeout = dur(hour), requirement.EscalateOnTimeout
	w := open(t, ask)
	w.advanceTo(hour)
	w.mustBeOpen()
	if got := fmt.Sprint(w.sentTargets(desk.NoticePage)); got != "[[oncall:default]]" {
		t.Errorf("paged %s", got)
	}
	w.advanceTo(24*hour - 1)
	w.mustBeOpen()
	w.advanceTo(24 * hour)
	w.mustEnd(desk.OutcomeExpired)
	mustHaveUniqueKeys(t, w.notices)
}

func TestDeadline_FromDeliveryIsCapped(t *testing.T) {
	ask := actionSpec()
	ask.Route = desk.DefaultRoute(desk.DefaultPage)
	ask.Route.DeadlineFrom, ask.Route.Cap = desk.DeadlineFromDelivered, dur(30*hour)
	w := open(t, ask)
	deadline := func(want time.Duration) {
		t.Helper()
		if got := w.request.Deadline.Sub(start); got != want {
			t.Errorf("the deadline is after %s, want %s", got, want)
		}
	}
	deadline(30 * hour)
	w.advanceTo(3 * hour)
	w.apply(desk.RecordDelivery{Target: "slack:a", At: start.Add(2 * hour)})
	deadline(26 * hour)
	w.apply(desk.RecordDelivery{Target: "mail:b", At: start.Add(3 * hour)})
	deadline(26 * hour)

	for _, wrong := range []time.Duration{99 * hour, -5 * hour} { // a channel with a wrong clock
		w = open(t, ask)
		w.advanceTo(2 * hour)
		w.apply(desk.RecordDelivery{Target: "slack:a", At: start.Add(wrong)})
		deadline(26 * hour)
	}
	w = open(t, ask)
	w.advanceTo(10 * hour)
	w.apply(desk.RecordDelivery{Target: "slack:a", At: w.now})
	deadline(30 * hour)
}

// A pager matches a page and its resolve notice by the incident. A request that is asked again has
// another incident, so that a late resolve does not silence the new page.
func TestIncidentKey_DiffersWhenAskedAgain(t *testing.T) {
	incident := func(asked time.Time) string {
		w := open(t, actionSpec())
		w.now = asked
		change, err := desk.New(actionSpec(), w.env())
		if err != nil {
			t.Fatal(err)
		}
		w.accept(change)
		w.now = asked.Add(3 * hour)
		w.apply(desk.Tick{})
		w.apply(desk.Approve{From: w.from("ann")})
		named := make(map[string][]desk.NoticeKind)
		for _, n := range w.notices {
			if n.Kind == desk.NoticePage || n.Kind == desk.NoticeResolve {
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

func TestRecordOutage_ExtendsDeadlineByGrace(t *testing.T) {
	w := open(t, actionSpec())
	w.advanceTo(20 * hour)
	w.now = start.Add(30 * hour)
	w.apply(desk.RecordOutage{Start: start.Add(21 * hour), End: w.now})
	w.apply(desk.Tick{})
	w.mustBeOpen()
	if want := w.now.Add(15 * minute); !w.request.Deadline.Equal(want) {
		t.Errorf("the deadline is %s, want %s", w.request.Deadline, want)
	}
	if w.apply(desk.RecordOutage{Start: start.Add(21 * hour), End: w.now}).Changed() {
		t.Error("the same outage counts twice")
	}
	w.apply(desk.Approve{From: w.from("ann")})
	w.mustEnd(desk.OutcomeApproved, "ann")

	w = open(t, actionSpec())
	w.now = start.Add(30 * hour)
	if w.apply(desk.RecordOutage{Start: start.Add(25 * hour), End: w.now}).Changed() {
		t.Error("an outage after the deadline moved it")
	}
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeExpired)
	if w.apply(desk.RecordOutage{Start: start, End: w.now}).Changed() {
		t.Error("an outage reopened a closed request")
	}
}

// A request created after an outage keeps its own deadline. A long outage must not extend later
// requests.
func TestRecordOutage_LaterRequestIsNotExtended(t *testing.T) {
	w := open(t, actionSpec())
	w.now = start.Add(24*hour - minute)
	if w.apply(desk.RecordOutage{Start: start.Add(-hour), End: start}).Changed() {
		t.Error("an outage before the creation moved the deadline")
	}
	soon := actionSpec()
	soon.Requirement.Deadline = timespan.Duration(minute)
	w = open(t, soon)
	w.now = start.Add(minute)
	if w.apply(desk.RecordOutage{Start: start.Add(-hour), End: start}).Changed() {
		t.Error("an outage before the creation moved a near deadline")
	}
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeExpired)
}

// followTheSunRoute is a route with three regions.
func followTheSunRoute() desk.Route {
	office := func(name, zone, channel string) hours.Region {
		return hours.Region{Name: name, Zone: zone, Channel: channel, Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(18, 0)}}}
	}
	return desk.Route{
		Name: "sun", MinRemaining: dur(30 * minute), DeadlineFrom: desk.DeadlineFromDelivered, Cap: dur(96 * hour),
		Regions: []hours.Region{
			office("emea", "Europe/Zurich", "slack:emea"), office("apac", "Asia/Singapore", "slack:apac"), office("amer", "America/New_York", "slack:amer"),
		},
		Steps: []desk.Step{
			{At: 0, Notify: []string{"region", "inbox"}},
			{At: dur(30 * minute), Remind: []string{"region"}, SkipIf: []desk.SkipCondition{desk.SkipIfViewed}},
			{At: dur(2 * hour), Page: []string{"oncall:dba"}, Severity: "error"},
			{At: dur(12 * hour), Notify: []string{"region"}},
			{At: dur(24 * hour), Expire: "stale"},
		},
	}
}
