//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Try locks a file that exists for nothing else; it is made if it is not there, and stays. It returns ErrLocked if somebody else has it.
func Try(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(file)
}

// TryDir locks a folder, for what is done with a file in it that another one takes the place of. It returns ErrLocked if somebody else has it, and another
// error also if the file system has no locks for folders.
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
