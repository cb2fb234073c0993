//go:build unix

package box

import (
	"errors"
	"os"
	"syscall"
)

// lockDir locks a folder, not the file in it, which another one takes the place of. The lock ends with the process. A file system that has no locks for
// folders locks nothing.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = d.Close()
		return nil, ErrRotating
	}
	return func() { _ = d.Close() }, nil
}
