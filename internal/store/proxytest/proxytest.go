// Package proxytest simulates network failures between a store and its server.
package proxytest

import (
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a server.
type Proxy struct {
	listener net.Listener
	server   string // address
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	frozen chan struct{} // while it is not closed, nothing is forwarded
}

// ForwardFunc forwards data from one side to the other until one side closes or it stops by itself.
// It calls WaitUnfrozen before it writes.
type ForwardFunc func(p *Proxy, to, from net.Conn)

// Start returns a proxy, which ends with the test, and its address.
func Start(t testing.TB, server string, requests, answers ForwardFunc) (*Proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server, conns: make(map[net.Conn]bool)}
	p.serving.Go(func() { p.serve(requests, answers) })
	t.Cleanup(func() {
		p.Refuse()
		p.Unfreeze()
		p.Reset()
		p.serving.Wait()
	})
	return p, listener.Addr().String()
}

func (p *Proxy) serve(requests, answers ForwardFunc) {
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
		p.track(client, server)
		p.serving.Go(func() {
			defer p.untrack(client, server)
			requests(p, server, client)
		})
		p.serving.Go(func() {
			defer p.untrack(client, server)
			answers(p, client, server)
		})
	}
}

// Refuse stops accepting connections.
func (p *Proxy) Refuse() { p.listener.Close() }

// Freeze stops forwarding without closing connections.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

// Unfreeze continues forwarding.
func (p *Proxy) Unfreeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// WaitUnfrozen waits until the proxy is not frozen.
func (p *Proxy) WaitUnfrozen() {
	p.mu.Lock()
	silence := p.frozen
	p.mu.Unlock()
	if silence != nil {
		<-silence
	}
}

// Reset resets all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
}

func (p *Proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(p.conns, conn)
	}
}
