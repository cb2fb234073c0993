package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/timespan"
)

func simulated(t *testing.T, route desk.Route, created string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := desk.Simulate(route, at, 100)
	if err != nil {
		t.Fatal(err)
	}
	return desk.FormatPlan(planned, time.UTC)
}

func TestSimulate_FollowsTheSun(t *testing.T) {
	for name, test := range map[string]struct{ created, want string }{
		"Monday night goes to Singapore": {"2026-11-16T23:00:00Z", `
Tue 2026-11-17 01:00 UTC  +2h       notify  slack:apac, inbox
Tue 2026-11-17 01:30 UTC  +2h30m    remind  slack:apac
Tue 2026-11-17 03:00 UTC  +4h       page    oncall:dba
Tue 2026-11-17 13:00 UTC  +14h      notify  slack:emea
Wed 2026-11-18 01:00 UTC  +26h      expire  stale
`},
		"late in Zurich goes to New York": {"2026-11-16T16:45:00Z", `
Mon 2026-11-16 16:45 UTC  +0s       notify  slack:amer, inbox
Mon 2026-11-16 17:15 UTC  +30m      remind  slack:amer
Mon 2026-11-16 18:45 UTC  +2h       page    oncall:dba
Tue 2026-11-17 04:45 UTC  +12h      notify  slack:apac
Tue 2026-11-17 16:45 UTC  +24h      expire  stale
`},
		"Saturday waits for Monday": {"2026-11-14T12:00:00Z", `
Mon 2026-11-16 01:00 UTC  +37h      notify  slack:apac, inbox
Mon 2026-11-16 01:30 UTC  +37h30m   remind  slack:apac
Mon 2026-11-16 03:00 UTC  +39h      page    oncall:dba
Mon 2026-11-16 13:00 UTC  +49h      notify  slack:emea
Tue 2026-11-17 01:00 UTC  +61h      expire  stale
`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := simulated(t, followTheSunRoute(), test.created), test.want[1:]; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestSimulate_RegionStepWaitsForOpeningHours(t *testing.T) {
	route := followTheSunRoute()
	route.Regions = route.Regions[:1] // Zurich only
	got := simulated(t, route, "2026-11-16T16:00:00Z")
	want := `
Mon 2026-11-16 16:00 UTC  +0s       notify  slack:emea, inbox
Mon 2026-11-16 16:30 UTC  +30m      remind  slack:emea
Mon 2026-11-16 18:00 UTC  +2h       page    oncall:dba
Tue 2026-11-17 08:00 UTC  +16h      notify  slack:emea
Tue 2026-11-17 16:00 UTC  +1d       expire  stale
`[1:]
	want = strings.ReplaceAll(want, "+1d ", "+24h")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTick_AfterDowntimeNotifiesRegionOpenNow(t *testing.T) {
	ask := actionSpec()
	ask.Route = followTheSunRoute()
	w := open(t, ask) // Monday 10:00 in Zurich
	w.now = time.Date(2026, 11, 16, 23, 30, 0, 0, time.UTC)
	w.apply(desk.Tick{}) // every region is closed; a page does not wait
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify), w.sentTargets(desk.NoticeRemind), w.sentTargets(desk.NoticePage)); got != "[[slack:emea inbox]] [] [[oncall:dba]]" {
		t.Errorf("at night: %s", got)
	}
	morning := time.Date(2026, 11, 17, 1, 0, 0, 0, time.UTC)
	if next := desk.NextDue(w.request, w.now); !next.Equal(morning) {
		t.Errorf("next due is %s", next)
	}
	w.now = morning
	w.apply(desk.Tick{})
	if got := fmt.Sprint(w.sentTargets(desk.NoticeNotify), w.sentTargets(desk.NoticeRemind)); got != "[[slack:emea inbox] [slack:apac]] []" {
		t.Errorf("in the morning: %s", got)
	}
}

func TestSimulate_BusinessClockStopsAtNight(t *testing.T) {
	route := followTheSunRoute()
	route.Regions = route.Regions[:1]
	route.Clock, route.DeadlineFrom = desk.BusinessClock, desk.DeadlineFromCreated
	route.Regions[0].Holidays = []hours.Date{"2026-11-18"}
	got := simulated(t, route, "2026-11-16T16:00:00Z") // 17:00 in Zurich
	want := `
Mon 2026-11-16 16:00 UTC  +0s       notify  slack:emea, inbox
Mon 2026-11-16 16:30 UTC  +30m      remind  slack:emea
Tue 2026-11-17 09:00 UTC  +17h      page    oncall:dba
Thu 2026-11-19 10:00 UTC  +66h      notify  slack:emea
Fri 2026-11-20 13:00 UTC  +93h      expire  stale
`[1:]
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The cap applies on every clock.
func TestSimulate_BusinessClockDoesNotGoBeyondTheCap(t *testing.T) {
	route := followTheSunRoute()
	route.Clock, route.DeadlineFrom, route.Regions, route.Cap = desk.BusinessClock, desk.DeadlineFromCreated, route.Regions[:1], dur(50*hour)
	route.Steps[0].Notify = []string{"inbox"}
	if got := simulated(t, route, "2026-11-16T16:00:00Z"); !strings.Contains(got, "Wed 2026-11-18 18:00 UTC  +50h      expire") {
		t.Errorf("it must expire after 69 hours:\n%s", got)
	}
}

func TestSimulate_MonthsOfRequests(t *testing.T) {
	// A request about every three hours across the spring clock changes. Each one is sent to an
	// open region and expires.
	route := followTheSunRoute()
	for at := start.AddDate(0, 3, 20); at.Before(start.AddDate(0, 5, 0)); at = at.Add(3*time.Hour + 7*time.Minute) {
		planned, err := desk.Simulate(route, at, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(planned) < 3 || planned[len(planned)-1].Action != "expire" || planned[0].Step != 1 {
			t.Fatalf("created at %s:\n%s", at, desk.FormatPlan(planned, time.UTC))
		}
		for i, p := range planned {
			if i > 0 && p.At.Before(planned[i-1].At) {
				t.Fatalf("created at %s: out of order:\n%s", at, desk.FormatPlan(planned, time.UTC))
			}
			if i := slices.IndexFunc(route.Regions, func(r hours.Region) bool { return slices.Contains(p.Targets, r.Channel) }); i >= 0 {
				if until, open := route.Regions[i].Open(p.At); !open || until.Sub(p.At) < 30*time.Minute {
					t.Fatalf("created at %s: %s is notified at %s", at, route.Regions[i].Name, p.At)
				}
			}
		}
	}
}

func TestRouteCheck_FindsEverythingAtOnce(t *testing.T) {
	route := desk.Route{
		MinRemaining: -1, Clock: "sundial", DeadlineFrom: "yesterday",
		Regions: []hours.Region{{Name: "a", Zone: "Mars/Olympus"}, {Name: "a", Zone: "UTC"}},
		Steps: []desk.Step{
			{At: dur(hour)},
			{At: 0, Notify: []string{"region"}, Remind: []string{"everybody"}, SkipIf: []desk.SkipCondition{"tired"}},
			{At: dur(hour), Expire: "stale", SkipIf: []desk.SkipCondition{desk.SkipIfViewed}, Severity: "error"},
			{At: dur(2 * hour), Page: []string{"oncall:"}, Widen: []string{"everybody"}},
			{At: dur(3 * hour), Expire: "stale"},
		},
	}
	err := route.Check()
	if err == nil {
		t.Fatal("no errors")
	}
	for _, want := range []string{
		"name is missing", "cannot be negative", `unknown clock "sundial"`, `unknown deadline_from "yesterday"`, "Mars/Olympus", `region "a": never opens`,
		`region "a" is defined twice`, "step 1 needs exactly one of", "step 2 at 0s is after step 1 at 1h", "step 2 needs exactly one of", `unknown target "everybody"`,
		`unknown skip_if condition "tired"`, `region "a" has no channel`, "expire cannot be skipped", "severity is allowed for page only", `unknown target "oncall:"`,
		"widen is allowed alone or with notify", `"everybody" is not an approver`, "2 expire steps",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Check does not report %q:\n%v", want, err)
		}
	}
}

func TestRouteCheck_FindsSingleSlips(t *testing.T) {
	for name, test := range map[string]struct {
		slip func(r *desk.Route)
		want string
	}{
		"none":           {func(*desk.Route) {}, ""},
		"no expire step": {func(r *desk.Route) { r.Steps = r.Steps[:4] }, "no expire step"},
		"no steps":       {func(r *desk.Route) { r.Steps = nil }, "no expire step"},
		"step after expire": {func(r *desk.Route) {
			r.Steps = append(r.Steps, desk.Step{At: dur(30 * hour), Page: []string{"oncall:x"}})
		}, "no step is allowed after step 5"},
		"expires at once":                 {func(r *desk.Route) { r.Steps = []desk.Step{{Expire: "stale"}} }, "expire at 0s"},
		"no cap for delivery":             {func(r *desk.Route) { r.Cap = 0 }, "requires a cap"},
		"cap shorter than expire":         {func(r *desk.Route) { r.Cap = dur(hour) }, "shorter than"},
		"business clock without hours":    {func(r *desk.Route) { r.Regions, r.Clock, r.Steps = nil, desk.BusinessClock, r.Steps[2:] }, "business clock requires a region"},
		"regions without channels":        {func(r *desk.Route) { r.Regions[0].Channel = "" }, `region "emea" has no channel`},
		"expires before the first notice": {func(r *desk.Route) { r.DeadlineFrom = desk.DeadlineFromCreated }, "before the first notice"},
		"never open long enough":          {func(r *desk.Route) { r.MinRemaining = dur(10 * hour) }, "no region is ever open for 10h"},
		"too many steps":                  {func(r *desk.Route) { r.Steps = slices.Repeat(r.Steps, 11) }, "the maximum is 50"},
	} {
		t.Run(name, func(t *testing.T) {
			route := followTheSunRoute()
			test.slip(&route)
			err := route.Check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check = %v, want %q", err, test.want)
			}
		})
	}
	if err := desk.DefaultRoute(desk.DefaultPage).Check(); err != nil {
		t.Errorf("the default route: %v", err)
	}
}

func TestJoin_KeepsAllStepsAndEarliestExpiry(t *testing.T) {
	short := desk.Route{Name: "short", Steps: []desk.Step{
		{At: dur(hour), Notify: []string{"group:x"}}, {At: dur(3 * hour), Page: []string{"oncall:x"}}, {At: dur(4 * hour), Expire: "late"},
	}}
	joined, err := desk.Join(desk.DefaultRoute(desk.DefaultPage), short)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, s := range joined.Steps {
		steps = append(steps, fmt.Sprint(s.At, s.Notify, s.Remind, s.Page, s.Expire))
	}
	want := "0s [inbox] [] [] | 30m [] [inbox] [] | 1h [group:x] [] [] | 2h [] [] [oncall:default] | 3h [] [] [oncall:x] | 4h [] [] []late"
	if got := strings.Join(steps, " | "); got != want || joined.Name != "default+short" || joined.Cap != 0 {
		t.Errorf("joined %s, cap %s:\n%s\nwant\n%s", joined.Name, joined.Cap, got, want)
	}
	apart := followTheSunRoute()
	apart.Regions = apart.Regions[:1]
	if _, err := desk.Join(followTheSunRoute(), apart); err == nil {
		t.Error("routes with different regions were joined")
	}
	if both, err := desk.Join(followTheSunRoute(), followTheSunRoute()); err != nil || len(both.Regions) != 3 {
		t.Errorf("%d regions, %v", len(both.Regions), err)
	}
}

func TestWithDeadline_MovesExpiryBothWays(t *testing.T) {
	for end, steps := range map[time.Duration]int{time.Hour: 3, 30 * time.Minute: 2, 365 * 24 * time.Hour: 4} {
		route := desk.DefaultRoute(desk.DefaultPage).WithDeadline(end)
		if err := route.Check(); err != nil || len(route.Steps) != steps {
			t.Errorf("within %s: %d steps, %v", end, len(route.Steps), err)
		}
		planned, err := desk.Simulate(route, start, 10)
		if err != nil {
			t.Fatal(err)
		}
		if last := planned[len(planned)-1]; time.Duration(last.After) != end || last.Action != "expire" {
			t.Errorf("with deadline %s it expires after %s", end, last.After)
		}
	}
	if n := len(desk.DefaultRoute(desk.DefaultPage).Steps); n != 4 {
		t.Errorf("the default route has %d steps", n)
	}
	if plain := desk.DefaultRoute(); len(plain.Steps) != 3 || plain.Check() != nil || len(desk.Channels{}.Unserved(plain)) != 0 {
		t.Errorf("the default route of a server without channels: %+v", plain)
	}
}

func TestDuration_ReadsWhatItWrites(t *testing.T) {
	for _, text := range []string{"0s", "30m", "1h", "1h30m", "24h", "2d", "90s"} {
		var first, second timespan.Duration
		if err := first.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := second.UnmarshalText([]byte(first.String())); err != nil || second != first {
			t.Errorf("%s is encoded as %s and decoded as %s, %v", text, first, second, err)
		}
	}
	for _, bad := range []string{"", "d", "-2d", "1.5d", "2 h", "99999999d"} {
		if new(timespan.Duration).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is accepted as a duration", bad)
		}
	}
}
