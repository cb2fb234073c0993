package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// Each principal has a rate of its own, and is told when to come again.
func TestLimits_RateOfEachPrincipal(t *testing.T) {
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
	s, release := heldWith(t, func(c *server.Config) { c.Limits.InFlight = 1 })
	done := make(chan answer)
	go func() { done <- s.chat("agent@acme", startHeld) }()
	s.until("there is no place left", func() bool {
		got := s.call("agent@acme", "GET", "/api/v1/runs", "")
		return got.status == 503 && got.header.Get("Retry-After") != "" && got.field("code") == "unavailable"
	})
	release()
	if got := <-done; got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs", ""); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_refusals_total{limit="in_flight"}`) {
		t.Error(s.metrics())
	}
}

// slowClock is a store that does not say what time it is before it is let.
type slowClock struct {
	store.Store
	let chan struct{}
}

func (s *slowClock) Now(ctx context.Context) (time.Time, error) {
	select {
	case <-s.let:
		return s.Store.Now(ctx)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// More is asked for than can be worked on: the excess is refused before anybody looks at who asks or for what, and clearly. The connection is kept: to
// make a new one for the next try would cost both sides more than the refusal.
func TestLimits_WorkingAtOnce(t *testing.T) {
	let, asked := make(chan struct{}), make(chan struct{}, 10)
	slow := &slowClock{Store: memory.NewRuns(nil), let: let}
	s := openWith(t, func(c *server.Config) {
		c.Limits.Working = 1
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
