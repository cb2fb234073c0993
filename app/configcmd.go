package app

import (
	"fmt"
	"io"
	"os"

	"github.com/fermata-go/fermata/app/config"
)

type configCommands struct {
	Example configExample `cmd:"" help:"Print a file with every key, its default and what it is for."`
	Check   configCheck   `cmd:"" help:"Say what is wrong with a file, and with the environment."`
}

type configExample struct{}

// Run prints the example; for programs, the keys.
func (configExample) Run(p *program) error {
	return p.print(config.Describe(), func(w io.Writer) { _, _ = w.Write(config.Example()) })
}

type configCheck struct {
	File string `arg:"" help:"The file."`
}

// configReport is what a check found, for programs. What is wrong is an error, with mistakes.
type configReport struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

// Run checks a file, together with the environment: that is how a server would see it.
func (c *configCheck) Run(p *program) error {
	settings, err := config.Load(config.Source{File: c.File, Environ: os.Environ()})
	if err != nil {
		return err
	}
	report := configReport{File: c.File, Valid: true, Warnings: settings.Warnings}
	if report.Warnings == nil {
		report.Warnings = []string{}
	}
	return p.print(report, func(w io.Writer) {
		for _, warning := range settings.Warnings {
			fmt.Fprintln(w, "warning:", warning)
		}
		fmt.Fprintf(w, "%s is good\n", c.File)
	})
}
