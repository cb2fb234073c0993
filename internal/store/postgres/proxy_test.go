package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/store/proxytest"
)

// proxy is a network that understands PostgreSQL messages.
type proxy struct {
	*proxytest.Proxy
	// resets the connection instead of forwarding the server's next message of this type; once
	cutAt atomic.Int32
}

// newProxy returns a proxy and the connection string that leads through it.
func newProxy(t *testing.T, connString string) (*proxy, string) {
	t.Helper()
	return newPooler(t, connString, forwardRequests)
}

// newPooler returns a proxy that changes requests.
func newPooler(t *testing.T, connString string, requests proxytest.ForwardFunc) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(connString)
	if err != nil {
		t.Fatal(err)
	}
	p := new(proxy)
	p.Proxy, u.Host = proxytest.Start(t, u.Host, requests, p.forwardAnswers)
	return p, u.String()
}

func forwardRequests(p *proxytest.Proxy, server, client net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		p.WaitUnfrozen()
		if _, writeErr := server.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// ignoring returns the behaviour of a pooler that ignores some startup parameters. The startup
// message has a length that counts itself, a version, and zero-terminated names and values,
// followed by a zero byte.
func ignoring(names ...string) proxytest.ForwardFunc {
	return func(p *proxytest.Proxy, server, client net.Conn) {
		header := make([]byte, 8)
		if _, err := io.ReadFull(client, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header)-8)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		kept := header
		words := strings.Split(string(body), "\x00")
		for n := 0; n+1 < len(words) && words[n] != ""; n += 2 {
			if !slices.Contains(names, words[n]) {
				kept = append(kept, words[n]+"\x00"+words[n+1]+"\x00"...)
			}
		}
		kept = append(kept, 0)
		binary.BigEndian.PutUint32(kept, uint32(len(kept)))
		if _, err := server.Write(kept); err != nil {
			return
		}
		forwardRequests(p, server, client)
	}
}

// forwardAnswers forwards message by message: a type, and a length that counts itself.
func (p *proxy) forwardAnswers(network *proxytest.Proxy, client, server net.Conn) {
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(server, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		network.WaitUnfrozen()
		if p.cutAt.CompareAndSwap(int32(header[0]), 0) {
			client.(*net.TCPConn).SetLinger(0) // a reset, not an orderly close
			return
		}
		if _, err := client.Write(append(header, body...)); err != nil {
			return
		}
	}
}

// cut resets a connection when the server sends a message of this type on it.
func (p *proxy) cut(message byte) { p.cutAt.Store(int32(message)) }
