package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// lobby has the connections on which nothing is asked: of strangers who connected and say nothing, or too little for a request, and of callers between two
// requests. So many are kept; the next takes the place of who was served or came the longest ago. Those that are served are not in it: other limits are for them.
type lobby struct {
	most   int
	left   func() // somebody was let go to make room
	mu     sync.Mutex
	guests list.List // of *guest, the longest first
}

// guest is a connection.
type guest struct {
	net.Conn
	in      *lobby
	place   *list.Element // nil: is served, or gone
	serving int           // how many requests: HTTP/2 has several at once
	gone    bool
}

// Guard makes a listener keep only so many connections on which nobody says anything, [Limits.Silent], and a quarter of the files that the process may open:
// without it strangers who connect and wait take all the memory and files that there are. It is to be served by h, which has s as its handler, whether with TLS or without.
func (s *Server) Guard(h *http.Server, l net.Listener) net.Listener {
	before := h.ConnContext
	h.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, conn)
		}
		if secured, ok := conn.(*tls.Conn); ok {
			conn = secured.NetConn()
		}
		return context.WithValue(ctx, guestKey{}, conn)
	}
	return guarded{l, &s.lobby}
}

// mostSilent is how many connections may be silent: some files are for what is asked on the others, and for the store.
func mostSilent(limit int) int {
	if files, known := mostFiles(); known {
		return max(1, int(min(uint64(limit), files/4)))
	}
	return limit
}

// dismissed counts who was let go to make room, and tells of it.
func (s *Server) dismissed() {
	s.metrics.limits.WithLabelValues("silent").Inc()
	if left, ok := s.silent.Next(); ok {
		s.config.Log.Warn("a connection on which nothing was asked is closed, to make room for others: there are too many", "limit", s.lobby.most, "leftOut", left)
	}
}

type guestKey struct{}

// greet takes whoever asks something out of the lobby, until the answer is written.
func greet(ctx context.Context) (done func()) {
	g, ok := ctx.Value(guestKey{}).(*guest)
	if !ok {
		return func() {}
	}
	g.begin()
	return g.end
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
	return g.lobby.enter(conn), nil
}

func (l *lobby) enter(conn net.Conn) *guest {
	g := &guest{Conn: conn, in: l}
	l.mu.Lock()
	g.place = l.guests.PushBack(g)
	over := l.over()
	l.mu.Unlock()
	l.dismiss(over)
	return g
}

// over takes out who is one too many; nil if nobody is.
func (l *lobby) over() *guest {
	if l.guests.Len() <= l.most {
		return nil
	}
	g := l.guests.Remove(l.guests.Front()).(*guest)
	g.place, g.gone = nil, true
	return g
}

// dismiss lets somebody go who is out of the list already. Closing may take a moment, so nobody else is held up by it.
func (l *lobby) dismiss(g *guest) {
	if g != nil {
		_ = g.Conn.Close()
		l.left()
	}
}

// size is how many there are.
func (l *lobby) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guests.Len()
}

func (g *guest) begin() {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	g.serving++
	g.leave()
}

func (g *guest) end() {
	g.in.mu.Lock()
	var over *guest
	if g.serving--; g.serving == 0 && !g.gone {
		g.place = g.in.guests.PushBack(g)
		over = g.in.over()
	}
	g.in.mu.Unlock()
	g.in.dismiss(over)
}

func (g *guest) leave() {
	if g.place != nil {
		g.in.guests.Remove(g.place)
		g.place = nil
	}
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
