package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path of the program fermata: the one that FERMATA_BIN names, as make test
// builds it once, or one that it builds in dir.
func Program(dir string) (string, error) {
	if built := os.Getenv("FERMATA_BIN"); built != "" {
		return built, nil
	}
	program := filepath.Join(dir, "fermata")
	build := exec.Command("go", "build", "-o", program, "github.com/fermata-go/fermata/cmd/fermata")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}
