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

// idleConnLimiter has the connections on which nothing is asked: of strangers who connected and say nothing, or too little for a request, and of callers between two
// requests. Both have their own benches, so that strangers push no caller out, however many come. Those that are served are not in it: other limits are for them.
type idleConnLimiter struct {
	onEvict func(known bool) // claimsFor was let go to make room

	mu               sync.Mutex
	anonymous, known idleQueue
}

// idleQueue has connections in the order in which they became silent. When it is full the one that is silent the longest goes; and when it is half full, if it is silent for
// long enough, so that there is room for many who come at once and are about to ask.
type idleQueue struct {
	limit int
	conns list.List // of *guest
}

// idleGrace is for how long somebody may be silent and still be about to ask.
const idleGrace = time.Second

// trackedConn is a connection.
type trackedConn struct {
	net.Conn
	limiter *idleConnLimiter

	// What follows is guarded by the mutex of the lobby.
	known     bool          // something was asked on it by a caller whom we know
	element   *list.Element // on its bench; nil: is served, or gone
	idleSince time.Time     // when it became silent
	closed    bool
}

// Guard makes a listener keep only so many connections on which nobody says anything: of strangers [Limits.IdleConns], and not more than a quarter of the files that the process
// may open; of callers twice as many. Without it, whoever connects and waits takes all the memory and files that there are. It is for a listener of plain connections, which h
// serves as it is returned, by Serve or by ServeTLS, with s as its handler. ConnContext and ConnState of h are set before, and not after.
func (s *Server) LimitIdleConns(h *http.Server, l net.Listener) net.Listener {
	before, state := h.ConnContext, h.ConnState
	h.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, conn)
		}
		return context.WithValue(ctx, trackedConnKey{}, trackedConnOf(conn))
	}
	h.ConnState = func(conn net.Conn, now http.ConnState) {
		if state != nil {
			state(conn, now)
		}
		// Not when a handler begins: over HTTP/2 it may begin, and go on, after what it is for was taken back, when the connection is silent already.
		switch g := trackedConnOf(conn); {
		case g == nil:
		case now == http.StateActive: // something is asked
			g.markActive()
		case now == http.StateIdle: // and every answer is written
			g.limiter.markIdle(g)
		}
	}
	return idleLimitListener{l, &s.idleConns}
}

// trackedConnOf is nil for a connection that did not come through the lobby.
func trackedConnOf(conn net.Conn) *trackedConn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	g, _ := conn.(*trackedConn)
	return g
}

type trackedConnKey struct{}

// trackedConnFrom is the connection on which something is asked; nil if it did not come through the lobby.
func trackedConnFrom(ctx context.Context) *trackedConn {
	g, _ := ctx.Value(trackedConnKey{}).(*trackedConn)
	return g
}

// open makes room: some files are for what is asked on the other connections, and for the store.
func (l *idleConnLimiter) configure(silent int, dismissed func(known bool)) {
	silent = max(1, silent)
	if files, known := maxOpenFiles(); known {
		silent = int(min(uint64(silent), max(1, files/4)))
	}
	l.anonymous.limit, l.known.limit, l.onEvict = silent, 2*silent, dismissed
}

// dismissed counts who was let go to make room, and tells of it.
func (s *Server) connEvicted(known bool) {
	who := "strangers"
	if known {
		who = "callers"
	}
	s.metrics.evictions.WithLabelValues(who).Inc()
	if left, ok := s.evictionLog.Allow(); ok {
		s.config.Log.Warn("a connection on which nothing is asked was closed, to make room for others: there are too many", "of", who, "leftOut", left)
	}
}

// idleLimitListener is a listener whose connections begin in the lobby.
type idleLimitListener struct {
	net.Listener
	limiter *idleConnLimiter
}

// Accept waits for somebody to connect.
func (g idleLimitListener) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	guest := &trackedConn{Conn: conn, limiter: g.limiter}
	g.limiter.markIdle(guest)
	return guest, nil
}

// sit gives a silent connection its place, and lets another one go if there is none.
func (l *idleConnLimiter) markIdle(g *trackedConn) {
	l.mu.Lock()
	if g.element != nil || g.closed {
		l.mu.Unlock()
		return
	}
	b := l.queueOf(g)
	g.idleSince = time.Now()
	g.element = b.conns.PushBack(g)
	over, known := b.evict(g.idleSince), g.known // as all on this bench
	l.mu.Unlock()
	if over != nil { // closeHook may take a moment, and nobody else is to wait for it
		_ = over.Conn.Close()
		l.onEvict(known)
	}
}

func (l *idleConnLimiter) queueOf(g *trackedConn) *idleQueue {
	if g.known {
		return &l.known
	}
	return &l.anonymous
}

// over takes away who is one too many; nil if nobody is.
func (b *idleQueue) evict(now time.Time) *trackedConn {
	g := b.conns.Front().Value.(*trackedConn)
	if n := b.conns.Len(); n <= b.limit/2 || n <= b.limit && now.Sub(g.idleSince) < idleGrace {
		return nil
	}
	b.conns.Remove(g.element)
	g.element, g.closed = nil, true
	return g
}

// size is how many there are, of strangers or of callers.
func (l *idleConnLimiter) size(known bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queueOf(&trackedConn{known: known}).conns.Len()
}

// leave is called with the mutex held.
func (g *trackedConn) remove() {
	if g.element != nil {
		g.limiter.queueOf(g).conns.Remove(g.element)
		g.element = nil
	}
}

// rise takes a guest off its bench, until everything is answered.
func (g *trackedConn) markActive() {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	g.remove()
}

// here is false for one who was let go a moment ago: nobody would hear the answer, so that nothing is to be done.
func (g *trackedConn) alive() bool {
	if g == nil {
		return true
	}
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	return !g.closed
}

// meet remembers that it is a caller whom we know. Who sits there has taken back what they asked: them we know the next time.
func (g *trackedConn) markKnown() {
	if g == nil {
		return
	}
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	g.known = g.known || g.element == nil
}

// Close closes the connection.
func (g *trackedConn) Close() error {
	g.limiter.mu.Lock()
	g.closed = true
	g.remove()
	g.limiter.mu.Unlock()
	return g.Conn.Close()
}

// CloseWrite says that nothing more is coming, as net/http does before it closes: whoever is still sending would lose the answer otherwise.
func (g *trackedConn) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
