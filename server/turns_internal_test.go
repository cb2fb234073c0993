package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Who asks for the same again and again has the processor for a quarter of the time, and others are let in between.
func TestTurns_WhoTookLongRestsForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		take := func(account string) func() {
			t.Helper()
			done, again := turns.take(t.Context(), account)
			if done == nil {
				t.Fatalf("%s has no turn, and should come again after %s", account, again)
			}
			return done
		}
		for range 100 { // what is short costs nobody anything
			take("acme")()
		}
		done := take("acme")
		time.Sleep(10 * time.Second)
		done()
		if done, again := turns.take(t.Context(), "acme"); done != nil || again != 28*time.Second { // it waited for two
			t.Fatalf("it did not rest; again after %s", again)
		}
		take("other")()
		time.Sleep(28*time.Second - time.Millisecond)
		began := time.Now()
		take("acme")() // whoever is patient is let in when the rest is over
		if waited := time.Since(began); waited != time.Millisecond {
			t.Errorf("it waited for %s", waited)
		}
		done = take("acme")
		time.Sleep(time.Hour)
		done()
		time.Sleep(longestRest)
		take("acme")()
		if len(turns.busy)+len(turns.rests)+len(turns.queue) != 0 {
			t.Errorf("somebody is remembered: %+v", &turns)
		}
	})
}

// They come in turn, and so many of an account; who goes away leaves no place behind.
func TestTurns_FirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		first, _ := turns.take(t.Context(), "acme")
		served := make(chan string, 10)
		wait := func(name string, ctx context.Context) {
			go func() {
				done, _ := turns.take(ctx, "acme")
				if done == nil {
					served <- name + " is refused"
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
		if got := <-served; got != "e is refused" {
			t.Errorf("%s", got)
		}
		leave()
		if got := <-served; got != "b is refused" {
			t.Errorf("%s", got)
		}
		first()
		if got := fmt.Sprint(<-served, <-served, <-served); got != "acd" {
			t.Errorf("served: %s", got)
		}
		last, _ := turns.take(t.Context(), "acme")
		wait("f", t.Context())
		time.Sleep(turnPatience)
		if got := <-served; got != "f is refused" {
			t.Errorf("%s", got)
		}
		last()
	})
}
