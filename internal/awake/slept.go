//go:build linux || darwin

package awake

import (
	"time"

	"golang.org/x/sys/unix"
)

// Slept is how long the machine has slept since it was started; 0 if nobody knows.
func Slept() time.Duration {
	var without, with unix.Timespec
	if unix.ClockGettime(withoutSleep, &without) != nil || unix.ClockGettime(withSleep, &with) != nil {
		return 0
	}
	return time.Duration(with.Nano() - without.Nano())
}
