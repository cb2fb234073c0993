package routefile_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/desk/routefile"
	"github.com/fermata-go/fermata/internal/timespan"
)

func TestParse_ReadsRoutes(t *testing.T) {
	text, err := os.ReadFile("testdata/routes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := routefile.Parse("routes.yaml", text, desk.Channels{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) != 2 || routes[1].Name != "quiet" || routes[1].Steps[1].At != timespan.Duration(7*24*time.Hour) {
		t.Fatalf("%+v", routes)
	}
	r := routes[0]
	if got := r.Regions[0].Holidays; len(got) != 4 || got[0] != "2026-12-25" || got[3] != "2026-08-01" {
		t.Errorf("holidays = %v", got)
	}
	if w := r.Regions[0].Windows[0]; w.From != hours.At(9, 0) || w.To != hours.At(18, 0) || len(w.Days) != 5 {
		t.Errorf("hours = %+v", w)
	}
	if r.DeadlineFrom != desk.DeadlineFromDelivered || r.MinRemaining != timespan.Duration(30*time.Minute) || r.Grace == 0 || r.Version == "" {
		t.Errorf("%+v", r)
	}
	planned, err := desk.Simulate(r, time.Date(2026, 11, 16, 23, 0, 0, 0, time.UTC), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := desk.FormatPlan(planned, time.UTC), "Tue 2026-11-17 01:00 UTC  +2h       notify  slack:C0APAC, inbox\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestParse_InvalidFilesAreRefused(t *testing.T) {
	route := "routes:\n  - name: a\n    steps: [{at: 1h, expire: stale}]\n"
	for name, test := range map[string]struct {
		text string
		want []string // all of them at once
	}{
		"good":               {route, nil},
		"nothing":            {"", []string{"the file is empty"}},
		"no routes":          {"calendars: {}\n", []string{"no routes"}},
		"unknown key":        {route + "    stepps: []\n", []string{`routes.yaml:4: routes[0].stepps: unknown key; did you mean "steps"?`}},
		"duplicate key":      {route + "    name: b\n", []string{"routes.yaml:4: routes[0].name: is repeated, first in line 2"}},
		"two documents":      {route + "---\n" + route, []string{"a second document"}},
		"a bad duration":     {"routes: [{name: a, steps: [{at: soon, expire: stale}]}]", []string{`invalid duration "soon"`}},
		"a bad time":         {"routes: [{name: a, regions: [{name: x, zone: UTC, hours: [{days: [mon], from: \"9\", to: \"18:00\"}]}], steps: []}]", []string{`invalid time of day "9"`}},
		"a bad day":          {"routes: [{name: a, regions: [{name: x, zone: UTC, hours: [{days: [monday], from: \"09:00\", to: \"18:00\"}]}], steps: []}]", []string{`invalid day "monday"`}},
		"an unknown holiday": {"routes: [{name: a, regions: [{name: x, zone: UTC, holidays: [fr], hours: [{days: [mon], from: \"09:00\", to: \"18:00\"}]}], steps: [{at: 1h, expire: stale}]}]", []string{`invalid date "fr"`}},
		"duplicate name":     {route + "  - name: a\n    steps: [{at: 1h, notify: [nobody]}]\n", []string{`route "a" is defined twice`, `unknown target "nobody"`, "no expire step"}},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := routefile.Parse("routes.yaml", []byte(test.text), desk.Channels{All: true})
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || routes != nil {
				t.Fatalf("taken: %+v", routes)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not contain %q", err, want)
				}
			}
		})
	}
}

// docs/routes.md shows a file and its simulation.
func TestDocs_RouteExamplesMatchSimulation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/routes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	file, rest, _ := strings.Cut(rest, "```")
	_, shown, _ := strings.Cut(rest, "\n```\nTue")
	shown, _, _ = strings.Cut("Tue"+shown, "```")
	routes, err := routefile.Parse("routes.yaml", []byte(file), desk.Channels{All: true})
	if err != nil {
		t.Fatal(err)
	}
	planned, err := desk.Simulate(routes[0], time.Date(2026, 11, 16, 23, 0, 0, 0, time.UTC), 20)
	if err != nil {
		t.Fatal(err)
	}
	if got := desk.FormatPlan(planned, time.UTC); got != shown {
		t.Errorf("the docs show\n%s\nwant\n%s", shown, got)
	}
}
