package admission

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Buckets limits the rate of each of many names with a token bucket.
type Buckets struct {
	rate  rate.Limit
	burst int

	mu        sync.Mutex
	buckets   map[string]*bucket // by account and name
	lastSweep time.Time
}

type bucket struct {
	*rate.Limiter
	lastUsed time.Time
}

// NewBuckets returns a limit of perSecond events in the long run and burst events at once.
func NewBuckets(perSecond float64, burst int) *Buckets {
	return &Buckets{rate: rate.Limit(perSecond), burst: burst, buckets: make(map[string]*bucket)}
}

// bucketTTL is the time after which an unused bucket is full again.
const bucketTTL = 10 * time.Minute

// RetryAfter returns how long a name of an account must wait before its next event; 0 if not at
// all.
func (l *Buckets) RetryAfter(account, name string) time.Duration {
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
	key := strconv.Quote(account) + name
	b := l.buckets[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(l.rate, l.burst)}
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
