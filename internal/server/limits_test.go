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

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// Each principal has its own rate limit, with a Retry-After delay.
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
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="rate"} 1`) {
		t.Error(s.metrics())
	}
}

// Requests in flight are limited. A rejection is immediate, and health checks cannot be abused.
func TestLimits_RequestsInFlight(t *testing.T) {
	s, release := openHeldWith(t, func(c *server.Config) { c.Limits.InFlight = 1 })
	done := make(chan answer, 1)
	go func() { done <- s.chat("agent@acme", startHeld) }()
	s.until("it is in flight", func() bool { return s.server.InFlightOf("acme") == 1 })
	got := s.call("agent@acme", "GET", "/api/v1/runs", "")
	if got.status != 503 || got.header.Get("Retry-After") == "" || got.field("code") != "unavailable" {
		t.Errorf("there is a slot: %+v", got)
	}
	release()
	if got := <-done; got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	s.until("there is a slot again", func() bool { return s.call("agent@acme", "GET", "/api/v1/runs", "").status == 200 })
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="in_flight"}`) {
		t.Error(s.metrics())
	}
}

// slowClock is a store whose Now blocks until it is released.
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

// Under overload, excess requests are rejected before authentication and routing. The connection
// stays open: a new one would cost more than the rejection.
func TestLimits_Concurrency(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 10)
	slow := &slowClock{Store: memory.NewStore(nil), release: let}
	s := openWith(t, func(c *server.Config) {
		c.Limits.Concurrency = 1
		inner := c.Auth
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
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
			t.Error("a rejection closes the connection")
		}
	}
	if len(asked) > 0 {
		t.Error("a rejected request was authenticated")
	}
	if got := s.call("", "GET", "/healthz", ""); got.status != 200 {
		t.Errorf("a busy server fails its health check: %+v", got)
	}
	close(let)
	if got := <-done; got.status != 200 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="concurrency"} 3`) {
		t.Error(s.metrics())
	}
	if got := s.chat("agent@acme", startOf(2)); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}

// One account sends as much as it can, with several keys, and all of it is stalled. It is rejected,
// and other accounts are not affected.
func TestLimits_BusyAccountDoesNotBlockOthers(t *testing.T) {
	for name, change := range map[string]func(*server.Limits){
		"working":   func(l *server.Limits) { l.Concurrency = 4 },
		"in flight": func(l *server.Limits) { l.InFlight = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			let, asked := make(chan struct{}), make(chan struct{}, 100)
			// so that it does not look like waiting for a model
			slow := &slowClock{Store: memory.NewStore(nil), release: let}
			s := openWith(t, func(c *server.Config) {
				change(&c.Limits)
				inner := c.Auth
				c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
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
					t.Errorf("it exceeds the capacity: %+v", got)
				}
			}
			for range 3 {
				for _, token := range []string{"agent@acme", "auditor@other"} {
					if got := s.call(token, "GET", "/api/v1/graphs", ""); got.status != 200 {
						t.Errorf("%s is affected: %+v", token, got)
					}
				}
			}
			close(let)
			for range 4 {
				if got := <-done; got.status != 200 {
					t.Errorf("an admitted request was not completed: %+v", got)
				}
			}
		})
	}
}

// Requests with invalid keys use no capacity of accounts, also with a key that was valid once.
func TestLimits_AnonymousRequestsDoNotBlockAccounts(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 100)
	slow := &slowClock{Store: memory.NewStore(nil), release: let}
	var revoked atomic.Bool
	s := openWith(t, func(c *server.Config) {
		c.Limits.Concurrency = 2
		inner := c.Auth
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
			p, err := inner.Authenticate(r)
			if p.Account == "acme" && p.ID == "agent" && revoked.Load() {
				err = authn.ErrUnauthenticated
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
		token := "agent@acme" // the one that was valid once
		if n%2 == 0 {
			token = "guess-" + strconv.Itoa(n)
		}
		go func() { done <- s.chat(token, startOf(n)) }()
	}
	<-asked
	if got := <-done; got.status != 503 {
		t.Errorf("there is a slot for every anonymous request: %+v", got)
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

// An authenticator may panic; the acquired permits are released.
func TestLimits_AuthenticatorPanicReleasesPermits(t *testing.T) {
	s := open(t, func(c *server.Config) {
		c.Limits.InFlight, c.Limits.Streams = 2, 2
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
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
		t.Errorf("%d requests and %d streams are still in flight", requests, streams)
	}
}

// A fully loaded server is not dead.
func TestLimits_HealthChecksAreExempt(t *testing.T) {
	s, release := openHeldWith(t, func(c *server.Config) { c.Limits.InFlight, c.Limits.Concurrency = 1, 1 })
	defer release()
	// the second uses the reserve for accounts without a slot
	for _, account := range []string{"acme", "other"} {
		go http.DefaultClient.Do(s.request("agent@"+account, "POST", "/api/v1/ai/chat", startHeld))
		// One after the other: before authentication there is one slot.
		s.until("it is in flight", func() bool { return s.server.InFlightOf(account) == 1 })
	}
	if got := s.call("agent@acme", "GET", "/api/v1/graphs", ""); got.status != 503 {
		t.Errorf("there is a slot: %+v", got)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := s.call("", method, path, ""); got.status != 200 {
				t.Errorf("%s %s: %+v", method, path, got)
			}
		}
	}
}
