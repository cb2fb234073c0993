package operatorcmd

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/serve"
)

type ConfigCommands struct {
	Example configExample `cmd:"" help:"Print an example file with every key, its default and its description."`
	Check   configCheck   `cmd:"" help:"Check a file and the environment."`
}

type configExample struct{}

// Run prints the example; with --json, the keys.
func (configExample) Run(p *cli.Program) error {
	return p.Print(config.Describe(), func(w io.Writer) { _, _ = w.Write(config.Example()) })
}

type configCheck struct {
	File string `arg:"" help:"The file."`
}

// configReport is the JSON output of a check. Mistakes are returned as an error.
type configReport struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

// Run checks a file together with the environment, as a server would load it.
func (c *configCheck) Run(ctx context.Context, p *serve.Program) error {
	settings, err := config.Load(config.Source{File: c.File, Environ: os.Environ()})
	if err != nil {
		return err
	}
	if err := p.TryStart(ctx, settings); err != nil {
		return err
	}
	report := configReport{File: c.File, Valid: true, Warnings: settings.Warnings}
	if report.Warnings == nil {
		report.Warnings = []string{}
	}
	return p.Print(report, func(w io.Writer) {
		for _, warning := range settings.Warnings {
			fmt.Fprintln(w, "warning:", warning)
		}
		fmt.Fprintf(w, "%s is valid\n", c.File)
	})
}
