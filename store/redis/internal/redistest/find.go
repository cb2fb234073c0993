package redistest

import (
	"errors"
	"os/exec"
)

// errMissing says what to install. The test fails instead of skipping, because an untested store
// would look tested.
var errMissing = errors.New("no redis-server in PATH. " +
	"`make test` installs it on Debian and Ubuntu; elsewhere install Redis or Valkey. It need not run")

// names lists the names of the server program. The last one is the same program, and the only name
// where Debian's redis-tools is installed without redis-server.
var names = []string{"redis-server", "valkey-server", "redis-check-rdb"}

func find() (string, error) {
	for _, name := range names {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errMissing
}
