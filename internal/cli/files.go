package cli

import (
	"errors"
	"io/fs"
	"os"
)

// IsMissing reports whether a file does not exist.
func IsMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// ReadFile reads a file named on the command line.
func ReadFile(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, InvalidFile(err)
	}
	return text, nil
}

// InvalidFile returns an error in a file, or in reading it.
func InvalidFile(err error) error { return &fileError{err} }

type fileError struct{ error }

// Is matches errFile, for the exit code.
func (*fileError) Is(target error) bool { return target == errFile }

func (e *fileError) Unwrap() error { return e.error }

var errFile = errors.New("invalid file")
