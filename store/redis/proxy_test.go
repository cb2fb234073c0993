package redis

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/store/proxytest"
)

// proxy is a network that can cut a message in two.
type proxy struct {
	*proxytest.Proxy
	cutAt atomic.Pointer[[]byte] // the connection ends before the first of these bytes
}

// through returns a proxy and its address.
func through(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	p, address := new(proxy), ""
	p.Proxy, address = proxytest.Start(t, server, p.forward, p.forward)
	return p, address
}

func (p *proxy) forward(network *proxytest.Proxy, to, from net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		network.WaitUnfrozen()
		n, cut := p.cut(buffer[:n])
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil || cut {
			return
		}
	}
}

// cut returns how much of a message is forwarded, and whether the connection ends there.
func (p *proxy) cut(message []byte) (int, bool) {
	if at := p.cutAt.Load(); at != nil {
		if i := bytes.Index(message, *at); i >= 0 {
			return i, true
		}
	}
	return len(message), false
}

// cutBefore ends every connection before these bytes.
func (p *proxy) cutBefore(text string) { p.cutAt.Store(new([]byte(text))) }
