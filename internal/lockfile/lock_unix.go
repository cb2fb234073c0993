//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Try locks a file that is used for nothing else. It creates the file if needed and does not remove
// it. It returns ErrLocked if the lock is taken.
func Try(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(file)
}

// TryDir locks a directory, to protect a file in it that is replaced by renaming. It returns
// ErrLocked if the lock is taken, and another error if the file system cannot lock directories.
func TryDir(path string) (release func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return lock(dir)
}

func lock(file *os.File) (release func(), err error) {
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		return func() { _ = file.Close() }, nil // nothing was written
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, err
}
