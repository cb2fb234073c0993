package suspend

import "golang.org/x/sys/unix"

const clockWithoutSuspend, clockWithSuspend = unix.CLOCK_UPTIME_RAW, unix.CLOCK_MONOTONIC
