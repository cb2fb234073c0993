// Package lockfile provides locks between processes. The operating system releases a lock when its
// process ends.
package lockfile

import "errors"

// ErrLocked is returned if another process, or another caller in this process, holds the lock.
var ErrLocked = errors.New("locked")
