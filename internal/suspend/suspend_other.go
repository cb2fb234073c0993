//go:build !linux && !darwin

package awake

import "time"

// Slept is how long the machine has slept since it was started. Nobody knows here.
func Slept() time.Duration { return 0 }
