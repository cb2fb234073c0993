package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// lobby has the connections on which nothing is asked: of strangers who connected and say nothing, or too little for a request, and of callers between two
// requests. Both have their own benches, so that strangers push no caller out, however many come. Those that are served are not in it: other limits are for them.
type lobby struct {
	dismissed func(known bool) // somebody was let go to make room

	mu               sync.Mutex
	strangers, known bench
}

// bench has connections in the order in which they became silent. When it is full the one that is silent the longest goes; and when it is half full, if it is silent for
// long enough, so that there is room for many who come at once and are about to ask.
type bench struct {
	most   int
	guests list.List // of *guest
}

// aboutToAsk is for how long somebody may be silent and still be about to ask.
const aboutToAsk = time.Second

// guest is a connection.
type guest struct {
	net.Conn
	in *lobby

	// What follows is guarded by the mutex of the lobby.
	known bool          // something was asked on it by a caller whom we know
	place *list.Element // on its bench; nil: is served, or gone
	since time.Time     // when it became silent
	gone  bool
}

// Guard makes a listener keep only so many connections on which nobody says anything: of strangers [Limits.Silent], and not more than a quarter of the files that the process
// may open; of callers twice as many. Without it, whoever connects and waits takes all the memory and files that there are. It is for a listener of plain connections, which h
// serves as it is returned, by Serve or by ServeTLS, with s as its handler. ConnContext and ConnState of h are set before, and not after.
func (s *Server) Guard(h *http.Server, l net.Listener) net.Listener {
	before, state := h.ConnContext, h.ConnState
	h.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, conn)
		}
		return context.WithValue(ctx, guestKey{}, guestOf(conn))
	}
	h.ConnState = func(conn net.Conn, now http.ConnState) {
		if state != nil {
			state(conn, now)
		}
		// Not when a handler begins: over HTTP/2 it may begin, and go on, after what it is for was taken back, when the connection is silent already.
		switch g := guestOf(conn); {
		case g == nil:
		case now == http.StateActive: // something is asked
			g.rise()
		case now == http.StateIdle: // and every answer is written
			g.in.sit(g)
		}
	}
	return guarded{l, &s.lobby}
}

// guestOf is nil for a connection that did not come through the lobby.
func guestOf(conn net.Conn) *guest {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	g, _ := conn.(*guest)
	return g
}

type guestKey struct{}

// guestIn is the connection on which something is asked; nil if it did not come through the lobby.
func guestIn(ctx context.Context) *guest {
	g, _ := ctx.Value(guestKey{}).(*guest)
	return g
}

// open makes room: some files are for what is asked on the other connections, and for the store.
func (l *lobby) open(silent int, dismissed func(known bool)) {
	silent = max(1, silent)
	if files, known := mostFiles(); known {
		silent = int(min(uint64(silent), max(1, files/4)))
	}
	l.strangers.most, l.known.most, l.dismissed = silent, 2*silent, dismissed
}

// dismissed counts who was let go to make room, and tells of it.
func (s *Server) dismissed(known bool) {
	who := "strangers"
	if known {
		who = "callers"
	}
	s.metrics.dismiss.WithLabelValues(who).Inc()
	if left, ok := s.silent.Next(); ok {
		s.config.Log.Warn("a connection on which nothing is asked was closed, to make room for others: there are too many", "of", who, "leftOut", left)
	}
}

// guarded is a listener whose connections begin in the lobby.
type guarded struct {
	net.Listener
	lobby *lobby
}

// Accept waits for somebody to connect.
func (g guarded) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	guest := &guest{Conn: conn, in: g.lobby}
	g.lobby.sit(guest)
	return guest, nil
}

// sit gives a silent connection its place, and lets another one go if there is none.
func (l *lobby) sit(g *guest) {
	l.mu.Lock()
	if g.place != nil || g.gone {
		l.mu.Unlock()
		return
	}
	b := l.benchOf(g)
	g.since = time.Now()
	g.place = b.guests.PushBack(g)
	over, known := b.over(g.since), g.known // as all on this bench
	l.mu.Unlock()
	if over != nil { // closing may take a moment, and nobody else is to wait for it
		_ = over.Conn.Close()
		l.dismissed(known)
	}
}

func (l *lobby) benchOf(g *guest) *bench {
	if g.known {
		return &l.known
	}
	return &l.strangers
}

// over takes away who is one too many; nil if nobody is.
func (b *bench) over(now time.Time) *guest {
	g := b.guests.Front().Value.(*guest)
	if n := b.guests.Len(); n <= b.most/2 || n <= b.most && now.Sub(g.since) < aboutToAsk {
		return nil
	}
	b.guests.Remove(g.place)
	g.place, g.gone = nil, true
	return g
}

// size is how many there are, of strangers or of callers.
func (l *lobby) size(known bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.benchOf(&guest{known: known}).guests.Len()
}

// leave is called with the mutex held.
func (g *guest) leave() {
	if g.place != nil {
		g.in.benchOf(g).guests.Remove(g.place)
		g.place = nil
	}
}

// rise takes a guest off its bench, until everything is answered.
func (g *guest) rise() {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.leave()
}

// here is false for one who was let go a moment ago: nobody would hear the answer, so that nothing is to be done.
func (g *guest) here() bool {
	if g == nil {
		return true
	}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	return !g.gone
}

// meet remembers that it is a caller whom we know. Who sits there has taken back what they asked: them we know the next time.
func (g *guest) meet() {
	if g == nil {
		return
	}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.known = g.known || g.place == nil
}

// Close closes the connection.
func (g *guest) Close() error {
	g.in.mu.Lock()
	g.gone = true
	g.leave()
	g.in.mu.Unlock()
	return g.Conn.Close()
}

// CloseWrite says that nothing more is coming, as net/http does before it closes: whoever is still sending would lose the answer otherwise.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
