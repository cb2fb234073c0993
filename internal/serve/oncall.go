package serve

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/oncall"
	"github.com/fermata-go/fermata/internal/outbound"
)

// groupDirectory has the groups of the groups file and the on-call schedules. It is the directory
// of decisions, of notices and of policies.
type groupDirectory struct{ oncall.Directory }

// Members lists a name for the rules that name it. The list of a schedule is empty, because its
// people change.
func (d groupDirectory) Members(name string) ([]string, bool) {
	if schedule, ok := strings.CutPrefix(name, "oncall:"); ok {
		_, known := d.Schedules[schedule]
		return nil, known
	}
	return d.Groups.(*GroupsFile).Members(name)
}

// openSchedules makes the on-call schedules. Calendars and PagerDuty are reached only at public
// addresses, and at hosts that webhooks may call.
func openSchedules(all config.OnCall, allow []string) (map[string]oncall.Schedule, error) {
	calls, err := outbound.NewClient(outbound.Config{Allow: allow, Setting: "webhooks.allow"})
	if err != nil {
		return nil, fmt.Errorf("webhooks.allow: %w", err)
	}
	schedules := make(map[string]oncall.Schedule)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		schedule, err := openSchedule(all[name], calls)
		if err != nil {
			errs = append(errs, fmt.Errorf("oncall.%s: %w", name, err))
			continue
		}
		schedules[name] = schedule
	}
	return schedules, errors.Join(errs...)
}

func openSchedule(s config.Schedule, calls *outbound.Client) (oncall.Schedule, error) {
	zone := time.UTC
	if s.TimeZone != "" {
		var err error
		if zone, err = time.LoadLocation(s.TimeZone); err != nil || zone == time.Local {
			return nil, fmt.Errorf("unknown time zone %q", s.TimeZone)
		}
	}
	switch {
	case len(s.Rota) > 0:
		start, err := time.ParseInLocation("2006-01-02 15:04", strings.Replace(s.Start, "T", " ", 1), zone)
		if err != nil {
			return nil, fmt.Errorf("start: %q is not a local time such as 2026-01-05 09:00", s.Start)
		}
		rota := oncall.Rota{Zone: zone, Start: start, Days: s.Days, People: s.Rota}
		return rota, rota.Validate()
	case s.PagerDuty != "":
		address := s.URL
		if address == "" {
			address = "https://api.pagerduty.com"
		}
		client, err := clientFor(address, calls)
		if err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
		return oncall.NewPagerDuty(oncall.PagerDutyConfig{Schedule: s.PagerDuty, Token: s.Token.Reveal(), People: s.People, URL: address, Client: client})
	}
	source := s.Calendar + s.CalendarURL.Reveal() // one of them is set
	c := oncall.CalendarConfig{Source: source, Zone: zone, People: s.People}
	if strings.Contains(source, "://") {
		var err error
		if c.Client, err = clientFor(source, calls); err != nil {
			return nil, fmt.Errorf("calendar: %w", err)
		}
	} else if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	return oncall.NewCalendar(c)
}

// clientFor returns the client for a URL that the operator configured.
func clientFor(address string, calls *outbound.Client) (*http.Client, error) {
	target, err := calls.ParseURL(address)
	if err != nil {
		return nil, err
	}
	return calls.HTTP(target), nil
}
