// Package sparse keeps those lines of a log few that anybody can cause: a stranger must not fill an operator's disk, nor hide what else is in there.
package logsample

import (
	"sync"
	"time"
)

// A minute may have so many lines. Who reads them knows by then what is going on; metrics count every one.
const (
	window       = time.Minute
	maxPerWindow = 10
)

// Sampler are those of one kind. The zero value is ready for use.
type Sampler struct {
	mu      sync.Mutex
	begun   time.Time
	written int
	dropped int
}

// Next reports whether there may be one more line now, and how many were left out since the last one.
func (l *Sampler) Allow() (left int, ok bool) { return l.allow(time.Now()) }

func (l *Sampler) allow(now time.Time) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.begun) >= window {
		l.begun, l.written = now, 0
	}
	if l.written >= maxPerWindow {
		l.dropped++
		return 0, false
	}
	l.written++
	left, l.dropped = l.dropped, 0
	return left, true
}
