//go:build race

package calendarsim

// racing says that the race detector is at work, which makes everything ten times as slow.
const racing = true
