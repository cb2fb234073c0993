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

// proxy injects network faults between a replica and its database.
//
// Toxiproxy would work too. As a library it adds sixteen modules, including Prometheus and
// protobuf, to the go.mod of every user of Fermata; as a program it must be installed. This is the
// part that is needed.
type proxy struct {
	listener net.Listener
	upstream string
	serving  sync.WaitGroup

	mu      sync.Mutex
	weather networkFaults
	changed chan struct{} // closed when the faults change
	conns   map[*net.TCPConn]bool
	closed  bool
}

// networkFaults are the faults of a connection. The zero value has none.
type networkFaults struct {
	latency time.Duration // of each chunk
	slice   int           // the chunk size; 0 means unchanged
	hole    bool          // nothing passes, without an error
	refuse  bool          // new connections are refused
}

// throughProxy returns a proxy and the connection string that uses it.
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

// throughProxies returns several proxies to the same database.
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

// set changes the faults.
func (p *proxy) set(w networkFaults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// reset resets all connections, like a restarted router.
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

// connect connects a client to the database.
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

// pass waits until some of the bytes may pass, and returns how many.
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

// keep registers a connection; false if the proxy is closed.
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
