package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/server"
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
