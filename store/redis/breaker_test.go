package redis

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

func TestBreaker_OneCallProbesAfterEachPause(t *testing.T) {
	now := time.Now()
	b := breaker{pause: time.Minute}
	asks := func(when string, want bool) {
		t.Helper()
		if away, allow := b.isOpen(now), b.allow(now); away == want || allow != want {
			t.Errorf("%s: open %t, allow %t; want call: %t", when, away, allow, want)
		}
	}
	asks("at first", true)
	for range maxFailures - 1 {
		b.failed(now)
	}
	asks("after a few failures", true)
	b.succeeded()
	for range maxFailures - 1 {
		b.failed(now)
	}
	asks("after as many, with a success between", true)
	b.failed(now)
	asks("after too many", false)
	now = now.Add(time.Minute - 1)
	asks("before the pause is over", false)
	now = now.Add(1)
	asks("after it", true)
	asks("while another tries", false)
	now = now.Add(time.Minute)
	asks("if the probe never reported", true)
	b.failed(now)
	asks("if it failed", false)
	now = now.Add(time.Minute)
	asks("after the next pause", true)
	b.succeeded()
	asks("if that succeeded", true)
	asks("and all other calls", true)
}

// slowHook is a slow Redis: reads take a given time, writes never end.
type slowHook struct{ read time.Duration }

func (s slowHook) DialHook(goredis.DialHook) goredis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { panic("there is no network here") }
}

func (s slowHook) ProcessHook(goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		time.Sleep(s.read)
		return ctx.Err()
	}
}

func (s slowHook) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, _ []goredis.Cmder) error {
		<-ctx.Done()
		return ctx.Err()
	}
}

// A call waits for Redis at most one timeout, for any number of requests.
func TestTimeout_CoversTheWholeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 100 * time.Millisecond
		client := mustClient(t, "redis://127.0.0.1:1")
		client.AddHook(slowHook{read: 70 * time.Millisecond})
		inner := newBaseStore()
		s := mustNew(t, inner, client, Config{Timeout: timeout})
		mustSave(t, inner, demo, 0, parts{"a": "1"}.delta())
		start := time.Now()
		wantStored(t, s, demo, parts{"a": "1"}.at(1))
		if took := time.Since(start); took != timeout {
			t.Errorf("a load with two requests took %s; want %s", took, timeout)
		}
		start = time.Now()
		mustSave(t, s, demo, 1, parts{"a": "2"}.delta())
		if took := time.Since(start); took != timeout {
			t.Errorf("a save took %s; want %s", took, timeout)
		}
	})
}
