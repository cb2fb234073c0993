package admission

import (
	"runtime"
	"time"
)

// LimiterConfig bounds the requests that a server accepts.
type LimiterConfig struct {
	// InFlight and Streams bound concurrent requests and event streams; Concurrency bounds requests
	// that work at the same time.
	InFlight, Streams, Concurrency int
	// Rate is the number of requests per second and principal, Burst how many at once.
	Rate  float64
	Burst int
}

// Limiter applies the limits of a server.
type Limiter struct {
	config      LimiterConfig
	Requests    *slotLimiter
	Streams     *slotLimiter
	Scheduler   FairScheduler
	Credentials credentialCache

	principals *Buckets
}

// NewLimiter returns a limiter. quick reports whether the store answers quickly.
func NewLimiter(limits LimiterConfig, quick func() bool) *Limiter {
	return &Limiter{
		config: limits, Requests: newSlotLimiter(limits.InFlight), Streams: newSlotLimiter(limits.Streams), principals: NewBuckets(limits.Rate, limits.Burst),
		Scheduler: FairScheduler{capacity: limits.Concurrency, overloadedCapacity: runtime.GOMAXPROCS(0), storeIsFast: quick},
	}
}

// RetryAfter returns how long a principal must wait before its next request; 0 if not at all.
func (l *Limiter) RetryAfter(account, principal string) time.Duration {
	return l.principals.RetryAfter(account, principal)
}
