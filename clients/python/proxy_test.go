package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy is an intermediary in front of a server. It records the calls, and a test in Python tells
// it what to do with the next ones: see [proxy.control].
type proxy struct {
	URL string

	mu     sync.Mutex
	faults []fault
	seen   []seen
	all    []seen // never cleared
}

// fault is what happens to the next call with this method and a path with this end.
type fault struct {
	Method, Path, Do string
	After            int // for cut: so many messages are delivered
}

// seen is a recorded call.
type seen struct {
	Method, Path, Query, Body string
	Headers                   http.Header
}

// newProxy starts a proxy. Clients may also use it as an HTTP proxy.
func newProxy(t *testing.T, backend string) *proxy {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ModifyResponse: func(r *http.Response) error {
			f, _ := r.Request.Context().Value(faultKey{}).(fault)
			return f.damage(r)
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/control" {
			p.control(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f := p.next(seen{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone()})
		if f.Do == "down" {
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r.WithContext(withFault(r.Context(), f)))
	}))
	t.Cleanup(front.Close)
	p.URL = front.URL
	return p
}

// control sets the faults of the next calls, and returns the calls since the last time.
func (p *proxy) control(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
	if err := json.NewDecoder(r.Body).Decode(&p.faults); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(p.seen)
	p.seen = nil
}

// next records a call, and returns its fault.
func (p *proxy) next(call seen) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.all = append(p.seen, call), append(p.all, call)
	if len(p.faults) == 0 || p.faults[0].Method != call.Method || !strings.HasSuffix(call.Path, p.faults[0].Path) {
		return fault{}
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	return f
}

var errLost = errors.New("the response is lost")

// damage changes the response of a call that the server has applied.
func (f fault) damage(r *http.Response) error {
	page := func(status int, kind, text string) {
		_ = r.Body.Close()
		r.StatusCode, r.Status = status, http.StatusText(status)
		r.Header = http.Header{"Content-Type": {kind}}
		r.ContentLength, r.Body = int64(len(text)), io.NopCloser(strings.NewReader(text))
	}
	switch f.Do {
	case "lose":
		return errLost
	case "bad gateway":
		page(http.StatusBadGateway, "text/html", "<html>bad gateway</html>")
	case "page":
		page(http.StatusOK, "text/html", "<html>Sign in first</html>")
	case "empty":
		page(http.StatusOK, "", "")
	case "no json":
		page(http.StatusOK, "application/json", "{")
	case "redirect":
		page(http.StatusFound, "text/html", "")
		r.Header.Set("Location", "/login")
	case "hello": // a stream that ends before the first message
		page(http.StatusOK, "text/event-stream", ": hello\n\n")
	case "silent": // a stream without heartbeats, until the client leaves
		_ = r.Body.Close()
		body, write := io.Pipe()
		go func() {
			_, _ = write.Write([]byte(": hello\n\n"))
			<-r.Request.Context().Done()
			_ = write.Close()
		}()
		r.Body = body
	case "truncate": // half of the body
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), failing{}))
	case "cut":
		r.Body = &cutReader{from: r.Body, left: f.After}
	case "crlf":
		r.Body = &crlfReader{from: r.Body}
	}
	return nil
}

// failing fails, so that the connection breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errLost }

// cutReader breaks a stream in the middle of the message after the first so many. Steps and tokens
// do not count.
type cutReader struct {
	from io.ReadCloser
	text []byte
	left int
}

func (c *cutReader) Read(p []byte) (int, error) {
	for {
		if end := bytes.Index(c.text, []byte("\n\n")); end >= 0 {
			message := c.text[:end+2]
			counts := !bytes.HasPrefix(message, []byte(":")) && !bytes.HasPrefix(message, []byte("event: step")) && !bytes.HasPrefix(message, []byte("event: token"))
			if counts && c.left == 0 {
				return copy(p, message[:len(message)/2]), errLost
			}
			if len(p) < len(message) {
				return 0, io.ErrShortBuffer
			}
			if counts {
				c.left--
			}
			n := copy(p, message)
			c.text = c.text[n:]
			return n, nil
		}
		buffer := make([]byte, 4096)
		n, err := c.from.Read(buffer)
		c.text = append(c.text, buffer[:n]...)
		if err != nil {
			return 0, err
		}
	}
}

func (c *cutReader) Close() error { return c.from.Close() }

// crlfReader changes the line ends, and delivers single bytes.
type crlfReader struct {
	from io.ReadCloser
	feed bool
}

func (c *crlfReader) Read(p []byte) (int, error) {
	if c.feed {
		c.feed = false
		p[0] = '\n'
		return 1, nil
	}
	n, err := c.from.Read(p[:1])
	if n == 1 && p[0] == '\n' {
		p[0], c.feed = '\r', true
	}
	return n, err
}

func (c *crlfReader) Close() error { return c.from.Close() }

type faultKey struct{}

func withFault(ctx context.Context, f fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}
