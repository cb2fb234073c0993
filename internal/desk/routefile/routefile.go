// Package routefile parses routes from YAML.
//
//	calendars:
//	  ch: ["2026-12-25", "2026-12-26"]
//	routes:
//	  - name: db-prod
//	    regions:
//	      - {name: emea, zone: Europe/Zurich, hours: [{days: [mon, tue, wed, thu, fri], from: "09:00", to: "18:00"}], channel: "slack:C0EMEA", holidays: [ch]}
//	    steps:
//	      - {at: 0s,  notify: [region, inbox]}
//	      - {at: 30m, remind: [region], skip_if: [viewed]}
//	      - {at: 24h, expire: stale}
//
// A file is accepted as a whole or not at all.
package routefile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/yamlfile"
)

// MaxSize is the maximum size of a file, in bytes.
const MaxSize = 1 << 20

type file struct {
	// Calendars are lists of holidays, by name. A region refers to them in its holidays.
	Calendars map[string][]hours.Date `yaml:"calendars"`
	Routes    []desk.Route            `yaml:"routes"`
}

// Parse parses all routes of a file. The error lists everything that is wrong.
func Parse(text []byte) ([]desk.Route, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxSize)
	}
	var f file
	if err := yamlfile.Decode(text, &f); err != nil {
		return nil, err
	}
	var errs []error
	if len(f.Routes) == 0 {
		errs = append(errs, errors.New("the file has no routes"))
	}
	var names []string
	for i := range f.Routes {
		route := &f.Routes[i]
		for j := range route.Regions {
			route.Regions[j].Holidays = f.holidays(route.Regions[j].Holidays)
		}
		if slices.Contains(names, route.Name) {
			errs = append(errs, fmt.Errorf("route %q is defined twice", route.Name))
		}
		names = append(names, route.Name)
		errs = append(errs, route.Check())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f.Routes, nil
}

// CheckTargets returns an error for every target of a file, as parsed by [Parse], that no channel
// of the server serves, and for every impossible address, with its line.
func CheckTargets(text []byte, routes []desk.Route, channels desk.Channels) error {
	var errs []error
	for i, route := range routes {
		for _, t := range channels.Unserved(route) {
			where, path := "region", []any{"routes", i, "regions", t.Position, "channel"}
			if t.Step >= 0 {
				where = fmt.Sprintf("step %d, %s", t.Step+1, t.Kind)
				path = []any{"routes", i, "steps", t.Step, string(t.Kind), t.Position}
			}
			if t.Err != nil {
				errs = append(errs, fmt.Errorf("line %d: route %q: %s: impossible target %q: %w", yamlfile.Line(text, path...), route.Name, where, t.Target, t.Err))
				continue
			}
			errs = append(errs, fmt.Errorf("line %d: route %q: %s: no channel of this server serves the target %q; available: %s",
				yamlfile.Line(text, path...), route.Name, where, t.Target, channels))
		}
	}
	return errors.Join(errs...)
}

// holidays replaces the names of calendars by their dates. Unknown names stay and fail the date
// check.
func (f file) holidays(named []hours.Date) []hours.Date {
	var dates []hours.Date
	for _, name := range named {
		if calendar, ok := f.Calendars[string(name)]; ok {
			dates = append(dates, calendar...)
		} else {
			dates = append(dates, name)
		}
	}
	return dates
}
