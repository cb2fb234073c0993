package redis

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and its server, and can fall silent or cut a message in two.
type proxy struct {
	listener net.Listener
	server   string // address
	serving  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	cutAt   []byte        // the connection ends before the first of these bytes
	silence chan struct{} // while it is open, nothing is forwarded
}

// through returns a proxy and its address.
func through(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server, conns: map[net.Conn]bool{}}
	p.serving.Go(p.serve)
	t.Cleanup(func() {
		listener.Close()
		p.speak()
		p.mu.Lock()
		for conn := range p.conns {
			conn.Close()
		}
		p.mu.Unlock()
		p.serving.Wait()
	})
	return p, listener.Addr().String()
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
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.serving.Go(func() { p.forward(client, server) })
		p.serving.Go(func() { p.forward(server, client) })
	}
}

func (p *proxy) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		p.hearSilence()
		n, cut := p.cut(buffer[:n])
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil || cut {
			return
		}
	}
}

// cut says how much of a message goes through, and whether the connection ends there.
func (p *proxy) cut(message []byte) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutAt != nil {
		if i := bytes.Index(message, p.cutAt); i >= 0 {
			return i, true
		}
	}
	return len(message), false
}

// cutBefore ends every connection on which these bytes come.
func (p *proxy) cutBefore(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt = []byte(text)
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
