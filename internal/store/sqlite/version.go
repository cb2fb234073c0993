package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Version returns the number of migrations of the database at path, and the names of all migrations
// of this build. It changes nothing. A missing file has none. For a foreign or newer file it
// returns the error of [Open].
func Version(ctx context.Context, path string) (applied int, known []string, err error) {
	name := filepath.Base(path)
	full, err := absolutePath(path)
	if err != nil {
		return 0, nil, wrap("inspect", name, err)
	}
	steps, err := migrations()
	if err != nil {
		return 0, nil, wrap("inspect", name, err)
	}
	for _, step := range steps {
		known = append(known, step.Name)
	}
	if _, err := os.Stat(full); errors.Is(err, fs.ErrNotExist) {
		return 0, known, nil
	}
	opening.Lock()
	defer opening.Unlock()
	if applied, err = probeFile(ctx, full, busyTimeout, steps); err != nil {
		return 0, nil, wrap("inspect", name, withContext(ctx, asDiskFull(err)))
	}
	return applied, known, nil
}
