package client

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A firewall forgets a connection and drops all packets silently. All calls used to wait until
// their contexts ended.
func TestClient_DeadHTTP2ConnectionIsClosed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"stateKey":"k"}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	between := newFirewall(t, server.Listener.Addr().String())
	c, err := New("https://"+between.listener.Addr().String(), "token")
	if err != nil {
		t.Fatal(err)
	}
	transport := c.http.Transport.(*http.Transport)
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	if transport.HTTP2.SendPingTimeout != pingTimeout || transport.HTTP2.PingTimeout != pingTimeout {
		t.Errorf("it is pinged after %+v", transport.HTTP2)
	}
	transport.HTTP2.SendPingTimeout, transport.HTTP2.PingTimeout = 500*time.Millisecond, 500*time.Millisecond
	if _, err := c.Run(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	between.forget()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Run(ctx, "k"); err != nil {
		t.Errorf("the server is reachable on another connection: %v", err)
	}
}

// firewall forwards connections that it has seen begin, until it forgets them.
type firewall struct {
	listener net.Listener
	mu       sync.Mutex
	known    []*pipe
}

// pipe is a connection through it. A dead one accepts data and forwards nothing.
type pipe struct {
	mu   sync.Mutex
	dead bool
}

func newFirewall(t *testing.T, to string) *firewall {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &firewall{listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			p := new(pipe)
			f.mu.Lock()
			f.known = append(f.known, p)
			f.mu.Unlock()
			go p.pass(near, far)
			go p.pass(far, near)
		}
	}()
	return f
}

func (f *firewall) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.known {
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
	}
}

func (p *pipe) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		dead := p.dead
		p.mu.Unlock()
		if dead {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
