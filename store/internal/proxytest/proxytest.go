// Package proxytest stands between a store and its server and does what networks do, when a test says so.
package proxytest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is such a network.
type Proxy struct {
	listener net.Listener
	server   string // address
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	frozen chan struct{} // while it is open, nothing is forwarded
}

// ForwardFunc forwards what comes from one side to the other, until one of them ends or it has had enough. It calls HearSilence before it writes.
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

// Refuse takes no connection any more.
func (p *Proxy) Refuse() { p.listener.Close() }

// Hush lets nothing through any more, and tells nobody.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

// Speak ends a hush.
func (p *Proxy) Unfreeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// HearSilence waits for the end of a hush.
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
