//go:build !unix

package pgtest

import (
	"os"
	"os/exec"
)

// owner is used where a process may have to change its user.
type owner struct{}

func findOwner() (*owner, error) { return nil, nil }

func (o *owner) prepare(*exec.Cmd) {}

func (o *owner) own(string) error { return nil }

func (o *owner) mkdirTemp() (string, error) { return os.MkdirTemp("", "fermata-pg-") }
