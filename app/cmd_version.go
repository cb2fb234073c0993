package app

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version returns the version of the module, or of the working tree it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

type versionCommand struct{}

// versionRow is the JSON output of the version.
type versionRow struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Run prints the version.
func (versionCommand) Run(p *program) error {
	return p.print(versionRow{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, func(w io.Writer) { fmt.Fprintln(w, "fermata", version()) })
}
