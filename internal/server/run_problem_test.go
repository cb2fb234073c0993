package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/provider"
)

// brokenProvider fails its runs until it is healthy.
type brokenProvider struct {
	provider.Provider
	healthy *atomic.Bool
}

func (m brokenProvider) Execute(ctx context.Context, x provider.Execution) (provider.Result, error) {
	if m.healthy.Load() {
		return m.Provider.Execute(ctx, x)
	}
	result, err := m.Provider.Execute(ctx, x) // so that the run has a saved state
	result.Outcome = provider.Failed{Code: "node_failed", Message: "the run failed at node:a", Detail: errors.New("dial db.internal: refused").Error()}
	return result, err
}

// The account sees why a run failed, an admin also the complete error. The run can be retried, and
// a stream of its events goes on to its new outcome.
func TestRetry_FailedRunShowsItsProblem(t *testing.T) {
	var healthy atomic.Bool
	s := openWith(t, nil, func(c *executor.Config) { c.Providers[0] = brokenProvider{c.Providers[0], &healthy} })
	s.chat("agent@acme", startDemo)
	problem := func(who string) map[string]any {
		shown, _ := s.call(who, "GET", "/api/v1/runs/demo-1", "").field("problem").(map[string]any)
		return shown
	}
	if p := problem("agent@acme"); p["code"] != "node_failed" || p["message"] != "the run failed at node:a" || p["retryable"] != true || p["detail"] != nil {
		t.Errorf("the agent sees %v", p)
	}
	if p := problem("admin@acme"); p["detail"] != "dial db.internal: refused" {
		t.Errorf("the admin sees %v", p)
	}
	if got := s.call("agent@acme", "POST", "/api/v1/runs/demo-1/retry", ""); got.status != 403 {
		t.Errorf("an agent retries: %+v", got)
	}
	healthy.Store(true)
	s.e.StartWorkers()
	for range 2 { // a client without the first response repeats it
		if got := s.call("admin@acme", "POST", "/api/v1/runs/demo-1/retry", ""); got.status != 204 {
			t.Fatalf("%+v", got)
		}
		s.until("it waits", func() bool {
			return s.call("admin@acme", "GET", "/api/v1/runs/demo-1", "").field("status") == "waiting"
		})
	}
	if p := problem("admin@acme"); p != nil {
		t.Errorf("the retried run has the problem %v", p)
	}
}
