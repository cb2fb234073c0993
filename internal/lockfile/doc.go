// Package lockfile lets one process at a time do something. The operating system lets go of a lock when its process ends, however it ends.
package lockfile

import "errors"

// ErrLocked says that another process has the lock, or somebody else in this one.
var ErrLocked = errors.New("locked")
