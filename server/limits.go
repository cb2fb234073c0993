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
	Working int
	// Streams is how many event streams are open at the same time. The default is 20000.
	Streams int
	// Silent is how many connections of strangers are kept on which nothing is asked, of those that [Server.Guard] sees; of callers twice as many. The default is 5000.
	Silent int
	// Open is how many open questions an account may have before it cannot start more runs. The default is 10000. It is not counted for each
	// start, and neither are Runs: see docs/operations.md.
	Open int
	// Runs is how many runs of an account may be ready or under way at the same time before it cannot start more. The default is 1000.
	Runs int
	// Sending is how long a client may take to send the body of a request. The default is 15 s.
	Sending time.Duration
	// Patience is how long a client may not read what is sent to it before it is cut off. The default is 10 s.
	Patience time.Duration
	// Heartbeat is how often an event stream says that it is alive. The default is 15 s.
	Heartbeat time.Duration
	// Recheck is how often it is made sure, while an event stream is open, that its reader may still come in. The default is 1 min.
	Recheck time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 2<<20)
	l.Rate, l.Burst = cmp.Or(l.Rate, 50), cmp.Or(l.Burst, 100)
	l.InFlight, l.Streams, l.Open = cmp.Or(l.InFlight, 512), cmp.Or(l.Streams, 20000), cmp.Or(l.Open, 10000)
	l.Runs, l.Working = cmp.Or(l.Runs, 1000), cmp.Or(l.Working, 32*runtime.GOMAXPROCS(0))
	l.Sending, l.Patience, l.Heartbeat = cmp.Or(l.Sending, 15*time.Second), cmp.Or(l.Patience, 10*time.Second), cmp.Or(l.Heartbeat, 15*time.Second)
	l.Recheck, l.Silent = cmp.Or(l.Recheck, time.Minute), cmp.Or(l.Silent, 5000)
	return l
}

// limiter says who has to wait.
type limiter struct {
	limits  Limits
	serving *hall
	streams *hall
	working gate
	hints   hints

	mu      sync.Mutex
	buckets map[string]*bucket // by account and principal
	swept   time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

func newLimiter(limits Limits, quick func() bool) *limiter {
	return &limiter{
		limits: limits, serving: newHall(limits.InFlight), streams: newHall(limits.Streams), buckets: make(map[string]*bucket),
		working: gate{places: limits.Working, narrow: runtime.GOMAXPROCS(0), quick: quick},
	}
}

// idleBucket is after which time an unused bucket is full anyway.
const idleBucket = 10 * time.Minute

// wait is how long a principal has to wait before the next request; 0 if not at all.
func (l *limiter) wait(p Principal) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.swept) > idleBucket {
		for key, b := range l.buckets {
			if now.Sub(b.used) > idleBucket {
				delete(l.buckets, key)
			}
		}
		l.swept = now
	}
	key := strconv.Quote(p.Account) + p.ID
	b := l.buckets[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
		l.buckets[key] = b
	}
	b.used = now
	r := b.ReserveN(now, 1)
	if delay := r.DelayFrom(now); delay > 0 {
		r.CancelAt(now)
		return delay
	}
	return 0
}

var _ http.Handler = (*Server)(nil)
