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

	"github.com/fermata-go/fermata/server"
)

const seats = 8

// crowded is a site where few may be silent, with TLS and HTTP/2 or without either.
type crowded struct {
	*site
	address string
	client  *http.Client
	wrap    func(net.Conn) net.Conn
	release chan struct{} // ends the runs of the graph slow
}

// eachDoor runs a test with TLS, and without.
func eachDoor(t *testing.T, test func(*testing.T, *crowded)) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			c := &crowded{release: make(chan struct{})}
			slow := single(t, "slow", func(ctx context.Context, n int) (int, error) {
				select {
				case <-c.release:
				case <-ctx.Done():
				}
				return n, ctx.Err()
			})
			c.site = openWith(t, func(c *server.Config) { c.Limits.Silent = seats }, nil, slow)
			h := httptest.NewUnstartedServer(c.handler)
			var contexts, states atomic.Int64 // of whoever has set them before
			h.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { contexts.Add(1); return ctx }
			h.Config.ConnState = func(net.Conn, http.ConnState) { states.Add(1) }
			h.Listener = c.server.Guard(h.Config, h.Listener)
			h.Config.ErrorLog = log.New(io.Discard, "", 0) // every stranger is an error
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
				t.Error("what was set before is not called")
			}
		})
	}
}

// stranger connects, and says something or nothing.
func (c *crowded) stranger(says string) net.Conn {
	c.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close() })
	conn = c.wrap(conn)
	if says != "" {
		_, _ = io.WriteString(conn, says) // unless it was let go already
	}
	return conn
}

// crowd has many strangers come, and waits until all are let go but those whom there is room for.
func (c *crowded) crowd(says string) (left []net.Conn) {
	c.Helper()
	const many = 5 * seats
	var all []net.Conn
	for range many {
		all = append(all, c.stranger(says))
	}
	for _, conn := range all[:many-seats] {
		letGo(c.T, conn)
	}
	return all[many-seats:]
}

// letGo waits until the server has closed a connection.
func letGo(t *testing.T, conn net.Conn) {
	t.Helper()
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("a stranger hears %q", text)
	}
}

func (c *crowded) get(path string) (status int, reused bool) {
	c.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	got, err := c.client.Do(c.request("auditor@acme", "GET", path, "").WithContext(httptrace.WithClientTrace(c.Context(), trace)))
	return answerOf(c.T, got, err).status, reused
}

// empty reports whether nobody is in the lobby.
func (c *crowded) empty() bool {
	return c.metric("fermata_http_silent_callers")+c.metric("fermata_http_silent_strangers") == 0
}

const startSlow = `{"graphId":"inproc:slow","stateKey":"s","input":1}`

// Connections are memory and files, and whoever connects need not say who they are. So only so many are kept of those who say nothing, or begin a
// request and do not go on; and others are served all the time.
func TestLobby_WhoSaysNothingMakesRoom(t *testing.T) {
	eachDoor(t, func(t *testing.T, c *crowded) {
		for _, says := range []string{"", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: "} {
			left := c.crowd(says)
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
				t.Errorf("who speaks at last: %q, %v", text, err)
			}
			for _, conn := range left {
				conn.Close()
			}
		}
		if !strings.Contains(c.log.String(), "there are too many") || strings.Contains(c.metrics(), `fermata_http_dismissed_total{who="strangers"} 0`) {
			t.Error("nobody is told")
		}
		c.client.CloseIdleConnections()
		c.until("nobody is remembered", c.empty)
	})
}

// Who was served and stays is silent, too, whoever it is.
func TestLobby_BetweenTwoRequests(t *testing.T) {
	eachDoor(t, func(t *testing.T, c *crowded) {
		for says, who := range map[string]struct {
			name string
			most int
		}{
			"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n":                                           {"strangers", seats},
			"GET /api/v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer auditor@acme\r\n\r\n": {"callers", 2 * seats},
		} {
			for range 2 * who.most {
				response, err := http.ReadResponse(bufio.NewReader(c.stranger(says)), nil)
				if got := answerOf(t, response, err); got.status != 200 {
					t.Fatalf("%+v", got)
				}
			}
			c.until(fmt.Sprint("there are not too many ", who.name), func() bool {
				return c.metric(`fermata_http_dismissed_total{who="`+who.name+`"}`) >= who.most && c.metric("fermata_http_silent_"+who.name) <= who.most
			})
		}
	})
}

// metric is the value of one.
func (c *crowded) metric(name string) (value int) {
	c.Helper()
	_, rest, found := strings.Cut(c.metrics(), "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &value); err != nil || !found {
		c.Fatalf("%s: %v", name, err)
	}
	return value
}

// What is asked is answered, and a stream goes on, however many strangers come meanwhile.
func TestLobby_WhoIsServedStays(t *testing.T) {
	eachDoor(t, func(t *testing.T, c *crowded) {
		answered := make(chan answer)
		go func() {
			got, err := c.client.Do(c.request("agent@acme", "POST", "/api/v1/ai/chat", startSlow))
			answered <- answerOf(c.T, got, err)
		}()
		c.until("it runs", func() bool { status, _ := c.get("/api/v1/runs/s"); return status == 200 })
		stream, err := c.client.Do(c.request("auditor@acme", "GET", "/api/v1/runs/s/events", "", "Accept", asStream))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		c.get("/healthz") // over HTTP/2 that is the same connection, and it is not silent after this
		c.crowd("")
		close(c.release)
		if got := <-answered; got.status != 200 || got.field("status") != "completed" {
			t.Errorf("%+v", got)
		}
		if events := eventsIn(stream.Body, nil); len(events) == 0 || events[len(events)-1].kind != "outcome" {
			t.Errorf("%v", events)
		}
	})
}

// Strangers push out none whom we know, however many there are.
func TestLobby_CallersKeepTheirConnections(t *testing.T) {
	eachDoor(t, func(t *testing.T, c *crowded) {
		if status, _ := c.get("/api/v1/runs"); status != 200 {
			t.Fatal(status)
		}
		for range 3 {
			c.crowd("")
			if status, reused := c.get("/api/v1/runs"); status != 200 || !reused {
				t.Fatalf("%d on the same connection: %t", status, reused)
			}
		}
	})
}

// Who goes away in the middle leaves nothing behind.
func TestLobby_WhoGoesAwayIsForgotten(t *testing.T) {
	eachDoor(t, func(t *testing.T, c *crowded) {
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
		c.client.CloseIdleConnections()
		c.until("nobody is remembered", c.empty)
	})
}

// Over HTTP/2 the connection stays when somebody takes back what they asked, and is silent from then on, whatever is still done for them. Nobody noticed: any
// number of such connections could be kept, and none of them made room.
func TestLobby_WhoTakesBackWhatTheyAskedIsSilent(t *testing.T) {
	for _, where := range []string{"before it is served", "while it is asked who it is"} {
		t.Run(where, func(t *testing.T) {
			came, taken, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			hold := func(here string) {
				if here == where {
					close(came)
					<-taken
				}
			}
			s := open(t, func(c *server.Config) {
				c.Auth = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
					hold("while it is asked who it is")
					return tokens.Authenticate(r)
				})
			})
			h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				hold("before it is served")
				s.handler.ServeHTTP(w, r)
			}))
			h.EnableHTTP2 = true
			h.Listener = s.server.Guard(h.Config, h.Listener)
			h.StartTLS()
			t.Cleanup(h.Close)
			c := &crowded{site: s, client: h.Client()}
			s.url = h.URL
			ctx, takeBack := context.WithCancel(t.Context())
			go func() {
				if got, err := c.client.Do(s.request("auditor@acme", "GET", "/api/v1/runs", "").WithContext(ctx)); err == nil {
					got.Body.Close()
				}
			}()
			<-came
			takeBack()
			c.until("it is silent", func() bool { return !c.empty() })
			close(taken)
			<-done
			if c.empty() {
				t.Error("there is a connection on which nothing is asked, and nobody knows of it")
			}
		})
	}
}
