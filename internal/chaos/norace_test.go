//go:build unix && !race

package chaos

const raceDetector = false
