// Package limits has the size limits of what a run shows and gets.
package limits

// Size limits of a run's interface, in bytes of JSON, in the library as on a server. Larger values
// belong elsewhere, with a reference in the run.
const (
	MaxAnswerBytes = 64 << 10  // an answer
	MaxDataBytes   = 256 << 10 // the data of an interrupt
)
