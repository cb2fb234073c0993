// Package awake tells time that passed from time that a clock left out: how long this machine has slept. The monotonic clock of a Go program stands
// still meanwhile, as when the lid of a laptop is closed, and afterwards every other clock seems to have jumped.
package suspend
