package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// Each principal has a rate of its own, and is told when to come again.
func TestLimits_RateIsPerPrincipal(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.Rate, c.Limits.Burst = 0.01, 3 })
	for range 3 {
		if got := s.call("agent@acme", "GET", "/api/v1/runs", ""); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	got := s.call("agent@acme", "GET", "/api/v1/runs", "")
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); got.status != 429 || err != nil || seconds < 1 || seconds > 100 {
		t.Errorf("%+v", got)
	}
	for _, other := range []string{"approver@acme", "agent@other"} {
		if got := s.call(other, "GET", "/api/v1/runs", ""); got.status != 200 {
			t.Errorf("%s: %+v", other, got)
		}
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_refusals_total{limit="rate"} 1`) {
		t.Error(s.metrics())
	}
}

// Only so many requests are served at once. Who has no place hears it at once, and health checks are no exception that could be abused.
func TestLimits_RequestsInFlight(t *testing.T) {
	s, release := openHeldWith(t, func(c *server.Config) { c.Limits.InFlight = 1 })
	done := make(chan answer, 1)
	go func() { done <- s.chat("agent@acme", startHeld) }()
	s.until("it is inside", func() bool { return s.server.InFlightOf("acme") == 1 })
	got := s.call("agent@acme", "GET", "/api/v1/runs", "")
	if got.status != 503 || got.header.Get("Retry-After") == "" || got.field("code") != "unavailable" {
		t.Errorf("there is room: %+v", got)
	}
	release()
	if got := <-done; got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	s.until("there is room again", func() bool { return s.call("agent@acme", "GET", "/api/v1/runs", "").status == 200 })
	if !strings.Contains(s.metrics(), `fermata_http_limit_refusals_total{limit="in_flight"}`) {
		t.Error(s.metrics())
	}
}

// slowClock is a store that does not say what time it is before it is let.
type slowClock struct {
	store.Store
	release chan struct{}
}

func (s *slowClock) Now(ctx context.Context) (time.Time, error) {
	select {
	case <-s.release:
		return s.Store.Now(ctx)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// More is asked for than can be worked on: the excess is refused before anybody looks at who asks or for what, and clearly. The connection is kept: to
// make a new one for the next try would cost both sides more than the refusal.
func TestLimits_Concurrency(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 10)
	slow := &slowClock{Store: memory.NewStore(nil), release: let}
	s := openWith(t, func(c *server.Config) {
		c.Limits.Concurrency = 1
		inner := c.Auth
		c.Auth = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
			asked <- struct{}{}
			<-let
			return inner.Authenticate(r)
		})
	}, func(c *executor.Config) { c.Store = slow })
	done := make(chan answer, 2)
	go func() { done <- s.chat("agent@acme", startOf(1)) }()
	<-asked
	var again bool
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }})
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	for n := range 3 {
		response, err := client.Do(s.request("agent@acme", "POST", "/api/v1/ai/chat", startOf(2)).WithContext(trace))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		got := answer{response.StatusCode, response.Header, string(text)}
		if err != nil || got.status != 503 || got.field("code") != "unavailable" || got.header.Get("Retry-After") == "" || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%+v %v", got, err)
		}
		if n > 0 && !again {
			t.Error("a refusal costs the connection")
		}
	}
	if len(asked) > 0 {
		t.Error("it was looked who asks for what is refused anyway")
	}
	if got := s.call("", "GET", "/healthz", ""); got.status != 200 {
		t.Errorf("the server has much to do, and is taken for dead: %+v", got)
	}
	close(let)
	if got := <-done; got.status != 200 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_refusals_total{limit="working"} 3`) {
		t.Error(s.metrics())
	}
	if got := s.chat("agent@acme", startOf(2)); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}

// One account sends all it can, with several keys, and everything it sends is held up. It is refused then, and the others are not: they neither notice nor wait.
func TestLimits_BusyAccountDoesNotBlockOthers(t *testing.T) {
	for name, change := range map[string]func(*server.Limits){
		"working":   func(l *server.Limits) { l.Concurrency = 4 },
		"in flight": func(l *server.Limits) { l.InFlight = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			let, asked := make(chan struct{}), make(chan struct{}, 100)
			slow := &slowClock{Store: memory.NewStore(nil), release: let} // so that nobody takes them for waiting for a model
			s := openWith(t, func(c *server.Config) {
				change(&c.Limits)
				inner := c.Auth
				c.Auth = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
					p, err := inner.Authenticate(r)
					if p.Account == "noisy" {
						asked <- struct{}{}
						if r.Method == http.MethodPost {
							<-let
						}
					}
					return p, err
				})
			}, func(c *executor.Config) { c.Store = slow })
			for _, token := range []string{"agent@noisy", "admin@noisy"} { // it is known by then
				if got := s.call(token, "GET", "/api/v1/graphs", ""); got.status != 200 {
					t.Fatalf("%+v", got)
				}
				<-asked
			}
			done := make(chan answer, 20)
			for n := range 20 {
				go func() { done <- s.chat([]string{"agent@noisy", "admin@noisy"}[n%2], startOf(n)) }()
			}
			for range 4 {
				<-asked
			}
			for range 16 {
				if got := <-done; got.status != 503 {
					t.Errorf("it takes more than there is: %+v", got)
				}
			}
			for range 3 {
				for _, token := range []string{"agent@acme", "auditor@other"} {
					if got := s.call(token, "GET", "/api/v1/graphs", ""); got.status != 200 {
						t.Errorf("%s has to bear it: %+v", token, got)
					}
				}
			}
			close(let)
			for range 4 {
				if got := <-done; got.status != 200 {
					t.Errorf("what was let in was not done: %+v", got)
				}
			}
		})
	}
}

// Whoever comes with keys that are none takes no place from anybody, however many they try; and a key that was good once is none, either.
func TestLimits_AnonymousRequestsDoNotBlockAccounts(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 100)
	slow := &slowClock{Store: memory.NewStore(nil), release: let}
	var revoked atomic.Bool
	s := openWith(t, func(c *server.Config) {
		c.Limits.Concurrency = 2
		inner := c.Auth
		c.Auth = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
			p, err := inner.Authenticate(r)
			if p.Account == "acme" && p.ID == "agent" && revoked.Load() {
				err = server.ErrUnauthenticated
			}
			if err != nil && r.Method == http.MethodPost {
				asked <- struct{}{}
				<-let
			}
			return p, err
		})
	}, func(c *executor.Config) { c.Store = slow })
	for _, token := range []string{"agent@acme", "auditor@acme"} {
		if got := s.call(token, "GET", "/api/v1/graphs", ""); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	revoked.Store(true)
	if got := s.call("agent@acme", "GET", "/api/v1/graphs", ""); got.status != 401 {
		t.Fatalf("%+v", got)
	}
	done := make(chan answer, 20)
	for n := range 20 {
		token := "agent@acme" // the one that was good once
		if n%2 == 0 {
			token = "guess-" + strconv.Itoa(n)
		}
		go func() { done <- s.chat(token, startOf(n)) }()
	}
	<-asked
	if got := <-done; got.status != 503 {
		t.Errorf("there is a place for every stranger: %+v", got)
	}
	for range 3 {
		if got := s.call("auditor@acme", "GET", "/api/v1/graphs", ""); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	close(let)
	for range 19 {
		if got := <-done; got.status != 503 && got.status != 401 {
			t.Errorf("%+v", got)
		}
	}
}

// Whoever is asked who somebody is may panic; the place that was taken until then is given back.
func TestLimits_AuthenticatorPanicReleasesPermits(t *testing.T) {
	s := open(t, func(c *server.Config) {
		c.Limits.InFlight, c.Limits.Streams = 2, 2
		c.Auth = server.AuthenticatorFunc(func(r *http.Request) (server.Principal, error) {
			if r.Header.Get("Authorization") == "Bearer boom" {
				panic("boom")
			}
			return testTokens.Authenticate(r)
		})
	})
	for _, path := range []string{"/api/v1/graphs", "/api/v1/runs/x/events"} {
		for range 4 {
			if got := s.call("boom", "GET", path, ""); got.status != 500 {
				t.Errorf("%+v", got)
			}
		}
	}
	if requests, streams := s.server.InFlight(); requests != 0 || streams != 0 || !strings.Contains(s.metrics(), "fermata_http_streams 0\n") {
		t.Errorf("%d requests and %d streams are still inside", requests, streams)
	}
}

// A server that has as much to do as it can is not dead.
func TestLimits_HealthChecksAreExempt(t *testing.T) {
	s, release := openHeldWith(t, func(c *server.Config) { c.Limits.InFlight, c.Limits.Concurrency = 1, 1 })
	defer release()
	for _, account := range []string{"acme", "other"} { // the second takes what is left for those who have none
		go http.DefaultClient.Do(s.request("agent@"+account, "POST", "/api/v1/ai/chat", startHeld))
		// One after the other: at the door, where nobody knows yet whose they are, there is room for one.
		s.until("it is inside", func() bool { return s.server.InFlightOf(account) == 1 })
	}
	if got := s.call("agent@acme", "GET", "/api/v1/graphs", ""); got.status != 503 {
		t.Errorf("there is room: %+v", got)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := s.call("", method, path, ""); got.status != 200 {
				t.Errorf("%s %s: %+v", method, path, got)
			}
		}
	}
}
