package admission

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Each account has one read at a time. The number of accounts is limited, and the next one waits.
func TestTurnLimiter_OneReadPerAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns TurnLimiter
		var done []func()
		for n := range MaxHeavyReads() {
			release, _ := turns.Acquire(t.Context(), fmt.Sprint("account-", n))
			if release == nil {
				t.Fatalf("account %d gets no permit", n)
			}
			done = append(done, release)
		}
		for _, account := range []string{"account-0", "another"} {
			if release, retryAfter := turns.Acquire(t.Context(), account); release != nil || retryAfter <= 0 {
				t.Errorf("%s gets a permit", account)
			}
		}
		for _, release := range done {
			release()
		}
		if len(turns.busy)+len(turns.queue) != 0 {
			t.Errorf("an account is remembered: %+v", &turns)
		}
	})
}

// Waiters are served in order, and their number per account is limited; a cancelled one leaves no
// entry.
func TestTurnLimiter_IsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns TurnLimiter
		first, _ := turns.Acquire(t.Context(), "acme")
		served := make(chan string, 10)
		wait := func(name string, ctx context.Context) {
			go func() {
				done, _ := turns.Acquire(ctx, "acme")
				if done == nil {
					served <- name + " is rejected"
					return
				}
				served <- name
				done()
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		wait("a", t.Context())
		wait("b", gone)
		wait("c", t.Context())
		wait("d", t.Context())
		wait("e", t.Context())
		if got := <-served; got != "e is rejected" {
			t.Errorf("%s", got)
		}
		leave()
		if got := <-served; got != "b is rejected" {
			t.Errorf("%s", got)
		}
		first()
		if got := fmt.Sprint(<-served, <-served, <-served); got != "acd" {
			t.Errorf("served: %s", got)
		}
		last, _ := turns.Acquire(t.Context(), "acme")
		wait("f", t.Context())
		time.Sleep(turnWait)
		if got := <-served; got != "f is rejected" {
			t.Errorf("%s", got)
		}
		last()
	})
}
