package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Version returns how many migrations the database at path has, and the names of all that this build knows. It changes nothing. A file that
// is not there has none; one that is not ours, or newer than this build, is the error that [Open] would return.
func Version(ctx context.Context, path string) (applied int, known []string, err error) {
	name := filepath.Base(path)
	full, err := absolutePath(path)
	if err != nil {
		return 0, nil, wrap("look at", name, err)
	}
	steps, err := migrations()
	if err != nil {
		return 0, nil, wrap("look at", name, err)
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
		return 0, nil, wrap("look at", name, withContext(ctx, asDiskFull(err)))
	}
	return applied, known, nil
}
