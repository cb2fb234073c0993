package server

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Half of the places are for those who have just come, or were just served: they are about to ask.
func TestBench_WhoIsAboutToAskStays(t *testing.T) {
	for _, c := range []struct {
		guests int
		age    time.Duration
		goes   bool
	}{
		{4, time.Hour, false}, {5, time.Hour, true}, {5, aboutToAsk, true}, {5, aboutToAsk - 1, false}, {8, 0, false}, {9, 0, true},
	} {
		now := time.Now()
		b := bench{most: 8}
		for range c.guests {
			g := &guest{since: now.Add(-c.age)}
			g.place = b.guests.PushBack(g)
		}
		first := b.guests.Front().Value.(*guest)
		if over := b.over(now); (over != nil) != c.goes || over != nil && over != first {
			t.Errorf("%d that are silent for %v: %+v goes", c.guests, c.age, over)
		}
	}
}

// The places go by the files that there are, and there is always one.
func TestLobby_LeavesFilesForOthers(t *testing.T) {
	files, known := mostFiles()
	if !known {
		files = 4 << 40
	}
	for silent, want := range map[int]int{1 << 40: int(min(1<<40, files/4)), 3: 3, 0: 1, -5: 1} {
		var l lobby
		l.open(silent, nil)
		if l.strangers.most != want || l.known.most != 2*want {
			t.Errorf("with %d there are %d and %d places", silent, l.strangers.most, l.known.most)
		}
	}
}

// Who sits down after they have gone would sit there for ever.
func TestLobby_NobodySitsDownWhoIsGone(t *testing.T) {
	var l lobby
	l.open(8, func(bool) { t.Error("somebody is dismissed") })
	here, there := net.Pipe()
	defer there.Close()
	g := &guest{Conn: here, in: &l}
	for _, do := range []func(){
		func() { l.sit(g) }, func() { l.sit(g) }, g.meet, g.rise, g.rise, g.meet, func() { l.sit(g) }, func() { l.sit(g) }, g.meet, g.rise,
	} {
		if do(); !g.here() {
			t.Error("it is there, and is not served")
		}
		if got := fmt.Sprint(l.size(false), l.size(true)); (g.place == nil) != (got == "0 0") || l.size(false)+l.size(true) > 1 {
			t.Errorf("%s are there", got)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	l.sit(g)
	if l.size(true)+l.size(false) != 0 || g.here() {
		t.Error("it sits there, or is served")
	}
}

// closing is a connection, and what happens while it is closed.
type closing struct {
	net.Conn
	meanwhile func()
}

func (c closing) Close() error {
	c.meanwhile()
	return nil
}

// Who asks in the very moment in which they are let go is not served. (The race detector looks on.)
func TestLobby_WhoAsksWhileTheyAreLetGo(t *testing.T) {
	var l lobby
	l.open(1, func(known bool) {
		if known {
			t.Error("a stranger was known when they were let go")
		}
	})
	var asking sync.WaitGroup
	first := &guest{in: &l}
	first.Conn = closing{meanwhile: func() {
		asking.Go(func() {
			if first.rise(); first.here() {
				t.Error("nobody would hear the answer")
			}
			first.meet()
		})
	}}
	l.sit(first)
	l.sit(&guest{in: &l})
	asking.Wait()
	if l.size(false) != 1 {
		t.Errorf("%d sit there", l.size(false))
	}
}
