package awake

import "golang.org/x/sys/unix"

const withoutSleep, withSleep = unix.CLOCK_UPTIME_RAW, unix.CLOCK_MONOTONIC
