package rulescmd

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/routefile"
	"github.com/fermata-go/fermata/internal/serve"
)

type RoutesCommands struct {
	Check    RoutesCheck    `cmd:"" help:"Check a routes file."`
	Simulate routesSimulate `cmd:"" help:"Simulate the notices of a route if no person reacts."`
}

// loadRoutes reads a routes file in its order.
func loadRoutes(file string, channels desk.Channels) ([]desk.Route, error) {
	text, err := cli.ReadFile(file)
	if err != nil {
		return nil, err
	}
	routes, err := routefile.Parse(file, text, channels)
	if err != nil {
		return nil, cli.InvalidFile(err)
	}
	return routes, nil
}

type RoutesCheck struct {
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
func (c *RoutesCheck) Run(p *serve.Program) error {
	channels := p.Channels
	var schedules config.OnCall
	if c.Config != "" {
		settings, err := serve.StoreFlags{Config: c.Config}.Settings()
		if err == nil {
			schedules = settings.OnCall
			channels, err = p.OpenChannels(settings, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			return err
		}
	}
	served := serve.ServedBy(channels)
	served.Schedules = slices.Sorted(maps.Keys(schedules))
	routes, err := loadRoutes(c.File, served)
	if err != nil {
		return err
	}
	return p.Print(routesReport{c.File, routes}, func(w io.Writer) {
		for _, r := range routes {
			fmt.Fprintf(w, "%s\t%d steps\tends %s after creation\n", cli.OneLine(r.Name), len(r.Steps), r.Steps[len(r.Steps)-1].At)
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

// PlanReport is the JSON output of a simulation.
type PlanReport struct {
	Route string             `json:"route"`
	Plan  []desk.PlannedStep `json:"plan"`
}

// maxPlanned limits the output; it is far more than the steps of a route.
const maxPlanned = 200

// Run simulates routes with a simulated clock.
func (c *routesSimulate) Run(p *serve.Program) error {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return cli.Usagef("--zone: unknown time zone %q", c.Zone)
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
		return cli.Usagef("%s has no route %q", c.File, c.Route)
	}
	var plans []PlanReport
	for _, r := range routes {
		plan, err := desk.Simulate(r, at, maxPlanned)
		if err != nil {
			return fileErrorIn(c.File, err)
		}
		plans = append(plans, PlanReport{r.Name, plan})
	}
	return p.Print(plans, func(w io.Writer) {
		for _, one := range plans {
			fmt.Fprintf(w, "%s, created on %s\n%s", cli.EscapeControls(one.Route), at.In(zone).Format("Mon 2006-01-02 15:04 MST"), cli.EscapeControls(desk.FormatPlan(one.Plan, zone)))
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
		return at, cli.Usagef("%q is not a time: write it as 2026-11-16T23:00:00Z, or as %q", text, "2026-11-16 23:00")
	}
	return at, nil
}
