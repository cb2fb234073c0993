package pgtest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errMissing says what to install. The test fails instead of skipping, because an untested store
// would look tested.
var errMissing = errors.New("PostgreSQL is missing: no initdb and postgres in PATH or /usr/lib/postgresql/*/bin. " +
	"`make test` installs them on Debian and Ubuntu; elsewhere install PostgreSQL's server package. It need not run")

// places lists the directories in which packages install the server. Most are not in PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",               // Debian, Ubuntu
	"/usr/pgsql-*/bin",                        // PGDG on Fedora and Red Hat
	"/opt/homebrew/opt/postgresql@*/bin",      // macOS
	"/usr/local/opt/postgresql@*/bin",         // macOS, Intel
	"/usr/libexec/postgresql*",                // Alpine
	"/usr/local/pgsql/bin", "/usr/local/bin/", // from source
}

// find returns the directory of initdb and postgres: from PATH, or else the newest installed
// version.
func find() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(initdb); err == nil && complete(filepath.Dir(resolved)) {
			return filepath.Dir(resolved), nil
		}
	}
	var found []string
	for _, place := range places {
		dirs, err := filepath.Glob(place)
		if err != nil {
			return "", err
		}
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool { return !complete(dir) })...)
	}
	if len(found) == 0 {
		return "", errMissing
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// version returns the first number in a path, or 0.
func version(dir string) int {
	for _, word := range strings.FieldsFunc(dir, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(word)
		if err == nil {
			return n
		}
	}
	return 0
}
