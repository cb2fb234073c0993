package redistest

import (
	"errors"
	"os/exec"
)

// errMissing says what to do. The test does not skip: a store that was never tried would look tested.
var errMissing = errors.New("no redis-server in PATH. " +
	"`make test` installs it on Debian and Ubuntu; elsewhere install Redis or Valkey. It need not run")

// names are those that the server's program goes by. The last one is the same program, and the only name that it has where Debian's
// redis-tools is installed without the service of redis-server.
var names = []string{"redis-server", "valkey-server", "redis-check-rdb"}

func find() (string, error) {
	for _, name := range names {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errMissing
}
