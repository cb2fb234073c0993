//go:build linux || darwin

package suspend

import (
	"time"

	"golang.org/x/sys/unix"
)

// Total is how long the machine has slept since it was started; 0 if nobody knows.
func Total() time.Duration {
	var without, with unix.Timespec
	if unix.ClockGettime(clockWithoutSuspend, &without) != nil || unix.ClockGettime(clockWithSuspend, &with) != nil {
		return 0
	}
	return time.Duration(with.Nano() - without.Nano())
}
