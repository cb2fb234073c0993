package people_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/desk/people"
)

func Example() {
	settings := people.Settings{
		Rules: []people.Rule{
			{MinRisk: 2, Channels: []string{"slack", "email"}},
			{Notices: []desk.NoticeKind{desk.NoticeRemind}, Channels: []string{"slack"}},
		},
		Quiet: &people.QuietHours{Zone: "Europe/Zurich", From: hours.At(22, 0), To: hours.At(7, 0)},
	}
	reminder := people.About{Notice: desk.NoticeRemind, Kind: "approval"}
	fmt.Println(settings.Check("ann"), settings.Uses("slack", reminder), settings.Uses("email", reminder))
	reminder.Risk = 2
	fmt.Println(settings.Uses("email", reminder))
	night := time.Date(2026, 11, 16, 23, 0, 0, 0, time.UTC)
	fmt.Println(settings.NotBefore(night, reminder).Format(time.RFC3339))
	// Output:
	// <nil> true false
	// true
	// 2026-11-17T06:00:00Z
}

// Quiet hours end at the local time on the day of a clock change, and pages are sent anyway.
func TestQuietHours(t *testing.T) {
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	nightly := people.QuietHours{Zone: "Europe/Zurich", From: hours.At(22, 0), To: hours.At(7, 0)}
	weekend := people.QuietHours{Zone: "Europe/Zurich", Days: []hours.Day{6, 0}, From: hours.At(0, 0), To: hours.At(24, 0)}
	hold, urgent := nightly, nightly
	hold.HoldPages, urgent.UrgentRisk = true, 2
	for _, c := range []struct {
		name   string
		quiet  people.QuietHours
		about  people.About
		at     string
		expect string
	}{
		{"before", nightly, people.About{Notice: desk.NoticeNotify}, "2026-11-16 21:59", "2026-11-16 21:59"},
		{"begin", nightly, people.About{Notice: desk.NoticeNotify}, "2026-11-16 22:00", "2026-11-17 07:00"},
		{"after midnight", nightly, people.About{Notice: desk.NoticeRemind}, "2026-11-17 06:59", "2026-11-17 07:00"},
		{"end", nightly, people.About{Notice: desk.NoticeRemind}, "2026-11-17 07:00", "2026-11-17 07:00"},
		{"summer time begins", nightly, people.About{Notice: desk.NoticeNotify}, "2026-03-28 23:00", "2026-03-29 07:00"},
		{"summer time ends", nightly, people.About{Notice: desk.NoticeNotify}, "2026-10-24 23:00", "2026-10-25 07:00"},
		{"weekend", weekend, people.About{Notice: desk.NoticeNotify}, "2026-11-21 10:00", "2026-11-23 00:00"},
		{"page", nightly, people.About{Notice: desk.NoticePage}, "2026-11-17 03:00", "2026-11-17 03:00"},
		{"held page", hold, people.About{Notice: desk.NoticePage}, "2026-11-17 03:00", "2026-11-17 07:00"},
		{"resolve", hold, people.About{Notice: desk.NoticeResolve}, "2026-11-17 03:00", "2026-11-17 03:00"},
		{"urgent", urgent, people.About{Notice: desk.NoticeNotify, Risk: 2}, "2026-11-17 03:00", "2026-11-17 03:00"},
		{"not urgent", urgent, people.About{Notice: desk.NoticeNotify, Risk: 1}, "2026-11-17 03:00", "2026-11-17 07:00"},
		{"outcome", nightly, people.About{Notice: desk.NoticeRequester}, "2026-11-17 03:00", "2026-11-17 07:00"},
	} {
		at, err := time.ParseInLocation("2006-01-02 15:04", c.at, zurich)
		if err != nil {
			t.Fatal(err)
		}
		if got := (people.Settings{Quiet: &c.quiet}).NotBefore(at, c.about).In(zurich).Format("2006-01-02 15:04"); got != c.expect {
			t.Errorf("%s: sent at %s, not %s", c.name, got, c.expect)
		}
	}
}

func TestRules_FirstMatchApplies(t *testing.T) {
	settings := people.Settings{Rules: []people.Rule{
		{Kinds: []string{"question"}, Channels: nil},
		{Notices: []desk.NoticeKind{desk.NoticePage, desk.NoticeNotify}, MinRisk: 2, Channels: []string{"slack", "email"}},
		{Notices: []desk.NoticeKind{desk.NoticeNotify}, Channels: []string{"email"}},
	}}
	for _, c := range []struct {
		about people.About
		uses  string
	}{
		{people.About{Notice: desk.NoticeNotify, Kind: "question", Risk: 3}, ""},
		{people.About{Notice: desk.NoticeNotify, Kind: "approval", Risk: 2}, "slack email"},
		{people.About{Notice: desk.NoticeNotify, Kind: "approval", Risk: 1}, "email"},
		{people.About{Notice: desk.NoticeRemind, Kind: "approval", Risk: 3}, "slack email webpush"},
	} {
		var uses []string
		for _, ch := range []string{"slack", "email", "webpush"} {
			if settings.Uses(ch, c.about) {
				uses = append(uses, ch)
			}
		}
		if got := strings.Join(uses, " "); got != c.uses {
			t.Errorf("%+v uses %q, not %q", c.about, got, c.uses)
		}
	}
}

func TestSettings_Check(t *testing.T) {
	day := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for want, s := range map[string]people.Settings{
		"rule 1: unknown notice": {Rules: []people.Rule{{Notices: []desk.NoticeKind{"rerender"}}}},
		"rule 2: the risk 4":     {Rules: []people.Rule{{}, {MinRisk: 4}}},
		"rule 1: a list":         {Rules: []people.Rule{{Channels: []string{""}}}},
		"21 rules":               {Rules: make([]people.Rule, 21)},
		"time zone":              {Quiet: &people.QuietHours{From: hours.At(22, 0)}},
		"quiet hours: the risk":  {Quiet: &people.QuietHours{Zone: "UTC", UrgentRisk: -1}},
		"later end":              {Away: &people.Absence{From: day, Until: day}},
		"the delegate is":        {Away: &people.Absence{From: day, Until: day.AddDate(0, 0, 1), Delegate: "ann"}},
	} {
		if err := s.Check("ann"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	away := people.Settings{Away: &people.Absence{From: day, Until: day.AddDate(0, 0, 7), Delegate: "bob"}}
	if err := away.Check("ann"); err != nil || away.AwayAt(day.Add(-time.Second)) || !away.AwayAt(day) || away.AwayAt(day.AddDate(0, 0, 7)) {
		t.Errorf("an absence of a week: %v", err)
	}
}
