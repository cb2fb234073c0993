package redis

import (
	"sync"
	"time"
)

// maxFailures is the number of consecutive failures that opens the breaker.
const maxFailures = 3

// breaker is a circuit breaker: while Redis is unavailable, calls do not wait for its timeout.
//
//	        maxFailures in a row
//	closed ──────────────────────▶ open ◀──────────┐
//	   ▲                             │ pause over  │ failure, or no reply
//	   │           success           ▼             │ for another pause
//	   └──────────────────────── one call probes ──┘
type breaker struct {
	pause time.Duration

	mu       sync.Mutex
	failures int       // consecutive
	until    time.Time // the time of the next probe, once there are maxFailures
}

// allow reports whether to call Redis now. A caller that was allowed must report the result, unless
// it is unknown.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.until = now.Add(b.pause) // the others wait for this probe
	return true
}

// isOpen reports whether allow would return false.
func (b *breaker) isOpen(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= maxFailures && now.Before(b.until)
}

// succeeded reports whether the breaker closes now.
func (b *breaker) succeeded() (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back = b.failures >= maxFailures
	b.failures = 0
	return back
}

// failed reports whether the breaker opens now.
func (b *breaker) failed(now time.Time) (gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures >= maxFailures {
		b.until = now.Add(b.pause)
	}
	return b.failures == maxFailures
}
