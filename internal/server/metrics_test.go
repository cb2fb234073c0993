package server_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/provider"
)

// busySite has served some of everything.
func busySite(t *testing.T) *site {
	t.Helper()
	s := openWith(t, nil, func(c *executor.Config) {
		c.Desk.Channels = []channel.Channel{&chatChannel{cards: make(chan channel.Message, 10)}}
	})
	s.chat("agent@acme", startDemo)
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
	s.chat("agent@acme", `{"graphId":"inproc:content-review","input":`+deep(101)+`}`)
	s.call("agent@acme", "GET", "/api/v1/runs/unknown", "")
	s.call("", "GET", "/api/v1/runs", "")
	s.call("agent@acme", "GET", "/api/v1/requests", "")
	s.call("agent@acme", "FROBNICATE-"+canary, "/api/v1/runs/"+canary, "")
	return s
}

// The documented list is generated from the exported metrics.
func TestMetrics_AreDocumented(t *testing.T) {
	text := busySite(t).metrics()
	var b strings.Builder
	b.WriteString("# Metrics\n\n" +
		"Prometheus metrics that `Server.Metrics` exports. No label distinguishes accounts, runs or people,\n" +
		"and none contains a value that a caller chose, so the number of series is small. Counters are per\n" +
		"process: sum them over replicas. The Go runtime and process metrics are included (`go_…`,\n" +
		"`process_…`).\n\n" +
		"This table is generated from the exported metrics (`go test ./internal/server -run Metrics -update`).\n\n| name | type | labels | description |\n|---|---|---|---|\n")
	kind := regexp.MustCompile(`(?m)^# HELP (fermata_\w+) (.*)\n# TYPE \w+ (\w+)$`)
	for _, family := range kind.FindAllStringSubmatch(text, -1) {
		label := regexp.MustCompile(`(?m)^` + family[1] + `(?:_bucket)?\{(.*)\}`).FindStringSubmatch(text)
		var labels []string
		if label != nil {
			for _, name := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(label[1], -1) {
				if name[1] != "le" {
					labels = append(labels, "`"+name[1]+"`")
				}
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family[1], family[3], strings.Join(labels, ", "), family[2])
	}
	golden.Compare(t, "../../docs/metrics.md", b.String())
}

// Clients cannot create series. (The site checks that no label contains a canary.)
func TestMetrics_CountRequestsAndProblems(t *testing.T) {
	text := busySite(t).metrics()
	for _, want := range []string{
		`fermata_http_request_seconds_count{method="POST",route="/api/v1/ai/chat",status="200"} 2`,
		`fermata_http_request_seconds_count{method="GET",route="/api/v1/runs/{stateKey}",status="404"} 1`,
		`fermata_http_request_seconds_count{method="other",route="/",status="405"} 1`,
		`fermata_http_rejections_total{code="unauthenticated"} 1`,
		`fermata_http_rejections_total{code="forbidden"} 1`,
		// rejected requests used to be counted here, too, and twice in the sum of both
		`fermata_http_problems_total{code="forbidden"} 0`,
		`fermata_http_problems_total{code="not_found"} 1`,
		`fermata_http_limit_rejections_total{limit="depth"} 1`,
		`fermata_http_limit_rejections_total{limit="rate"} 0`,
		`fermata_errors_total{where="panic"} 0`,
		`fermata_executions_total 2`,
		`fermata_executions_running 0`,
		`fermata_decision_seconds_count{verdict="answer"} 1`,
		`fermata_decision_seconds_bucket{verdict="answer",le="60"} 1`,
		`fermata_decision_seconds_count{verdict="reject"} 0`,
	} {
		if !slices.Contains(strings.Split(text, "\n"), want) {
			t.Errorf("%s is missing:\n%s", want, text)
			break
		}
	}
}

// failingProvider parks its runs.
type failingProvider struct{ provider.Provider }

func (failingProvider) Execute(context.Context, provider.Execution) (provider.Result, error) {
	return provider.Result{}, provider.ErrPark
}

func TestMetrics_CountParkedRunsPanicsAndExtraCollectors(t *testing.T) {
	deliveries := prometheus.NewCounter(prometheus.CounterOpts{Name: "fermata_deliveries_total", Help: "Of another component."})
	s := openWith(t, func(c *server.Config) {
		c.Collectors = []prometheus.Collector{deliveries}
		c.PolicyStatus = func() server.PolicyStatus { return server.PolicyStatus{Rejected: true} }
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
			if r.Header.Get("Authorization") == "Bearer panic" {
				panic(canary)
			}
			return testTokens(r)
		})
	}, func(c *executor.Config) { c.Providers[0] = failingProvider{c.Providers[0]} })
	s.chat("agent@acme", startDemo, "Prefer", "respond-async")
	s.call("panic", "GET", "/api/v1/runs", "")
	s.until("it is parked", func() bool { return strings.Contains(s.metrics(), "fermata_runs_parked_total 1\n") })
	for _, want := range []string{
		"fermata_executions_unfinished_total 1\n", "fermata_deliveries_total 0\n", `fermata_errors_total{where="panic"} 1` + "\n",
		`fermata_policy_problem{problem="rejected"} 1` + "\n", `fermata_policy_problem{problem="unsatisfiable"} 0` + "\n",
	} {
		if !strings.Contains(s.metrics(), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// Every rolling deploy used to log and count errors: requests that arrived while a server drained.
func TestDrain_IsNotCountedAsAnError(t *testing.T) {
	s := open(t, nil)
	if err := s.e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer := s.chat("agent@acme", startDemo)
	if answer.status != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", answer.status, answer.header, answer.body)
	}
	if log := s.log.String(); strings.Contains(log, "ERROR") || strings.Contains(s.metrics(), `fermata_errors_total{where="operation"} 1`) {
		t.Errorf("it counts as an error: %s", log)
	}
}
