// Package metrics has the Prometheus metrics of a server, and collectors for those of the executor,
// the store, the channels and the policy.
package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// Metrics are the Prometheus metrics of a server. No label contains a value that a caller chose or
// that distinguishes accounts.
type Metrics struct {
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

// New returns the metrics of a server.
func New(scheduler *admission.FairScheduler, idleConns *admission.IdleConnLimiter) *Metrics {
	m := &Metrics{
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
	for _, c := range problems.Codes {
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

// Method returns the method of a request, or other for a non-standard one.
func Method(r *http.Request, other string) string {
	if !Methods[r.Method] {
		return other
	}
	return r.Method
}

// Methods are the methods used as labels: a client may send any text.
var Methods = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodDelete: true, http.MethodPatch: true, http.MethodHead: true, http.MethodOptions: true}

// Observe records the duration of a request.
func (m *Metrics) Observe(r *http.Request, status int, took time.Duration) {
	method := Method(r, "other")
	route := r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// CountRejected counts a rejected request.
func (m *Metrics) CountRejected(code string) { m.rejections.WithLabelValues(code).Inc() }

// CountLimited counts a request that a limit rejected.
func (m *Metrics) CountLimited(limit string) {
	if limit != "" {
		m.limits.WithLabelValues(limit).Inc()
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// CountProblem counts a problem response of an operation.
func (m *Metrics) CountProblem(code string) { m.problems.WithLabelValues(code).Inc() }

// CountError counts an internal error, or an error of a dependency.
func (m *Metrics) CountError(component string) { m.errors.WithLabelValues(component).Inc() }

// CountEviction counts an idle connection that was closed for another one.
func (m *Metrics) CountEviction(client string) { m.evictions.WithLabelValues(client).Inc() }

// StreamOpened counts an open event stream until closed is called.
func (m *Metrics) StreamOpened() (closed func()) {
	m.streams.Inc()
	return m.streams.Dec
}

// Register adds collectors.
func (m *Metrics) Register(all ...prometheus.Collector) error {
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Handler serves the metrics in Prometheus' format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
