package admission

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Half of the queue is for connections that were just opened or served: they may send a request
// soon.
func TestIdleQueue_RecentlyIdleConnectionStays(t *testing.T) {
	for _, c := range []struct {
		guests int
		age    time.Duration
		goes   bool
	}{
		{4, time.Hour, false}, {5, time.Hour, true}, {5, idleGrace, true}, {5, idleGrace - 1, false}, {8, 0, false}, {9, 0, true},
	} {
		now := time.Now()
		b := idleQueue{limit: 8}
		for range c.guests {
			g := &trackedConn{idleSince: now.Add(-c.age)}
			g.element = b.conns.PushBack(g)
		}
		first := b.conns.Front().Value.(*trackedConn)
		if evicted := b.evict(now); (evicted != nil) != c.goes || evicted != nil && evicted != first {
			t.Errorf("%d that are idle for %v: %+v is evicted", c.guests, c.age, evicted)
		}
	}
}

// The queue sizes depend on the file limit, and are at least one.
func TestIdleConnLimiter_LeavesFileDescriptors(t *testing.T) {
	files, known := maxOpenFiles()
	if !known {
		files = 4 << 40
	}
	for maxAnonymous, want := range map[int]int{1 << 40: int(min(1<<40, files/4)), 3: 3, 0: 1, -5: 1} {
		var l IdleConnLimiter
		l.Configure(maxAnonymous, nil)
		if l.anonymous.limit != want || l.known.limit != 2*want {
			t.Errorf("with %d there are %d and %d", maxAnonymous, l.anonymous.limit, l.known.limit)
		}
	}
}

// A closed connection that is queued would never leave the queue.
func TestIdleConnLimiter_ClosedConnectionIsNotQueued(t *testing.T) {
	var l IdleConnLimiter
	l.Configure(8, func(bool) { t.Error("a connection is evicted") })
	here, there := net.Pipe()
	defer there.Close()
	g := &trackedConn{Conn: here, limiter: &l}
	for _, do := range []func(){
		func() { l.markIdle(g) }, func() { l.markIdle(g) }, g.MarkKnown, g.markActive, g.markActive, g.MarkKnown, func() { l.markIdle(g) }, func() { l.markIdle(g) }, g.MarkKnown, g.markActive,
	} {
		if do(); !g.Alive() {
			t.Error("it is open, and is not alive")
		}
		if got := fmt.Sprint(l.Size(false), l.Size(true)); (g.element == nil) != (got == "0 0") || l.Size(false)+l.Size(true) > 1 {
			t.Errorf("%s are there", got)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	l.markIdle(g)
	if l.Size(true)+l.Size(false) != 0 || g.Alive() {
		t.Error("it is queued, or alive")
	}
}

// closeHook calls a function during Close.
type closeHook struct {
	net.Conn
	onClose func()
}

func (c closeHook) Close() error {
	c.onClose()
	return nil
}

// A request that arrives during the eviction is not served. (Run with the race detector.)
func TestIdleConnLimiter_RequestDuringEviction(t *testing.T) {
	var l IdleConnLimiter
	l.Configure(1, func(known bool) {
		if known {
			t.Error("an anonymous connection was known when evicted")
		}
	})
	var asking sync.WaitGroup
	first := &trackedConn{limiter: &l}
	first.Conn = closeHook{onClose: func() {
		asking.Go(func() {
			if first.markActive(); first.Alive() {
				t.Error("the client could not read the response")
			}
			first.MarkKnown()
		})
	}}
	l.markIdle(first)
	l.markIdle(&trackedConn{limiter: &l})
	asking.Wait()
	if l.Size(false) != 1 {
		t.Errorf("%d sit there", l.Size(false))
	}
}
