//go:build race

package calendarsim

// raceEnabled reports whether the race detector is on, which makes everything ten times slower.
const raceEnabled = true
