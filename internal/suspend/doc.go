// Package suspend reports how long the machine has been suspended. The monotonic clock of a Go
// program stops during suspend, for example while the lid of a laptop is closed. Afterwards every
// other clock seems to have jumped.
package suspend
