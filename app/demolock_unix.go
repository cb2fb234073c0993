//go:build unix

package app

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file that is there for nothing else, for as long as this process lives, however it ends. It returns errLocked if another process has it.
func lockFile(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		return func() { _ = file.Close() }, nil // nothing was written
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}
