// Package migration holds the steps of a database schema and compares them with the steps that a
// database has recorded.
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Errors of a database's migration history. The stores export them under their own names.
var (
	ErrNewer = errors.New("schema was created by a newer build")
	ErrDrift = errors.New("schema history differs from this build's")
)

// Step is one migration. A released step never changes; a change is a new file.
type Step struct{ Name, Script, Checksum string }

// New returns the step of a file.
func New(name, script string) Step {
	// Line endings of a checkout do not change the checksum.
	script = strings.ReplaceAll(script, "\r\n", "\n")
	sum := sha256.Sum256([]byte(script))
	return Step{Name: name, Script: script, Checksum: hex.EncodeToString(sum[:])}
}

// Read returns the steps in a directory. The version of a step is its position, counted from 1, and
// its name begins with that number.
func Read(files fs.FS, dir string) ([]Step, error) {
	files, err := fs.Sub(files, dir)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	var steps []Step
	for i, entry := range entries { // sorted by name
		if !strings.HasPrefix(entry.Name(), fmt.Sprintf("%04d_", i+1)) {
			return nil, fmt.Errorf("migration %s should have number %d", entry.Name(), i+1)
		}
		script, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, err
		}
		steps = append(steps, New(entry.Name(), string(script)))
	}
	return steps, nil
}

// Compare checks a recorded step against the steps of this build, after the ones that are already
// applied.
func Compare(steps []Step, applied, version int, name, checksum string) error {
	switch {
	case version > len(steps): //mutate:newer-schema-rejected
		return fmt.Errorf("%w: it has migration %d (%s), this build knows %d", ErrNewer, version, name, len(steps))
	case version != applied+1:
		return fmt.Errorf("%w: migration %d is missing", ErrDrift, applied+1)
	case checksum != steps[applied].Checksum:
		return fmt.Errorf("%w: migration %d was %s with different content", ErrDrift, version, name)
	}
	return nil
}
