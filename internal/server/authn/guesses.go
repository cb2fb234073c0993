package authn

import (
	"context"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// guessLimiter bounds attempts to sign in with a password: per source, per name, whether or not
// there is a member of that name, and at the same time, because each attempt needs a processor and
// memory. An attempt counts when it arrives, so a client that closes its connection pays for it.
type guessLimiter struct {
	sources, names *counters
	hashing        admission.TurnLimiter
}

const (
	// A name has guessBurst attempts, and another one each guessInterval.
	guessBurst    = 5
	guessInterval = time.Minute
	// A source has sourceBurst attempts that fail, and another one each sourceInterval. People of
	// one office share a source.
	sourceBurst    = 60
	sourceInterval = 2 * time.Second
)

func newGuessLimiter() *guessLimiter {
	return &guessLimiter{
		sources: newCounters(sourceBurst, sourceInterval), names: newCounters(guessBurst, guessInterval),
		hashing: admission.TurnLimiter{Parallel: max(1, runtime.GOMAXPROCS(0)/2)},
	}
}

// allow counts an attempt of a source for a name. It returns a problem if there were too many.
func (g *guessLimiter) allow(source, name string, now time.Time) *problems.Problem {
	p := problems.New("rate_limited", "there were too many attempts to sign in from your network; wait a minute")
	if g.sources.take(source, now) {
		if g.names.take(strings.ToLower(name), now) {
			return nil
		}
		p = problems.New("rate_limited", "there were too many attempts to sign in as this person; wait a minute")
	}
	p.RetryAfter = guessInterval
	return p
}

// succeeded takes back the attempt of a source: sign-ins that succeed are not limited.
func (g *guessLimiter) succeeded(source string) { g.sources.giveBack(source) }

// acquire waits until a source may hash a password, and returns the function that ends its turn. A
// source hashes one password at a time, so that others wait for few of them.
func (g *guessLimiter) acquire(ctx context.Context, source string) (done func(), err error) {
	done, delay := g.hashing.Acquire(ctx, source)
	if done != nil {
		return done, nil
	}
	p := problems.New("rate_limited", "too many people are signing in; try again")
	p.RetryAfter = delay
	return nil, p
}

// counters counts attempts by key in a table of fixed size, whatever the keys are. Keys that share
// an entry share its limit. So another key can make a limit stricter, by chance, but cannot reset
// it, as it could if entries were evicted.
type counters struct {
	burst    int64
	interval time.Duration
	seed     maphash.Seed

	mu sync.Mutex
	// free is when an entry has all of its attempts again, in Unix nanoseconds.
	free [1 << 17]int64
}

func newCounters(burst int64, interval time.Duration) *counters {
	return &counters{burst: burst, interval: interval, seed: maphash.MakeSeed()}
}

func (c *counters) entry(key string) *int64 {
	return &c.free[maphash.String(c.seed, key)%uint64(len(c.free))]
}

// take counts an attempt. It returns false, and counts nothing, if there is none left.
func (c *counters) take(key string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.entry(key)
	free := max(*at, now.UnixNano()) + int64(c.interval)
	if free-now.UnixNano() > c.burst*int64(c.interval) {
		return false
	}
	*at = free
	return true
}

// giveBack takes an attempt back.
func (c *counters) giveBack(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.entry(key) -= int64(c.interval)
}
