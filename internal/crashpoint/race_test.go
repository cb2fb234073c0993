//go:build race

package crashpoint

const raceEnabled = true
