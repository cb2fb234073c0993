package redis

import (
	"sync"
	"time"
)

// maxFailures is how many failures in a row it takes until Redis is left alone.
const maxFailures = 3

// breaker decides whether Redis is asked at all, so that one that is away does not cost every call its timeout.
//
//	        maxFailures in a row
//	asking ──────────────────────▶ away ◀──────────┐
//	   ▲                             │ pause over  │ failure, or no answer
//	   │           success           ▼             │ for another pause
//	   └───────────────────────── one call tries ──┘
type breaker struct {
	pause time.Duration

	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // when one call may try, once there are maxFailures
}

// allow says whether to ask Redis now. Who was allowed to must report how it went, unless it cannot tell.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.until = now.Add(b.pause) // the others wait for this one
	return true
}

// away says whether allow would say no.
func (b *breaker) isOpen(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= maxFailures && now.Before(b.until)
}

// succeeded reports whether Redis is back.
func (b *breaker) succeeded() (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back = b.failures >= maxFailures
	b.failures = 0
	return back
}

// failed reports whether Redis is left alone from now on, and was not before.
func (b *breaker) failed(now time.Time) (gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures >= maxFailures {
		b.until = now.Add(b.pause)
	}
	return b.failures == maxFailures
}
