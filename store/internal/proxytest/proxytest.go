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

	mu      sync.Mutex
	conns   map[net.Conn]bool
	silence chan struct{} // while it is open, nothing is forwarded
}

// Carry forwards what comes from one side to the other, until one of them ends or it has had enough. It calls HearSilence before it writes.
type Carry func(p *Proxy, to, from net.Conn)

// Start returns a proxy, which ends with the test, and its address.
func Start(t testing.TB, server string, requests, answers Carry) (*Proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server, conns: make(map[net.Conn]bool)}
	p.serving.Go(func() { p.serve(requests, answers) })
	t.Cleanup(func() {
		p.Refuse()
		p.Speak()
		p.Reset()
		p.serving.Wait()
	})
	return p, listener.Addr().String()
}

func (p *Proxy) serve(requests, answers Carry) {
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
			requests(p, server, client)
		})
		p.serving.Go(func() {
			defer p.drop(client, server)
			answers(p, client, server)
		})
	}
}

// Refuse takes no connection any more.
func (p *Proxy) Refuse() { p.listener.Close() }

// Hush lets nothing through any more, and tells nobody.
func (p *Proxy) Hush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence = make(chan struct{})
}

// Speak ends a hush.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silence != nil {
		close(p.silence)
		p.silence = nil
	}
}

// HearSilence waits for the end of a hush.
func (p *Proxy) HearSilence() {
	p.mu.Lock()
	silence := p.silence
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

func (p *Proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(p.conns, conn)
	}
}
