// Package sparse keeps those lines of a log few that anybody can cause: a stranger must not fill an operator's disk, nor hide what else is in there.
package sparse

import (
	"sync"
	"time"
)

// A minute may have so many lines. Who reads them knows by then what is going on; metrics count every one.
const (
	window = time.Minute
	most   = 10
)

// Lines are those of one kind. The zero value is ready for use.
type Lines struct {
	mu      sync.Mutex
	begun   time.Time
	written int
	left    int
}

// Next reports whether there may be one more line now, and how many were left out since the last one.
func (l *Lines) Next() (left int, ok bool) { return l.next(time.Now()) }

func (l *Lines) next(now time.Time) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.begun) >= window {
		l.begun, l.written = now, 0
	}
	if l.written >= most {
		l.left++
		return 0, false
	}
	l.written++
	left, l.left = l.left, 0
	return left, true
}
