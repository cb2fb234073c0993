package app

import (
	"fmt"
	"io"
	"runtime"

	"github.com/fermata-go/fermata/internal/cli"
)

type versionCommand struct{}

// versionRow is the JSON output of the version.
type versionRow struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Run prints the version.
func (versionCommand) Run(p *cli.Program) error {
	return p.Print(versionRow{cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, func(w io.Writer) { fmt.Fprintln(w, "fermata", cli.Version()) })
}
