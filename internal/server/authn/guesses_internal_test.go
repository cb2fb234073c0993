package authn

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// The limit of a name stays, whatever other names are tried, and passes with time.
func TestGuessLimiter_OtherNamesDoNotResetTheLimit(t *testing.T) {
	g, now := newGuessLimiter(), time.Now()
	for n := range guessBurst {
		if p := g.allow("192.0.2.1", "ann", now); p != nil {
			t.Fatalf("attempt %d: %v", n, p)
		}
	}
	long := strings.Repeat("x", 1<<10)
	for n := range 30_000 {
		g.allow(fmt.Sprint("192.0.2.", n), fmt.Sprint(n, long), now)
	}
	for _, name := range []string{"ann", "ANN"} {
		if p := g.allow("192.0.2.2", name, now); p == nil || p.Status != http.StatusTooManyRequests || p.RetryAfter != guessInterval {
			t.Errorf("%s: %v", name, p)
		}
	}
	if p := g.allow("192.0.2.2", "ann", now.Add(2*guessInterval)); p != nil {
		t.Errorf("after two minutes: %v", p)
	}
}

// Attempts of a source are limited, over all names. Those that succeed do not count.
func TestGuessLimiter_SourceIsLimited(t *testing.T) {
	g, now := newGuessLimiter(), time.Now()
	allowed := 0
	for n := range 10 * sourceBurst {
		if g.allow("192.0.2.1", fmt.Sprint(n), now) == nil {
			allowed++
		}
	}
	if allowed != sourceBurst {
		t.Errorf("%d attempts are allowed", allowed)
	}
	if p := g.allow("192.0.2.2", "ann", now); p != nil {
		t.Errorf("another source: %v", p)
	}
	for n := range 10 * sourceBurst {
		if p := g.allow("192.0.2.3", fmt.Sprint("office", n), now); p != nil {
			t.Fatalf("sign-in %d: %v", n, p)
		}
		g.succeeded("192.0.2.3")
	}
}

// Nothing of a name is kept.
func TestCounters_HaveAFixedSize(t *testing.T) {
	if size := unsafe.Sizeof(counters{}); size > 2<<20 {
		t.Errorf("%d bytes", size)
	}
	c := newCounters(1, time.Minute)
	if n := testing.AllocsPerRun(1000, func() { c.take(strings.Repeat("x", 100), time.Now()) }); n > 1 { // the name of this test
		t.Errorf("%v allocations", n)
	}
}

// While one source waits for many hashes, another source waits for few of them.
func TestGuessLimiter_HashingIsSharedBetweenSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessLimiter()
		const hash = 50 * time.Millisecond
		work := func(source string) bool {
			done, err := g.acquire(t.Context(), source)
			if err != nil {
				return false
			}
			time.Sleep(hash)
			done()
			return true
		}
		rejected := make(chan bool, 100)
		for range 100 {
			go func() { rejected <- !work("192.0.2.1") }()
		}
		synctest.Wait()
		begin := time.Now()
		if !work("192.0.2.2") || time.Since(begin) > 6*hash {
			t.Errorf("another source waited %v", time.Since(begin))
		}
		n := 0
		for range 100 {
			if <-rejected {
				n++
			}
		}
		if n != 95 { // one at work, and a short queue
			t.Errorf("%d were rejected", n)
		}
	})
}
