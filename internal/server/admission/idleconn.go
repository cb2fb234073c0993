package admission

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// IdleConnLimiter tracks idle connections: anonymous ones that have not sent a full request, and
// keep-alive connections of known clients between two requests. Each class has its own queue, so
// anonymous connections cannot evict those of known clients. Connections with an active request are
// not tracked here; other limits apply to them.
type IdleConnLimiter struct {
	onEvict func(known bool) // called after a connection was evicted

	mu               sync.Mutex
	anonymous, known idleQueue
}

// idleQueue holds connections in the order in which they became idle. A full queue evicts the
// connection that has been idle longest. A half-full queue evicts it only if it has been idle for
// longer than idleGrace, so that there is space for a burst of new connections.
type idleQueue struct {
	limit int
	conns list.List // of *trackedConn
}

// idleGrace is how long a new connection may be idle before a half-full queue evicts it.
const idleGrace = time.Second

// trackedConn is a connection with its idle state.
type trackedConn struct {
	net.Conn
	limiter *IdleConnLimiter

	// The fields below are guarded by the limiter's mutex.
	known     bool          // an authenticated request arrived on it
	element   *list.Element // in its queue; nil: active or closed
	idleSince time.Time     // when it became idle
	closed    bool
}

// Listener returns a listener that bounds idle connections. Use it with a listener of plain
// connections that h serves with Serve or ServeTLS. Set ConnContext and ConnState of h before the
// call, not after.
func (l *IdleConnLimiter) Listener(h *http.Server, inner net.Listener) net.Listener {
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
		// The handler start is too late: over HTTP/2 a handler may start and continue after its
		// request was cancelled, when the connection is already idle.
		switch g := trackedConnOf(conn); {
		case g == nil:
		case now == http.StateActive: // a request has started
			g.markActive()
		case now == http.StateIdle: // all responses are written
			g.limiter.markIdle(g)
		}
	}
	return idleLimitListener{inner, l}
}

// trackedConnOf returns nil for a connection that the limiter did not accept.
func trackedConnOf(conn net.Conn) *trackedConn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	g, _ := conn.(*trackedConn)
	return g
}

type trackedConnKey struct{}

// TrackedConnFrom returns the connection of a request; nil if the limiter did not accept it.
func TrackedConnFrom(ctx context.Context) *trackedConn {
	g, _ := ctx.Value(trackedConnKey{}).(*trackedConn)
	return g
}

// Configure sets the queue sizes. Some file descriptors are reserved for active connections and for
// the store.
func (l *IdleConnLimiter) Configure(maxAnonymous int, notify func(known bool)) {
	maxAnonymous = max(1, maxAnonymous)
	if files, known := maxOpenFiles(); known {
		maxAnonymous = int(min(uint64(maxAnonymous), max(1, files/4)))
	}
	l.anonymous.limit, l.known.limit, l.onEvict = maxAnonymous, 2*maxAnonymous, notify
}

// idleLimitListener is a listener whose connections start in the limiter.
type idleLimitListener struct {
	net.Listener
	limiter *IdleConnLimiter
}

// Accept waits for the next connection.
func (g idleLimitListener) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &trackedConn{Conn: conn, limiter: g.limiter}
	g.limiter.markIdle(tracked)
	return tracked, nil
}

// markIdle queues an idle connection, and evicts another one if the queue is full.
func (l *IdleConnLimiter) markIdle(g *trackedConn) {
	l.mu.Lock()
	if g.element != nil || g.closed {
		l.mu.Unlock()
		return
	}
	b := l.queueOf(g)
	g.idleSince = time.Now()
	g.element = b.conns.PushBack(g)
	evicted, known := b.evict(g.idleSince), g.known // as all in this queue
	l.mu.Unlock()
	if evicted != nil { // closing may block; do it outside the lock
		_ = evicted.Conn.Close()
		l.onEvict(known)
	}
}

func (l *IdleConnLimiter) queueOf(g *trackedConn) *idleQueue {
	if g.known {
		return &l.known
	}
	return &l.anonymous
}

// evict removes and returns the connection to close; nil if there is none.
func (b *idleQueue) evict(now time.Time) *trackedConn {
	g := b.conns.Front().Value.(*trackedConn)
	if n := b.conns.Len(); n <= b.limit/2 || n <= b.limit && now.Sub(g.idleSince) < idleGrace {
		return nil
	}
	b.conns.Remove(g.element)
	g.element, g.closed = nil, true
	return g
}

// Size returns the number of idle connections of a class.
func (l *IdleConnLimiter) Size(known bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queueOf(&trackedConn{known: known}).conns.Len()
}

// remove takes the connection out of its queue. The mutex must be held.
func (g *trackedConn) remove() {
	if g.element != nil {
		g.limiter.queueOf(g).conns.Remove(g.element)
		g.element = nil
	}
}

// markActive takes a connection out of its queue until all responses are written.
func (g *trackedConn) markActive() {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	g.remove()
}

// Alive reports whether the connection is still open. A request on an evicted connection is not
// executed, because the client could not read the response.
func (g *trackedConn) Alive() bool {
	if g == nil {
		return true
	}
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	return !g.closed
}

// MarkKnown marks the connection as one of a known client. A connection that is already idle had
// its request cancelled; it is marked with its next request.
func (g *trackedConn) MarkKnown() {
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

// CloseWrite half-closes the connection, as net/http does before it closes: otherwise a client that
// is still sending would lose the response.
func (g *trackedConn) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
