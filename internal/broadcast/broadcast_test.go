package broadcast

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestHub_PublishesToEverySubscriber(t *testing.T) {
	var board Hub[string]
	first, second := board.Subscribe(t.Context()), board.Subscribe(t.Context())
	board.Publish("a", "b")
	for _, watcher := range []<-chan string{first, second} {
		if a, b := <-watcher, <-watcher; a != "a" || b != "b" {
			t.Errorf("got %q, %q", a, b)
		}
	}
}

// A subscriber that does not read blocks no other and gets a zero value.
func TestHub_SlowSubscriberGetsAZeroValue(t *testing.T) {
	var board Hub[string]
	slow := board.Subscribe(t.Context())
	for range 3 * backlog {
		board.Publish("a")
	}
	last := ""
	for n := range backlog {
		if last = <-slow; last != "a" && n != backlog-1 {
			t.Errorf("value %d is %q", n, last)
		}
	}
	if last != "" || len(slow) > 0 {
		t.Errorf("the last value is %q, followed by %d", last, len(slow))
	}
	board.Publish("b")
	if hint := <-slow; hint != "b" {
		t.Errorf("told %q", hint)
	}
}

func TestHub_SubscriptionEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var board Hub[string]
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, closed := board.Subscribe(ctx), board.Subscribe(t.Context())
		cancel()
		synctest.Wait()
		board.Publish("a")
		if hint, open := <-cancelled; open {
			t.Errorf("a cancelled subscription got %q", hint)
		}
		board.Close()
		if hint := <-closed; hint != "a" {
			t.Errorf("the earlier value is %q", hint)
		}
		for _, watcher := range []<-chan string{closed, board.Subscribe(t.Context())} {
			if hint, open := <-watcher; open {
				t.Errorf("a closed hub sent %q", hint)
			}
		}
	})
}
