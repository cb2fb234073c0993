//go:build unix

package chaos

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// proxy stands between a replica and its database and does what networks do.
//
// Toxiproxy would do as well. As a library it brings sixteen modules of 2022 along, Prometheus and protobuf among them, into the go.mod of everybody
// who uses Fermata; as a program it is one more thing to install. This is all of it that is needed.
type proxy struct {
	listener net.Listener
	upstream string
	serving  sync.WaitGroup

	mu      sync.Mutex
	weather networkFaults
	changed chan struct{} // closed when the weather changes
	conns   map[*net.TCPConn]bool
	closed  bool
}

// networkFaults is what the network does to what passes. The zero value lets it pass.
type networkFaults struct {
	latency time.Duration // of each piece
	slice   int           // the size of the pieces; 0 is as they come
	hole    bool          // nothing passes and nobody is told
	refuse  bool          // new connections are refused
}

// unseal returns a proxy and the connection string that leads through it.
func throughProxy(t *testing.T, connString string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(connString)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, upstream: u.Host, changed: make(chan struct{}), conns: make(map[*net.TCPConn]bool)}
	p.serving.Go(p.serve)
	t.Cleanup(p.close)
	u.Host = listener.Addr().String()
	return p, u.String()
}

// throughProxies is as many ways to the same.
func throughProxies(t *testing.T, connString string, count int) (proxies []*proxy, ways []string) {
	t.Helper()
	for range count {
		p, way := throughProxy(t, connString)
		proxies, ways = append(proxies, p), append(ways, way)
	}
	return proxies, ways
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.set(networkFaults{})
	p.reset()
	p.serving.Wait()
}

// set changes the weather.
func (p *proxy) set(w networkFaults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// reset resets all connections, as a router does that has lost its memory.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.SetLinger(0)
		conn.Close()
	}
}

func (p *proxy) serve() {
	for {
		accepted, err := p.listener.Accept()
		if err != nil {
			return
		}
		client := accepted.(*net.TCPConn)
		if !p.keep(client) {
			client.SetLinger(0)
			client.Close()
			continue
		}
		p.serving.Go(func() { p.connect(client) })
	}
}

// connect joins a client with the database.
func (p *proxy) connect(client *net.TCPConn) {
	defer p.drop(client)
	dialled, err := net.DialTimeout("tcp", p.upstream, time.Second)
	if err != nil {
		return
	}
	server := dialled.(*net.TCPConn)
	if !p.keep(server) {
		server.Close()
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			defer p.drop(client)
			defer p.drop(server)
			p.forward(way[0], way[1])
		})
	}
	both.Wait()
}

func (p *proxy) forward(to io.Writer, from io.Reader) {
	buffer := make([]byte, 1<<15)
	for {
		n, err := from.Read(buffer)
		for piece := buffer[:n]; len(piece) > 0; {
			size := p.pass(len(piece))
			if _, err := to.Write(piece[:size]); err != nil {
				return
			}
			piece = piece[size:]
		}
		if err != nil {
			return
		}
	}
}

// pass waits until so many bytes, or some of them, may pass, and returns how many.
func (p *proxy) pass(size int) int {
	for {
		p.mu.Lock()
		w, changed := p.weather, p.changed
		p.mu.Unlock()
		if w.hole {
			<-changed
			continue
		}
		if w.latency > 0 {
			time.Sleep(w.latency)
		}
		if w.slice > 0 {
			size = min(size, w.slice)
		}
		return size
	}
}

// keep notes a connection; false if there is to be none.
func (p *proxy) keep(conn *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.weather.refuse {
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *proxy) drop(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn.Close()
	delete(p.conns, conn)
}
