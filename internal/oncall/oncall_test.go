package oncall_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/oncall"
)

var _ desk.Directory = oncall.Directory{}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// want checks who is on call at local times.
func want(t *testing.T, s oncall.Schedule, where *time.Location, table map[string]string) {
	t.Helper()
	for text, people := range table {
		at, err := time.ParseInLocation("2006-01-02 15:04", text, where)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.OnCall(t.Context(), at)
		if err != nil || strings.Join(got, " ") != people {
			t.Errorf("%s: %q are on call, not %q (%v)", text, got, people, err)
		}
	}
}

func TestRota_TurnsHandoversAndGaps(t *testing.T) {
	zurich := zone(t, "Europe/Zurich")
	rota := oncall.Rota{Zone: zurich, Start: time.Date(2026, 3, 2, 9, 0, 0, 0, zurich), People: []string{"ann", "bob", ""}}
	want(t, rota, zurich, map[string]string{
		"2026-03-02 08:59": "", "2026-03-02 09:00": "ann", "2026-03-09 08:59": "ann", "2026-03-09 09:00": "bob", "2026-03-16 09:00": "", "2026-03-23 09:00": "ann",
		// the clock changes on the 29th; handovers stay at 09:00
		"2026-03-30 08:59": "ann", "2026-03-30 09:00": "bob",
	})
	daily := rota
	daily.Days, daily.People = 1, []string{"ann", "bob"}
	want(t, daily, zurich, map[string]string{"2026-03-02 09:00": "ann", "2026-03-03 09:00": "bob", "2026-03-29 08:59": "ann", "2026-03-29 09:00": "bob", "2026-03-30 09:00": "ann"})
	for name, bad := range map[string]oncall.Rota{"people": {Start: time.Now()}, "start": {People: []string{"ann"}}, "days": {Start: time.Now(), People: []string{"ann"}, Days: -1}} {
		if _, err := bad.OnCall(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const shifts = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Zurich:20260302T090000
DTEND;TZID=Europe/Zurich:20260302T180000
RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR
EXDATE;TZID=Europe/Zurich:20260304T090000
SUMMARY:Ann
END:VEVENT
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
RECURRENCE-ID;TZID=Europe/Zurich:20260305T090000
DTSTART;TZID=Europe/Zurich:20260305T120000
DTEND;TZID=Europe/Zurich:20260305T180000
SUMMARY:Cleo
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTAMP:20260101T000000Z
DTSTART;TZID=America/New_York:20260302T200000
DURATION:PT10H
RRULE:FREQ=DAILY
SUMMARY:Night
ATTENDEE;CN=Bob:mailto:Bob@example.com
END:VEVENT
BEGIN:VEVENT
UID:3
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20260401
SUMMARY:Ann\, Dan
END:VEVENT
BEGIN:VEVENT
UID:4
DTSTAMP:20260101T000000Z
DTSTART:20260302T000000Z
DTEND:20260303T000000Z
STATUS:CANCELLED
SUMMARY:Eve
END:VEVENT
END:VCALENDAR
`

func TestCalendar_ShiftsRepetitionsAndExceptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oncall.ics")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(shifts, "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	zurich := zone(t, "Europe/Zurich")
	c, err := oncall.NewCalendar(oncall.CalendarConfig{Source: file, Zone: zurich, People: map[string]string{"Ann": "ann@acme", "bob@example.com": "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, c, zurich, map[string]string{
		"2026-03-02 09:00": "ann@acme", "2026-03-02 17:59": "ann@acme", "2026-03-02 18:00": "", "2026-03-03 01:59": "",
		"2026-03-03 02:00": "bob", "2026-03-03 11:59": "ann@acme bob", "2026-03-03 12:00": "ann@acme", "2026-03-07 13:00": "", // a Saturday
		"2026-03-04 13:00": "", "2026-03-05 11:59": "bob", "2026-03-05 12:00": "Cleo", // an exception, and a shift that was moved
		// both clocks have changed since; New York did so two weeks earlier
		"2026-03-10 00:59": "", "2026-03-10 01:00": "bob", "2026-03-31 09:00": "ann@acme bob", "2026-03-31 01:59": "", "2026-03-31 02:00": "bob",
		"2026-04-01 00:00": "Dan ann@acme", "2026-04-02 00:00": "",
	})
}

func TestCalendar_BadSources(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"not an iCalendar": "hello", "DTSTART": "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:tomorrow\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
		"time zone": strings.Replace(shifts, "TZID=Europe/Zurich", "TZID=Mars/Base", 1), "RRULE": strings.Replace(shifts, "FREQ=DAILY", "FREQ=NEVER", 1),
		"DURATION": strings.Replace(shifts, "PT10H", "PT10X", 1),
	} {
		file := filepath.Join(dir, "x.ics")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := oncall.NewCalendar(oncall.CalendarConfig{Source: file})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.OnCall(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := oncall.NewCalendar(oncall.CalendarConfig{}); err == nil {
		t.Error("a calendar without a source")
	}
}

func TestCalendar_KeepsTheLastCopyForADay(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, shifts)
	}))
	defer s.Close()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	c, err := oncall.NewCalendar(oncall.CalendarConfig{Source: s.URL + "/?token=secret", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() ([]string, error) { return c.OnCall(t.Context(), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)) }
	if got, err := ask(); err != nil || !slices.Equal(got, []string{"Ann"}) {
		t.Fatal(got, err)
	}
	status, now = http.StatusBadGateway, now.Add(time.Hour)
	if got, err := ask(); err != nil || len(got) != 1 {
		t.Errorf("after an hour: %v, %v", got, err)
	}
	now = now.Add(24 * time.Hour)
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "502") || strings.Contains(err.Error(), "secret") {
		t.Errorf("after a day: %v", err)
	}
}

func TestPagerDuty_AsksTheSchedule(t *testing.T) {
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		since, err := time.Parse(time.RFC3339, q.Get("since"))
		until, err2 := time.Parse(time.RFC3339, q.Get("until"))
		if calls++; errors.Join(err, err2) != nil || !since.Before(until) || r.URL.Path != "/oncalls" || q.Get("schedule_ids[]") != "P1" || r.Header.Get("Authorization") != "Token token=t0" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"oncalls":[{"user":{"email":"Ann@example.com"}},{"user":{"email":"Ann@example.com"}},{"user":{"email":"bob@example.com"}}],"more":false}`)
	}))
	defer s.Close()
	p, err := oncall.NewPagerDuty(oncall.PagerDutyConfig{Schedule: "P1", Token: "t0", URL: s.URL, People: map[string]string{"ann@example.com": "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := p.OnCall(t.Context(), time.Now()); err != nil || !slices.Equal(got, []string{"ann", "bob@example.com"}) {
			t.Fatal(got, err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if bad, _ := oncall.NewPagerDuty(oncall.PagerDutyConfig{Schedule: "P2", Token: "t0", URL: s.URL}); bad != nil {
		if _, err := bad.OnCall(t.Context(), time.Now()); err == nil {
			t.Error("an error of the API is not reported")
		}
	}
}

type failing struct{}

func (failing) OnCall(context.Context, time.Time) ([]string, error) { return nil, errors.New("down") }

func TestDirectory_SchedulesAndGroups(t *testing.T) {
	d := oncall.Directory{
		Groups:    desk.StaticDirectory{"group:dba": {"ann"}, "oncall:legacy": {"dan"}},
		Schedules: map[string]oncall.Schedule{"db": oncall.Rota{Start: time.Unix(0, 0), People: []string{"bob"}}, "down": failing{}},
	}
	for _, c := range []struct {
		who, person string
		member      bool
	}{{"group:dba", "ann", true}, {"oncall:db", "bob", true}, {"oncall:db", "ann", false}, {"oncall:legacy", "dan", true}, {"oncall:other", "bob", false}} {
		if got, err := d.Member(c.who, c.person); err != nil || got != c.member {
			t.Errorf("%s in %s: %v, %v", c.person, c.who, got, err)
		}
	}
	if member, err := d.Member("oncall:down", "bob"); member || err == nil {
		t.Errorf("a schedule that cannot be read: %v, %v", member, err)
	}
}
