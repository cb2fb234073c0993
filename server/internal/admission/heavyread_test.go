package admission

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Occasional reads are admitted at once. An account that reads continuously gets a quarter of the
// time, and others are admitted in between.
func TestHeavyReadLimiter_FrequentAccountIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns HeavyReadLimiter
		take := func(account string, took time.Duration) (waited time.Duration) {
			t.Helper()
			came := time.Now()
			done, retryAfter := turns.Acquire(t.Context(), account)
			if done == nil {
				t.Fatalf("%s gets no permit, and should retry after %s", account, retryAfter)
			}
			waited = time.Since(came)
			time.Sleep(took)
			done()
			return waited
		}
		refused := func(account string, want time.Duration) {
			t.Helper()
			if done, retryAfter := turns.Acquire(t.Context(), account); done != nil || retryAfter != want {
				t.Fatalf("it was not paused; retry after %s", retryAfter)
			}
			time.Sleep(want)
		}
		for range 10 { // one report after another
			if waited := take("acme", time.Second); waited != 0 {
				t.Fatalf("it waited for %s", waited)
			}
		}
		began, turned := time.Now(), time.Duration(0)
		for time.Since(began) < time.Hour { // and continues
			done, retryAfter := turns.Acquire(t.Context(), "acme")
			if done == nil {
				time.Sleep(retryAfter)
				continue
			}
			time.Sleep(time.Second)
			turned += time.Second
			done()
			if waited := take("other", 0); waited != 0 {
				t.Fatalf("another waited for %s", waited)
			}
		}
		if turned < 15*time.Minute || turned > 15*time.Minute+10*time.Second {
			t.Errorf("it had %s of an hour", turned)
		}
		time.Sleep(time.Hour)
		take("acme", 20*time.Second)
		refused("acme", 28*time.Second) // it waited for two
		take("acme", time.Hour)
		refused("acme", heavyReadMaxPause-heavyReadWait)
		take("acme", 0)
		time.Sleep(heavyReadMaxDebt)
		take("acme", 0)
		if len(turns.busy)+len(turns.queue) != 0 || len(turns.debts) > 1 {
			t.Errorf("an account is remembered: %+v", &turns)
		}
	})
}

// Waiters are served in order, and their number per account is limited; a cancelled one leaves no
// entry.
func TestHeavyReadLimiter_IsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns HeavyReadLimiter
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
		time.Sleep(heavyReadWait)
		if got := <-served; got != "f is rejected" {
			t.Errorf("%s", got)
		}
		last()
	})
}
