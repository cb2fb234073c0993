package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/internal/admission"
	"github.com/fermata-go/fermata/store"
)

// metrics are the Prometheus metrics of a server. No label contains a value that a caller chose or
// that distinguishes accounts.
type metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	rejections *prometheus.CounterVec
	problems   *prometheus.CounterVec
	limits     *prometheus.CounterVec
	errors     *prometheus.CounterVec
	evictions  *prometheus.CounterVec
	streams    prometheus.Gauge
}

// Counters exist from the start with the value 0: an alert on a missing series would never fire.
var (
	limitNames = []string{"body", "depth", "body_timeout", "rate", "in_flight", "concurrency", "streams", "open_requests", "active_runs", "requests_per_agent", "heavy_reads"}
	errorNames = []string{"panic", "authentication", "store_metrics", "sessions", "operation"}
)

func newMetrics(scheduler *admission.FairScheduler, idleConns *admission.IdleConnLimiter) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fermata_http_request_seconds", Help: "Request duration by method, route and status. Streams count until they end.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route", "status"}),
		rejections: counter("fermata_http_rejections_total", "Rejected requests by problem code: unauthenticated, missing role, limits.", "code"),
		problems:   counter("fermata_http_problems_total", "Problem responses of operations by code.", "code"),
		limits:     counter("fermata_http_limit_rejections_total", "Requests rejected by a limit, by limit.", "limit", limitNames...),
		errors:     counter("fermata_errors_total", "Internal errors and errors of dependencies, by component.", "where", errorNames...),
		evictions:  counter("fermata_http_idle_evictions_total", "Idle connections closed to make room for others, by client class.", "client", "known", "anonymous"),
		streams:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fermata_http_streams", Help: "Open event streams."}),
	}
	for _, c := range Codes {
		m.rejections.WithLabelValues(c.Code)
		m.problems.WithLabelValues(c.Code)
	}
	m.registry.MustRegister(m.requests, m.rejections, m.problems, m.limits, m.errors, m.evictions, m.streams)
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_working", Help: "Requests that are executing."}, func() float64 {
			taken, _ := scheduler.Load()
			return float64(taken)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_overloaded_accounts", Help: "Accounts that send more requests than are completed; anonymous requests count as one account."}, func() float64 {
			return float64(scheduler.OverloadedAccounts())
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_queued", Help: "Requests that wait for a scheduler permit."}, func() float64 {
			_, queued := scheduler.Load()
			return float64(queued)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_idle_known", Help: "Idle connections of known clients."}, func() float64 {
			return float64(idleConns.Size(true))
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_idle_anonymous", Help: "Idle anonymous connections."}, func() float64 {
			return float64(idleConns.Size(false))
		}))
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help, label string, known ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range known {
		c.WithLabelValues(value)
	}
	return c
}

// methodOf returns the method of a request, or other for a non-standard one.
func methodOf(r *http.Request, other string) string {
	if !methods[r.Method] {
		return other
	}
	return r.Method
}

// methods are the methods used as labels: a client may send any text.
var methods = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodDelete: true, http.MethodPatch: true, http.MethodHead: true, http.MethodOptions: true}

func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	method := methodOf(r, "other")
	route := r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// countRejected counts a rejected request.
func (m *metrics) countRejected(code string) { m.rejections.WithLabelValues(code).Inc() }

// countLimited counts a request that a limit rejected.
func (m *metrics) countLimited(limit string) {
	if limit != "" {
		m.limits.WithLabelValues(limit).Inc()
	}
}

// executorCollector exports the counters of an executor at scrape time.
type executorCollector struct{ *executor.Executor }

// executorMetrics lists the executor's metrics and their sources.
var executorMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(executor.Stats) int64
}{
	{desc("fermata_executions_running", "Runs that this process executes now, each under a lease."), prometheus.GaugeValue, func(s executor.Stats) int64 { return s.Running }},
	{desc("fermata_executions_total", "Executions that this process started."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Executions }},
	{desc("fermata_takeovers_total", "Executions taken over from an owner whose lease expired."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.TakenOver }},
	{desc("fermata_executions_unfinished_total", "Executions that failed to finish and are retried."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Unfinished }},
	{desc("fermata_executions_fenced_total", "Executions of this process that another process took over."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Fenced }},
	{desc("fermata_runs_parked_total", "Runs that were parked until an operator acts."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Parked }},
	{desc("fermata_decrypt_failures_total", "Values that this process could not decrypt: a key is missing, or the value was changed."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Unreadable }},
	{desc("fermata_key_file_unreadable", "1 while this process cannot reload its key file; it continues with the loaded keys."), prometheus.GaugeValue, func(s executor.Stats) int64 {
		if s.KeyReloadFailing {
			return 1
		}
		return 0
	}},
	{desc("fermata_notices_delivered_total", "Notices that this process delivered."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Delivered }},
	{desc("fermata_notices_failed_total", "Failed delivery attempts of this process; they are retried."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.DeliveryFailed }},
	{desc("fermata_progress_missed_total", "Steps and tokens that slow event stream clients missed."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.DroppedProgress }},
}

var expiredDesc = desc("fermata_requests_expired_total", "Requests that this process expired, by reason: stale if not decided in time, other if set by the route.", "reason")

var decisionDesc = desc("fermata_decision_seconds", "Time from creation to decision of requests, by verdict; counted by the process that applied it.", "verdict")

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (executorCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range executorMetrics {
		to <- m.desc
	}
	to <- decisionDesc
	to <- expiredDesc
}

// Collect implements prometheus.Collector.
func (w executorCollector) Collect(to chan<- prometheus.Metric) {
	stats := w.Stats()
	for _, m := range executorMetrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.of(stats)))
	}
	to <- prometheus.MustNewConstMetric(expiredDesc, prometheus.CounterValue, float64(stats.ExpiredUndecided), "stale")
	to <- prometheus.MustNewConstMetric(expiredDesc, prometheus.CounterValue, float64(stats.ExpiredOtherwise), "other")
	for _, verdict := range []store.Verdict{store.VerdictApprove, store.VerdictReject, store.VerdictAnswer, store.VerdictExpire} {
		waits := stats.DecisionWaits[verdict]
		within := make(map[float64]uint64)
		for n, bound := range executor.WaitBounds {
			within[bound] = 0
			if n < len(waits.Within) {
				within[bound] = waits.Within[n]
			}
		}
		to <- prometheus.MustNewConstHistogram(decisionDesc, waits.Count, waits.Seconds, within, string(verdict))
	}
}

// PolicyStatus reports problems of the policy and groups files. The policy in force still applies.
type PolicyStatus struct {
	// Rejected reports that a file cannot be loaded; the previous version stays in force.
	Rejected bool
	// Unsatisfiable reports that rules in force require approvals that the groups cannot give.
	Unsatisfiable bool
}

var policyStatusDesc = desc("fermata_policy_problem",
	"1 while the policy or groups files have this problem: rejected if a file cannot be loaded and the previous one stays in force; unsatisfiable if rules require approvals that no group can give.", "problem")

// policyStatusCollector exports the policy status; nil means no problem.
type policyStatusCollector func() PolicyStatus

// Describe implements prometheus.Collector.
func (policyStatusCollector) Describe(to chan<- *prometheus.Desc) { to <- policyStatusDesc }

// Collect implements prometheus.Collector.
func (status policyStatusCollector) Collect(to chan<- prometheus.Metric) {
	var now PolicyStatus
	if status != nil {
		now = status()
	}
	for name, active := range map[string]bool{"rejected": now.Rejected, "unsatisfiable": now.Unsatisfiable} {
		value := 0.0
		if active {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(policyStatusDesc, prometheus.GaugeValue, value, name)
	}
}

// Metrics returns a handler that serves the metrics in Prometheus' format.
func (s *Server) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}
