package hint

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestBoard_TellsEverybody(t *testing.T) {
	var board Board[string]
	first, second := board.Watch(t.Context()), board.Watch(t.Context())
	board.Tell("a", "b")
	for _, watcher := range []<-chan string{first, second} {
		if a, b := <-watcher, <-watcher; a != "a" || b != "b" {
			t.Errorf("told %q, %q", a, b)
		}
	}
}

// Somebody who does not listen holds nobody up, and learns that there was more.
func TestBoard_AWatcherWhoIsBehindLearnsThatThereWasMore(t *testing.T) {
	var board Board[string]
	slow := board.Watch(t.Context())
	for range 3 * backlog {
		board.Tell("a")
	}
	last := ""
	for n := range backlog {
		if last = <-slow; last != "a" && n != backlog-1 {
			t.Errorf("hint %d is %q", n, last)
		}
	}
	if last != "" || len(slow) > 0 {
		t.Errorf("the last hint is %q, with %d behind it", last, len(slow))
	}
	board.Tell("b")
	if hint := <-slow; hint != "b" {
		t.Errorf("told %q", hint)
	}
}

func TestBoard_AWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var board Board[string]
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, closed := board.Watch(ctx), board.Watch(t.Context())
		cancel()
		synctest.Wait()
		board.Tell("a")
		if hint, open := <-cancelled; open {
			t.Errorf("a watch that was cancelled is told %q", hint)
		}
		board.Close()
		if hint := <-closed; hint != "a" {
			t.Errorf("what was told before is %q", hint)
		}
		for _, watcher := range []<-chan string{closed, board.Watch(t.Context())} {
			if hint, open := <-watcher; open {
				t.Errorf("a board that was closed tells %q", hint)
			}
		}
	})
}
