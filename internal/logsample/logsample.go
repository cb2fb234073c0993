// Package logsample limits log lines that unauthenticated clients can trigger, so that they cannot
// fill the disk or hide other lines.
package logsample

import (
	"sync"
	"time"
)

// The limit per minute. A few lines are enough to notice the problem; metrics count every event.
const (
	window       = time.Minute
	maxPerWindow = 10
)

// Sampler limits the lines of one kind. The zero value is ready to use.
type Sampler struct {
	mu      sync.Mutex
	begun   time.Time
	written int
	dropped int
}

// Allow reports whether a line may be written now, and how many were dropped since the last one.
func (s *Sampler) Allow() (dropped int, ok bool) { return s.allow(time.Now()) }

func (s *Sampler) allow(now time.Time) (dropped int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.begun) >= window {
		s.begun, s.written = now, 0
	}
	if s.written >= maxPerWindow {
		s.dropped++
		return 0, false
	}
	s.written++
	dropped, s.dropped = s.dropped, 0
	return dropped, true
}
