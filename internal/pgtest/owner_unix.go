//go:build unix

package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that the server runs as; nil for the user of the test.
type owner struct {
	uid, gid int
}

// findOwner returns another user if the test runs as root, because PostgreSQL refuses to run as
// root.
func findOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(account.Uid)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.Atoi(account.Gid)
		if err != nil {
			return nil, err
		}
		return &owner{uid: uid, gid: gid}, nil
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

// prepare makes a command run as the owner, in its own session.
func (o *owner) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
}

// own changes the owner of a file.
func (o *owner) own(path string) error {
	if o == nil {
		return nil
	}
	return os.Chown(path, o.uid, o.gid)
}

// mkdirTemp creates a directory for the owner in a place that the owner can access.
func (o *owner) mkdirTemp() (string, error) {
	parent := os.TempDir()
	if o != nil && !openToAll(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "fermata-pg-")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return dir, o.own(dir)
}

// openToAll reports whether any user can access the files in dir.
func openToAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if filepath.Dir(dir) == dir {
			return true
		}
		dir = filepath.Dir(dir)
	}
}
