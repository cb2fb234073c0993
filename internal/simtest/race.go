//go:build race

package simtest

// RaceEnabled reports whether the race detector is on, which makes everything ten times slower.
const RaceEnabled = true
