package awake

import "golang.org/x/sys/unix"

const withoutSleep, withSleep = unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME
