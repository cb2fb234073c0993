package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/provider"
)

// A request that a client repeats without having received the response is applied once.
func TestIdempotency_StartWithKeyIsRepeatable(t *testing.T) {
	s := open(t, nil)
	const start = `{"graphId":"inproc:content-review","input":{"topic":"tea"}}`
	first := s.chat("agent@acme", start, "Idempotency-Key", "k")
	if again := s.chat("agent@acme", start, "Idempotency-Key", "k"); again.body != first.body || len(s.openRequests("acme")) != 1 {
		t.Fatalf("%+v, %+v", first, again)
	}
	if async := s.chat("agent@acme", start, "Idempotency-Key", "k", "Prefer", "respond-async"); async.field("runId") != first.field("runId") {
		t.Errorf("%+v", async)
	}
	for name, got := range map[string]answer{
		"another key":       s.chat("agent@acme", start, "Idempotency-Key", "l"),
		"another principal": s.chat("admin@acme", start, "Idempotency-Key", "k"),
		"another account":   s.chat("agent@other", start, "Idempotency-Key", "k"),
		"no key":            s.chat("agent@acme", start),
	} {
		if got.status != 200 || got.field("runId") == first.field("runId") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A key stays bound to its start after the end of the run: a late repetition must not start again.
func TestIdempotency_KeyReuseWithOtherBodyIsRejected(t *testing.T) {
	s := open(t, nil)
	const start = `{"graphId":"inproc:clerk","input":{"query":"hi"}}`
	first := s.chat("agent@acme", start, "Idempotency-Key", "k")
	if first.field("status") != "completed" {
		t.Fatalf("%+v", first)
	}
	if again := s.chat("agent@acme", start, "Idempotency-Key", "k"); again.body != first.body {
		t.Errorf("%+v", again)
	}
	for _, other := range []string{strings.Replace(start, "hi", "bye", 1), strings.Replace(start, `"input"`, `"supersede":true,"input"`, 1) + " ", strings.Replace(start, "clerk", "content-review", 1)} {
		got := s.chat("agent@acme", other, "Idempotency-Key", "k")
		if other[len(other)-1] == ' ' { // the same, with a preference that changes nothing
			if got.body != first.body {
				t.Errorf("%s: %+v", other, got)
			}
			continue
		}
		if got.status != 422 || got.field("code") != "idempotency_key_reused" {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

func TestIdempotency_CreateRequest(t *testing.T) {
	s := open(t, nil)
	ask := func(kind string, headers ...string) answer {
		return s.call("agent@acme", "POST", "/api/v1/requests", fmt.Sprintf(`{"kind":%q,"data":{"a":1}}`, kind), headers...)
	}
	first := ask("sign", "Idempotency-Key", "k")
	if first.status != 200 || first.field("status") != "needs_input" {
		t.Fatalf("%+v", first)
	}
	if again := ask("sign", "Idempotency-Key", "k"); again.body != first.body || len(s.openRequests("acme")) != 1 {
		t.Errorf("%+v", again)
	}
	if other := ask("seal", "Idempotency-Key", "k"); other.status != 422 {
		t.Errorf("%+v", other)
	}
	if async := ask("sign", "Idempotency-Key", "k", "Prefer", "respond-async"); async.status != 202 || async.header.Get("Location") == "" {
		t.Errorf("%+v", async)
	}
}

func TestIdempotency_CancelsAndDecisions(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	id := s.openRequests("acme")[0].ID
	decision := `{"resumeId":"1","answer":{"action":"revise","feedback":"hot"}}`
	first := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", decision)
	for range 3 {
		if again := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", decision); again.status != 200 || again.body != first.body {
			t.Errorf("%+v, and then %+v", first, again)
		}
	}
	for range 3 {
		if got := s.call("agent@acme", "POST", "/api/v1/runs/demo-1/cancel", ""); got.status != 204 || got.body != "" {
			t.Errorf("%+v", got)
		}
	}
	if late := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", decision); late.body != first.body {
		t.Errorf("after the end: %+v", late)
	}
}

// flakyProvider fails until it is healthy.
type flakyProvider struct {
	provider.Provider
	healthy *atomic.Bool
}

func (m flakyProvider) Execute(ctx context.Context, x provider.Execution) (provider.Result, error) {
	if !m.healthy.Load() {
		return provider.Result{}, provider.ErrPark
	}
	return m.Provider.Execute(ctx, x)
}

func TestIdempotency_RetryOfParkedRun(t *testing.T) {
	var well atomic.Bool
	s := openWith(t, nil, func(c *executor.Config) { c.Providers[0] = flakyProvider{c.Providers[0], &well} })
	retry := func(key string) answer { return s.call("admin@acme", "POST", "/api/v1/runs/"+key+"/retry", "") }
	status := func(key string) any { return s.call("admin@acme", "GET", "/api/v1/runs/"+key, "").field("status") }
	for _, key := range []string{"demo-1", "demo-2"} {
		s.chat("agent@acme", strings.Replace(startDemo, "demo-1", key, 1), "Prefer", "respond-async")
		s.until("it is parked", func() bool { return status(key) == "parked" })
	}
	s.call("agent@acme", "POST", "/api/v1/runs/demo-2/cancel", "")
	if got := retry("demo-2"); got.field("code") != "not_retryable" {
		t.Errorf("a run that was cancelled while parked: %+v", got)
	}
	well.Store(true)
	s.e.StartWorkers()
	for range 3 { // a client without the first response repeats it
		if got := retry("demo-1"); got.status != 204 {
			t.Errorf("%+v", got)
		}
		s.until("it continues", func() bool { return status("demo-1") == "waiting" })
	}
	s.chat("agent@acme", strings.Replace(startDemo, "demo-1", "demo-3", 1))
	if got := retry("demo-3"); got.field("code") != "not_retryable" {
		t.Errorf("a run that was never parked: %+v", got)
	}
}

// The same applies to a finished run: the response to a start may have been lost, and the account
// may stay at its limit for days.
func TestIdempotency_RepeatOfFinishedStartIgnoresQuota(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.OpenRequests = 1 })
	const ask = `{"kind":"sign","data":{"a":1}}`
	s.call("agent@acme", "POST", "/api/v1/requests", ask, "Idempotency-Key", "k")
	s.call("approver@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":"yes"}`)
	s.until("it is at its limit", func() bool {
		s.chat("agent@acme", startDemo)
		return s.chat("agent@acme", strings.Replace(startDemo, "demo-1", "demo-2", 1)).field("code") == "too_many_open"
	})
	if again := s.call("agent@acme", "POST", "/api/v1/requests", ask, "Idempotency-Key", "k"); again.field("status") != "completed" {
		t.Errorf("%+v", again)
	}
	if other := s.call("agent@acme", "POST", "/api/v1/requests", strings.Replace(ask, "1", "2", 1), "Idempotency-Key", "k"); other.status != 429 {
		t.Errorf("something else: %+v", other)
	}
}

// An account at its limit can still repeat its requests.
func TestIdempotency_RepeatIgnoresQuota(t *testing.T) {
	for _, code := range []string{"too_many_open", "too_many_runs"} {
		t.Run(code, func(t *testing.T) {
			limits := func(c *server.Config) { c.Limits.OpenRequests = 1 }
			start := strings.Replace(startDemo, "demo-1", "held/1", 1)
			if code == "too_many_runs" {
				limits, start = func(c *server.Config) { c.Limits.ActiveRuns = 1 }, startHeld
			}
			s, release := openHeldWith(t, limits)
			defer release()
			first := s.chat("agent@acme", start, "Prefer", "respond-async")
			if again := s.chat("agent@acme", start, "Prefer", "respond-async"); again.status != 202 || again.body != first.body {
				t.Errorf("%+v", again)
			}
			s.until("it is at its limit", func() bool {
				return s.chat("agent@acme", strings.Replace(start, `/1"`, `/2"`, 1), "Prefer", "respond-async").field("code") == code
			})
			if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="`+map[string]string{"too_many_open": "open_requests", "too_many_runs": "active_runs"}[code]+`"}`) {
				t.Error(s.metrics())
			}
		})
	}
}
