package authn

import (
	"sync"
	"time"
)

// Interval reports when a periodic action is due. The zero value is due at once.
type Interval struct {
	mu   sync.Mutex
	last time.Time
}

// Due reports whether the action is due, and if so counts it as done.
func (s *Interval) Due(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && now.Sub(s.last) < every {
		return false
	}
	s.last = now
	return true
}

// Reset makes it due again.
func (s *Interval) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Time{}
}
