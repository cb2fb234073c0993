package analytics_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
)

func TestReport_DecisionsByDayAndHourInZone(t *testing.T) {
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	c := analytics.NewCollector(analytics.Query{Since: now.AddDate(0, 0, -7), Zone: zurich}, now)
	late := time.Date(2026, 11, 16, 23, 30, 0, 0, time.UTC) // 00:30 on the 17th in Zurich
	for _, outcome := range []string{"approve", "approve", "reject", "answer", "expire", "abandon", "withdraw"} {
		c.AddRequest(decided(late.Add(-time.Hour), time.Hour, outcome, "ann"))
	}
	c.AddRequest(analytics.RequestIndex{Created: ms(late)}) // open
	r := c.Report()
	if len(r.ByDay) != 7 || r.ByDay[0].Name != "2026-11-12" || r.ByDay[6].Name != "2026-11-18" {
		t.Fatalf("%+v", r.ByDay)
	}
	if want := (analytics.DecisionCounts{Name: "2026-11-17", Approved: 2, Rejected: 1, Answered: 1, Expired: 1}); r.ByDay[5] != want || want.Total() != 5 {
		t.Errorf("%+v", r.ByDay)
	}
	if want := (analytics.DecisionCounts{Name: "00:00", Approved: 2, Rejected: 1, Answered: 1, Expired: 1}); len(r.ByHour) != 24 || r.ByHour[0] != want || r.ByHour[23].Total() != 0 {
		t.Errorf("%+v", r.ByHour)
	}
}

// The number of days is limited, also around a change to summer time.
func TestReport_LimitsDays(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// The 29th has 23 hours, so that 24 hours contain two midnights.
	until := time.Date(2026, 3, 30, 0, 30, 0, 0, berlin)
	for name, c := range map[string]struct {
		since time.Time
		want  int
		first string
	}{
		"summer time":     {until.Add(-48 * time.Hour), 2, "2026-03-29"},
		"from midnight":   {time.Date(2026, 3, 28, 0, 0, 0, 0, berlin), 2, "2026-03-29"},
		"one day":         {until.Add(-24 * time.Hour), 1, "2026-03-30"},
		"part of a day":   {until.Add(-10 * time.Minute), 0, ""},
		"ten years":       {until.AddDate(-10, 0, 0), 366, "2025-03-30"},
		"without a start": {time.Time{}, 366, "2025-03-30"},
	} {
		t.Run(name, func(t *testing.T) {
			days := analytics.NewCollector(analytics.Query{Since: c.since, Until: until, Zone: berlin}, until).Report().ByDay
			if len(days) != c.want || c.want > 0 && days[0].Name != c.first {
				t.Errorf("%d days: %+v", len(days), days[:min(len(days), 3)])
			}
		})
	}
}
