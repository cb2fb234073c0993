package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

const idleSlots = 8

// idleSite is a site with few idle connections, with TLS and HTTP/2 or without.
type idleSite struct {
	*site
	address string
	client  *http.Client
	wrap    func(net.Conn) net.Conn
	release chan struct{} // ends the runs of the graph slow
}

// forEachListener runs a test with TLS, and without.
func forEachListener(t *testing.T, test func(*testing.T, *idleSite)) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			c := &idleSite{release: make(chan struct{})}
			slow := single(t, "slow", func(ctx context.Context, n int) (int, error) {
				select {
				case <-c.release:
				case <-ctx.Done():
				}
				return n, ctx.Err()
			})
			c.site = openWith(t, func(c *server.Config) { c.Limits.IdleConns = idleSlots }, nil, slow)
			h := httptest.NewUnstartedServer(c.handler)
			var contexts, states atomic.Int64 // of callbacks set before
			h.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { contexts.Add(1); return ctx }
			h.Config.ConnState = func(net.Conn, http.ConnState) { states.Add(1) }
			h.Listener = c.server.LimitIdleConns(h.Config, h.Listener)
			h.Config.ErrorLog = log.New(io.Discard, "", 0) // every anonymous connection is an error
			c.wrap = func(conn net.Conn) net.Conn { return conn }
			if secure {
				h.EnableHTTP2 = true
				h.StartTLS()
				c.wrap = func(conn net.Conn) net.Conn {
					return tls.Client(conn, &tls.Config{RootCAs: h.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
				}
			} else {
				h.Start()
			}
			t.Cleanup(h.Close)
			c.url, c.address, c.client = h.URL, h.Listener.Addr().String(), h.Client()
			test(t, c)
			if contexts.Load() == 0 || states.Load() == 0 {
				t.Error("callbacks set before are not called")
			}
		})
	}
}

// connect opens a connection, and sends something or nothing.
func (c *idleSite) connect(says string) net.Conn {
	c.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close() })
	conn = c.wrap(conn)
	if says != "" {
		_, _ = io.WriteString(conn, says) // unless it was evicted already
	}
	return conn
}

// connectMany opens many anonymous connections, and waits until the excess is evicted.
func (c *idleSite) connectMany(says string) (left []net.Conn) {
	c.Helper()
	const many = 5 * idleSlots
	var all []net.Conn
	for range many {
		all = append(all, c.connect(says))
	}
	for _, conn := range all[:many-idleSlots] {
		expectClosed(c.T, conn)
	}
	return all[many-idleSlots:]
}

// expectClosed waits until the server has closed a connection.
func expectClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("an anonymous client receives %q", text)
	}
}

func (c *idleSite) get(path string) (status int, reused bool) {
	c.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	got, err := c.client.Do(c.request("auditor@acme", "GET", path, "").WithContext(httptrace.WithClientTrace(c.Context(), trace)))
	return answerOf(c.T, got, err).status, reused
}

// noneIdle reports whether no connection is idle.
func (c *idleSite) noneIdle() bool {
	return c.metric("fermata_http_idle_known")+c.metric("fermata_http_idle_anonymous") == 0
}

const startSlow = `{"graphId":"inproc:slow","stateKey":"s","input":1}`

// Connections use memory and files, and connecting needs no authentication. So idle connections,
// and those with unfinished requests, are limited; and other clients are served.
func TestIdleConns_SilentConnectionIsEvicted(t *testing.T) {
	forEachListener(t, func(t *testing.T, c *idleSite) {
		for _, says := range []string{"", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: "} {
			left := c.connectMany(says)
			if status, _ := c.get("/healthz"); status != 200 {
				t.Errorf("another one: %d", status)
			}
			last := left[len(left)-1]
			if says == "" {
				says = "GET /healthz HTTP/1.1\r\nHost: a\r\nX: "
				fmt.Fprint(last, says)
			}
			fmt.Fprint(last, "1\r\nConnection: close\r\n\r\n")
			if text, err := io.ReadAll(last); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200") {
				t.Errorf("a late request: %q, %v", text, err)
			}
			for _, conn := range left {
				conn.Close()
			}
		}
		if !strings.Contains(c.log.String(), "idle connection evicted") || strings.Contains(c.metrics(), `fermata_http_idle_evictions_total{client="anonymous"} 0`) {
			t.Error("it is not logged")
		}
		c.until("nothing is tracked", func() bool {
			// The client may return a connection to its pool only after the response was read.
			c.client.CloseIdleConnections()
			return c.noneIdle()
		})
	})
}

// A served connection that stays open is idle, too.
func TestIdleConns_KeepAliveBetweenRequests(t *testing.T) {
	forEachListener(t, func(t *testing.T, c *idleSite) {
		for says, who := range map[string]struct {
			name string
			most int
		}{
			"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n":                                           {"anonymous", idleSlots},
			"GET /api/v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer auditor@acme\r\n\r\n": {"known", 2 * idleSlots},
		} {
			for range 2 * who.most {
				response, err := http.ReadResponse(bufio.NewReader(c.connect(says)), nil)
				if got := answerOf(t, response, err); got.status != 200 {
					t.Fatalf("%+v", got)
				}
			}
			c.until(fmt.Sprint("there are not too many ", who.name), func() bool {
				return c.metric(`fermata_http_idle_evictions_total{client="`+who.name+`"}`) >= who.most && c.metric("fermata_http_idle_"+who.name) <= who.most
			})
		}
	})
}

// metric returns the value of a metric.
func (c *idleSite) metric(name string) (value int) {
	c.Helper()
	_, rest, found := strings.Cut(c.metrics(), "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &value); err != nil || !found {
		c.Fatalf("%s: %v", name, err)
	}
	return value
}

// Requests are answered, and a stream continues, however many anonymous connections arrive.
func TestIdleConns_ActiveRequestIsNotEvicted(t *testing.T) {
	forEachListener(t, func(t *testing.T, c *idleSite) {
		answered := make(chan answer)
		go func() {
			got, err := c.client.Do(c.request("agent@acme", "POST", "/api/v1/ai/chat", startSlow))
			answered <- answerOf(c.T, got, err)
		}()
		c.until("it runs", func() bool { status, _ := c.get("/api/v1/runs/s"); return status == 200 })
		stream, err := c.client.Do(c.request("auditor@acme", "GET", "/api/v1/runs/s/events", "", "Accept", acceptStream))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		c.get("/healthz") // over HTTP/2 that is the same connection, and it is not idle after this
		c.connectMany("")
		close(c.release)
		if got := <-answered; got.status != 200 || got.field("status") != "completed" {
			t.Errorf("%+v", got)
		}
		if events := eventsIn(stream.Body, nil); len(events) == 0 || events[len(events)-1].kind != "outcome" {
			t.Errorf("%v", events)
		}
	})
}

// Anonymous connections do not evict those of known clients.
func TestIdleConns_AnonymousDoNotEvictKnownClients(t *testing.T) {
	forEachListener(t, func(t *testing.T, c *idleSite) {
		if status, _ := c.get("/api/v1/runs"); status != 200 {
			t.Fatal(status)
		}
		for range 3 {
			c.connectMany("")
			if status, reused := c.get("/api/v1/runs"); status != 200 || !reused {
				t.Fatalf("%d on the same connection: %t", status, reused)
			}
		}
	})
}

// A connection that closes during a request leaks nothing.
func TestIdleConns_ClosedConnectionsAreForgotten(t *testing.T) {
	forEachListener(t, func(t *testing.T, c *idleSite) {
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if got, err := c.client.Do(c.request("agent@acme", "POST", "/api/v1/ai/chat", startSlow).WithContext(ctx)); err == nil {
				got.Body.Close()
			}
		}()
		c.until("it runs", func() bool { status, _ := c.get("/api/v1/runs/s"); return status == 200 })
		leave()
		<-gone
		close(c.release)
		c.until("nothing is tracked", func() bool {
			// The client may return a connection to its pool only after the response was read.
			c.client.CloseIdleConnections()
			return c.noneIdle()
		})
	})
}

// Over HTTP/2 the connection stays open when a request is cancelled, and is idle from then on, even
// if the handler still runs. It used to be untracked: any number of such connections could be kept.
func TestIdleConns_CancelledRequestBecomesIdle(t *testing.T) {
	for _, where := range []string{"before it is served", "during authentication"} {
		t.Run(where, func(t *testing.T) {
			came, taken, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			hold := func(here string) {
				if here == where {
					close(came)
					<-taken
				}
			}
			s := open(t, func(c *server.Config) {
				c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
					hold("during authentication")
					return testTokens.Authenticate(r)
				})
			})
			h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				hold("before it is served")
				s.handler.ServeHTTP(w, r)
			}))
			h.EnableHTTP2 = true
			h.Listener = s.server.LimitIdleConns(h.Config, h.Listener)
			h.StartTLS()
			t.Cleanup(h.Close)
			c := &idleSite{site: s, client: h.Client()}
			s.url = h.URL
			ctx, takeBack := context.WithCancel(t.Context())
			go func() {
				if got, err := c.client.Do(s.request("auditor@acme", "GET", "/api/v1/runs", "").WithContext(ctx)); err == nil {
					got.Body.Close()
				}
			}()
			<-came
			takeBack()
			c.until("it is idle", func() bool { return !c.noneIdle() })
			close(taken)
			<-done
			if c.noneIdle() {
				t.Error("there is an idle connection that is not tracked")
			}
		})
	}
}
