package admission

import (
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
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

	mu        sync.Mutex
	buckets   map[string]*bucket // by account and principal
	lastSweep time.Time
}

type bucket struct {
	*rate.Limiter
	lastUsed time.Time
}

// NewLimiter returns a limiter. quick reports whether the store answers quickly.
func NewLimiter(limits LimiterConfig, quick func() bool) *Limiter {
	return &Limiter{
		config: limits, Requests: newSlotLimiter(limits.InFlight), Streams: newSlotLimiter(limits.Streams), buckets: make(map[string]*bucket),
		Scheduler: FairScheduler{capacity: limits.Concurrency, overloadedCapacity: runtime.GOMAXPROCS(0), storeIsFast: quick},
	}
}

// bucketTTL is the time after which an unused bucket is full again.
const bucketTTL = 10 * time.Minute

// RetryAfter returns how long a principal must wait before its next request; 0 if not at all.
func (l *Limiter) RetryAfter(account, principal string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.lastSweep) > bucketTTL {
		for key, b := range l.buckets {
			if now.Sub(b.lastUsed) > bucketTTL {
				delete(l.buckets, key)
			}
		}
		l.lastSweep = now
	}
	key := strconv.Quote(account) + principal
	b := l.buckets[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(l.config.Rate), l.config.Burst)}
		l.buckets[key] = b
	}
	b.lastUsed = now
	r := b.ReserveN(now, 1)
	if delay := r.DelayFrom(now); delay > 0 {
		r.CancelAt(now)
		return delay
	}
	return 0
}
