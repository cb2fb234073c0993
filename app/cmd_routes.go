package app

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/routefile"
)

type routesCommands struct {
	Check    routesCheck    `cmd:"" help:"Check a routes file."`
	Simulate routesSimulate `cmd:"" help:"Simulate the notices of a route if no person reacts."`
}

// loadRoutes reads a routes file in its order.
func loadRoutes(file string, channels desk.Channels) ([]desk.Route, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	routes, err := routefile.Parse(text)
	if err == nil {
		err = routefile.CheckTargets(text, routes, channels)
	}
	return routes, fileErrorIn(file, err)
}

type routesCheck struct {
	Config string `short:"c" help:"The configuration file of the server, whose channels serve the targets." placeholder:"FILE" env:"FERMATA_CONFIG"`
	File   string `arg:"" help:"The routes file."`
}

// routesReport is the JSON output of a check. Mistakes are an error.
type routesReport struct {
	File   string       `json:"file"`
	Routes []desk.Route `json:"routes"`
}

// Run reads a file, and reports all errors at once: also targets that a server of this program does
// not serve.
func (c *routesCheck) Run(p *program) error {
	channels := p.channels
	var schedules config.OnCall
	if c.Config != "" {
		settings, err := storeFlags{Config: c.Config}.settings()
		if err == nil {
			schedules = settings.OnCall
			channels, err = p.openChannels(settings, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			return err
		}
	}
	served := servedBy(channels)
	served.Schedules = slices.Sorted(maps.Keys(schedules))
	routes, err := loadRoutes(c.File, served)
	if err != nil {
		return err
	}
	return p.print(routesReport{c.File, routes}, func(w io.Writer) {
		for _, r := range routes {
			fmt.Fprintf(w, "%s\t%d steps\tends %s after creation\n", oneLine(r.Name), len(r.Steps), r.Steps[len(r.Steps)-1].At)
		}
		fmt.Fprintf(w, "%s is valid\n", c.File)
	})
}

type routesSimulate struct {
	File  string `arg:"" help:"The routes file."`
	Route string `arg:"" optional:"" help:"Only this route."`
	At    string `help:"The creation time: 2026-11-16T23:00:00Z, or 2026-11-16 23:00 in --zone. Now by default." placeholder:"TIME"`
	Zone  string `help:"The IANA time zone of the output, for example Europe/Zurich." default:"Local"`
}

// planReport is the JSON output of a simulation.
type planReport struct {
	Route string             `json:"route"`
	Plan  []desk.PlannedStep `json:"plan"`
}

// maxPlanned limits the output; it is far more than the steps of a route.
const maxPlanned = 200

// Run simulates routes with a simulated clock.
func (c *routesSimulate) Run(p *program) error {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return usage("--zone: unknown time zone %q", c.Zone)
	}
	at, err := parseTime(c.At, zone)
	if err != nil {
		return err
	}
	routes, err := loadRoutes(c.File, desk.Channels{All: true})
	if err != nil {
		return err
	}
	if c.Route != "" {
		routes = slices.DeleteFunc(routes, func(r desk.Route) bool { return r.Name != c.Route })
	}
	if len(routes) == 0 {
		return usage("%s has no route %q", c.File, c.Route)
	}
	var plans []planReport
	for _, r := range routes {
		plan, err := desk.Simulate(r, at, maxPlanned)
		if err != nil {
			return fileErrorIn(c.File, err)
		}
		plans = append(plans, planReport{r.Name, plan})
	}
	return p.print(plans, func(w io.Writer) {
		for _, one := range plans {
			fmt.Fprintf(w, "%s, created on %s\n%s", escapeControls(one.Route), at.In(zone).Format("Mon 2006-01-02 15:04 MST"), escapeControls(desk.FormatPlan(one.Plan, zone)))
		}
	})
}

// parseTime parses a time; now if the text is empty.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Now().Truncate(time.Minute), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		return at, usage("%q is not a time: write it as 2026-11-16T23:00:00Z, or as %q", text, "2026-11-16 23:00")
	}
	return at, nil
}
