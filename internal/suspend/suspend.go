//go:build linux || darwin

package suspend

import (
	"time"

	"golang.org/x/sys/unix"
)

// Total returns how long the machine has been suspended since boot, or 0 if that is unknown.
func Total() time.Duration {
	var without, with unix.Timespec
	if unix.ClockGettime(clockWithoutSuspend, &without) != nil || unix.ClockGettime(clockWithSuspend, &with) != nil {
		return 0
	}
	return time.Duration(with.Nano() - without.Nano())
}
