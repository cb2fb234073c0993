package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// rawHTTPClient is a cheap client of one server, because it shares the same cores. A request is one
// write and one read in the caller's goroutine, on a kept connection; net/http's client has two
// more goroutines per connection, and two handovers.
type rawHTTPClient struct {
	host, head string

	mu   sync.Mutex
	idle []*rawConn // the last one used comes first: the others may time out
}

// rawConn is a connection.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

// rawTimeout is longer than any response of the server takes.
const rawTimeout = 2 * time.Minute

// newRawHTTPClient returns a client that posts JSON to one path.
func newRawHTTPClient(at, path, key string) (*rawHTTPClient, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: ", path, u.Host, key)
	return &rawHTTPClient{host: u.Host, head: head}, nil
}

// post sends a body and returns the response.
func (w *rawHTTPClient) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	l, err := w.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	keep := false
	defer func() {
		if keep {
			w.give(l)
		} else {
			l.Close()
		}
	}()
	if err := l.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		return 0, nil, err
	}
	text := make([]byte, 0, len(w.head)+len(body)+16)
	text = fmt.Appendf(append(text, w.head...), "%d\r\n\r\n", len(body))
	if _, err := l.Write(append(text, body...)); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(response.Body)
	keep = err == nil && !response.Close
	return response.StatusCode, answer, err
}

func (w *rawHTTPClient) take(ctx context.Context) (*rawConn, error) {
	if l := w.last(); l != nil {
		return l, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.host)
	if err != nil {
		return nil, err
	}
	return &rawConn{Conn: conn, in: bufio.NewReaderSize(conn, 4*kib)}, nil
}

// last returns the most recently used idle connection; nil if there is none.
func (w *rawHTTPClient) last() *rawConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.idle) - 1
	if n < 0 {
		return nil
	}
	l := w.idle[n]
	w.idle = w.idle[:n]
	return l
}

func (w *rawHTTPClient) give(l *rawConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, l)
}

// closeIdle closes idle connections.
func (w *rawHTTPClient) closeIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.idle {
		l.Close()
	}
	w.idle = nil
}
