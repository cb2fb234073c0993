package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a Store and its server and does what networks do.
type proxy struct {
	listener net.Listener
	server   string // address
	serving  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	cutAt   byte          // resets the connection instead of forwarding the server's next message of this type; once
	silence chan struct{} // while it is open, nothing is forwarded
}

// through returns a proxy and the connection string that leads through it.
func through(t *testing.T, connString string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(connString)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: u.Host, conns: map[net.Conn]bool{}}
	p.serving.Go(p.serve)
	t.Cleanup(func() {
		listener.Close()
		p.speak()
		p.reset()
		p.serving.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.keep(client, server)
		p.serving.Go(func() {
			defer p.drop(client, server)
			p.forwardRequests(server, client)
		})
		p.serving.Go(func() {
			defer p.drop(client, server)
			p.forwardAnswers(client, server)
		})
	}
}

func (p *proxy) forwardRequests(server io.Writer, client io.Reader) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		p.hearSilence()
		if _, writeErr := server.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// forwardAnswers goes message by message: a type, and a length that counts itself.
func (p *proxy) forwardAnswers(client, server net.Conn) {
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(server, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		p.hearSilence()
		if p.isCut(header[0]) {
			client.(*net.TCPConn).SetLinger(0) // a reset, not an orderly end
			return
		}
		if _, err := client.Write(append(header, body...)); err != nil {
			return
		}
	}
}

func (p *proxy) isCut(message byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutAt != message {
		return false
	}
	p.cutAt = 0
	return true
}

// cut resets a connection when the server sends a message of this type on it.
func (p *proxy) cut(message byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt = message
}

// hush lets nothing through any more, and tells nobody.
func (p *proxy) hush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence = make(chan struct{})
}

// speak ends a hush.
func (p *proxy) speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silence != nil {
		close(p.silence)
		p.silence = nil
	}
}

func (p *proxy) hearSilence() {
	p.mu.Lock()
	silence := p.silence
	p.mu.Unlock()
	if silence != nil {
		<-silence
	}
}

// reset resets all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(p.conns, conn)
	}
}
