//go:build !race

package calendarsim

// raceEnabled says that the race detector is at work, which makes everything ten times as slow.
const raceEnabled = false
