package authn

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

func TestSourceOf_IsTheClientOfATrustedProxy(t *testing.T) {
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"203.0.113.7:1", nil, "203.0.113.7"},
		{"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"}, // anybody can send the header
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"127.0.0.1:1", []string{"192.0.2.9, 192.0.2.8", "192.0.2.7,  198.51.100.1"}, "198.51.100.1"}, // the last one is the proxy's
		{"[::1]:1", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::9]:1", nil, "2001:db8:1:2::/64"},
		{"[::ffff:203.0.113.7]:1", nil, "203.0.113.7"},
		{"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"@", nil, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := sourceOf(r); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}
