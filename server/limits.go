package server

import (
	"cmp"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits are what callers may use. InFlight, Working and Streams are shared by accounts, so that one that is noisy does not make the others late; see docs/operations.md.
type Limits struct {
	// Body is how many bytes a request may have. The default is 2 MiB.
	Body int64
	// Rate and Burst limit the requests of one principal: so many a second in the long run, so many at once. The defaults are 50 and 100.
	Rate  float64
	Burst int
	// InFlight is how many requests are served at the same time, event streams apart; an eighth more if they are of accounts that have none. The default is 512.
	InFlight int
	// Working is how many of them are worked on at the same time; the others wait for a moment, or are refused. A request that is served for longer than
	// a quarter of a second, or than a second while there are too many, does not count if the store answers quickly: it waits for what a run comes to.
	// The default is 32 for each core.
	Concurrency int
	// Streams is how many event streams are open at the same time. The default is 20000.
	Streams int
	// Silent is how many connections of strangers are kept on which nothing is asked, of those that [Server.LimitIdleConns] sees; of callers twice as many. The default is 5000.
	IdleConns int
	// Open is how many open questions an account may have before it cannot start more runs. The default is 10000. It is not counted for each
	// start, and neither are Runs: see docs/operations.md.
	OpenRequests int
	// Runs is how many runs of an account may be ready or under way at the same time before it cannot start more. The default is 1000.
	ActiveRuns int
	// Sending is how long a client may take to send the body of a request. The default is 15 s.
	BodyTimeout time.Duration
	// Patience is how long a client may not read what is sent to it before it is cut off. The default is 10 s.
	WriteTimeout time.Duration
	// Heartbeat is how often an event stream says that it is alive. The default is 15 s.
	Heartbeat time.Duration
	// Recheck is how often it is made sure, while an event stream is open, that its reader may still come in. The default is 1 min.
	AuthRecheck time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 2<<20)
	l.Rate, l.Burst = cmp.Or(l.Rate, 50), cmp.Or(l.Burst, 100)
	l.InFlight, l.Streams, l.OpenRequests = cmp.Or(l.InFlight, 512), cmp.Or(l.Streams, 20000), cmp.Or(l.OpenRequests, 10000)
	l.ActiveRuns, l.Concurrency = cmp.Or(l.ActiveRuns, 1000), cmp.Or(l.Concurrency, 32*runtime.GOMAXPROCS(0))
	l.BodyTimeout, l.WriteTimeout, l.Heartbeat = cmp.Or(l.BodyTimeout, 15*time.Second), cmp.Or(l.WriteTimeout, 10*time.Second), cmp.Or(l.Heartbeat, 15*time.Second)
	l.AuthRecheck, l.IdleConns = cmp.Or(l.AuthRecheck, time.Minute), cmp.Or(l.IdleConns, 5000)
	return l
}

// limiter says who has to wait.
type limiter struct {
	limits      Limits
	requests    *slotLimiter
	streams     *slotLimiter
	scheduler   fairScheduler
	credentials credentialCache

	mu        sync.Mutex
	buckets   map[string]*bucket // by account and principal
	lastSweep time.Time
}

type bucket struct {
	*rate.Limiter
	lastUsed time.Time
}

func newLimiter(limits Limits, quick func() bool) *limiter {
	return &limiter{
		limits: limits, requests: newSlotLimiter(limits.InFlight), streams: newSlotLimiter(limits.Streams), buckets: make(map[string]*bucket),
		scheduler: fairScheduler{capacity: limits.Concurrency, overloadedCapacity: runtime.GOMAXPROCS(0), storeIsFast: quick},
	}
}

// bucketTTL is after which time an unused bucket is full anyway.
const bucketTTL = 10 * time.Minute

// wait is how long a principal has to wait before the next request; 0 if not at all.
func (l *limiter) retryAfter(p Principal) time.Duration {
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
	key := strconv.Quote(p.Account) + p.ID
	b := l.buckets[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
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

var _ http.Handler = (*Server)(nil)
