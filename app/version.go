package app

import (
	"fmt"
	"runtime/debug"
)

// version is that of the module, or of the working tree that it was built from.
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

// Run prints the version.
func (versionCommand) Run(p *program) error {
	fmt.Fprintln(p.out, "fermata", version())
	return nil
}
