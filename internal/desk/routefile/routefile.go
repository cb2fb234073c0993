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
	"slices"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

type file struct {
	// Calendars are lists of holidays, by name. A region refers to them in its holidays.
	Calendars map[string][]hours.Date `yaml:"calendars"`
	Routes    []desk.Route            `yaml:"routes"`
}

// Parse parses all routes of a file, for a server that has these channels. The error lists
// everything that is wrong.
func Parse(name string, text []byte, channels desk.Channels) ([]desk.Route, error) {
	var f file
	if err := yamldoc.Decode(name, text, &f); err != nil {
		return nil, err
	}
	err := yamldoc.Read(name, text, func(document yamldoc.Node) { f.check(document, channels) })
	if err != nil {
		return nil, err
	}
	return f.Routes, nil
}

// check replaces the names of calendars and reports what is wrong with the routes.
func (f *file) check(document yamldoc.Node, channels desk.Channels) {
	if len(f.Routes) == 0 {
		document.Reportf("the file has no routes")
	}
	var names []string
	for i := range f.Routes {
		route, at := &f.Routes[i], document.At("routes", i)
		for j := range route.Regions {
			route.Regions[j].Holidays = f.holidays(route.Regions[j].Holidays)
		}
		if slices.Contains(names, route.Name) {
			at.Reportf("route %q is defined twice", route.Name)
		}
		names = append(names, route.Name)
		if err := route.Check(); err != nil {
			at.Reportf("%v", err)
		}
		checkTargets(at, *route, channels)
	}
}

// checkTargets reports every target that no channel of the server serves, and every impossible
// address.
func checkTargets(at yamldoc.Node, route desk.Route, channels desk.Channels) {
	for _, t := range channels.Unserved(route) {
		target := at.At("regions", t.Position, "channel")
		if t.Step >= 0 {
			target = at.At("steps", t.Step, string(t.Kind), t.Position)
		}
		if t.Err != nil {
			target.Reportf("impossible target %q: %v", t.Target, t.Err)
			continue
		}
		target.Reportf("no channel of this server serves the target %q; available: %s", t.Target, channels)
	}
}

// holidays replaces the names of calendars by their dates. Unknown names stay and fail the date
// check.
func (f *file) holidays(named []hours.Date) []hours.Date {
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
