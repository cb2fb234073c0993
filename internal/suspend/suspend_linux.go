package suspend

import "golang.org/x/sys/unix"

const clockWithoutSuspend, clockWithSuspend = unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME
