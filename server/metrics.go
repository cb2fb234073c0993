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
	"github.com/fermata-go/fermata/store"
)

// metrics are what operators watch. No label holds anything that a caller chose, or that tells accounts apart.
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

// What is counted exists from the beginning, as 0: an alert on something that was never there would be silent.
var (
	limitNames = []string{"body", "depth", "sending", "rate", "in_flight", "working", "streams", "open", "runs", "reading"}
	errorNames = []string{"panic", "authentication", "overview", "sessions", "operation"}
)

func newMetrics(working *fairScheduler, silent *idleConnLimiter) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fermata_http_request_seconds", Help: "How long requests took, by method, route and status. Streams count until they end.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route", "status"}),
		rejections: counter("fermata_http_refusals_total", "Requests that were not let in: unknown callers, missing roles, limits. By code.", "code"),
		problems:   counter("fermata_http_problems_total", "Problems that operations answered with, by code.", "code"),
		limits:     counter("fermata_http_limit_refusals_total", "Requests that a limit refused, by the name of the limit.", "limit", limitNames...),
		errors:     counter("fermata_errors_total", "Mistakes of ours, and of what we depend on, by where they were noticed.", "where", errorNames...),
		evictions:  counter("fermata_http_dismissed_total", "Connections on which nothing was asked that were closed to make room for others, by whose they were.", "who", "callers", "strangers"),
		streams:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fermata_http_streams", Help: "Open event streams."}),
	}
	for _, c := range Codes {
		m.rejections.WithLabelValues(c.Code)
		m.problems.WithLabelValues(c.Code)
	}
	m.registry.MustRegister(m.requests, m.rejections, m.problems, m.limits, m.errors, m.evictions, m.streams)
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_working", Help: "Requests that are worked on."}, func() float64 {
			taken, _ := working.load()
			return float64(taken)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_noisy_accounts", Help: "Accounts that send more than gets done; callers whom nobody knows are one."}, func() float64 {
			return float64(working.overloadedAccounts())
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_queued", Help: "Requests that wait for a moment because too many are worked on."}, func() float64 {
			_, queued := working.load()
			return float64(queued)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_silent_callers", Help: "Connections of callers between two requests."}, func() float64 {
			return float64(silent.size(true))
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fermata_http_silent_strangers", Help: "Connections on which nothing is asked, and was by nobody whom we know."}, func() float64 {
			return float64(silent.size(false))
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

// methodOf is the method of a request, or another word for one that a caller made up.
func methodOf(r *http.Request, other string) string {
	if !methods[r.Method] {
		return other
	}
	return r.Method
}

// methods are those that have a name in metrics and traces: a caller may send any word.
var methods = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodDelete: true, http.MethodPatch: true, http.MethodHead: true, http.MethodOptions: true}

func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	method := methodOf(r, "other")
	route := r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// refused counts somebody who was not let in.
func (m *metrics) countRejected(code string) { m.rejections.WithLabelValues(code).Inc() }

// limited counts what a limit refused.
func (m *metrics) countLimited(limit string) {
	if limit != "" {
		m.limits.WithLabelValues(limit).Inc()
	}
}

// executorCollector shows what an executor does, as it is at the moment of a look.
type executorCollector struct{ *executor.Executor }

// A metric of the executor: what it is called, and where it comes from.
var executorMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(executor.Stats) int64
}{
	{desc("fermata_executions_running", "Runs that this process executes now, each under a lease."), prometheus.GaugeValue, func(s executor.Stats) int64 { return s.Running }},
	{desc("fermata_executions_total", "Executions that this process began."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Executions }},
	{desc("fermata_takeovers_total", "Executions that this process took over from an owner that said nothing any more."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.TakenOver }},
	{desc("fermata_executions_unfinished_total", "Executions that could not be finished, and are tried again."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Unfinished }},
	{desc("fermata_executions_fenced_total", "Executions that somebody else took over from this process."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Fenced }},
	{desc("fermata_parked_total", "Runs that were parked until somebody looks at them."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Parked }},
	{desc("fermata_unreadable_total", "How often this process could not open a sealed value: a key is missing, or it was changed or is gone."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Unreadable }},
	{desc("fermata_key_file_unread", "1 while this process cannot read its key file again; it goes on with the keys that it knows."), prometheus.GaugeValue, func(s executor.Stats) int64 {
		if s.KeyReloadFailing {
			return 1
		}
		return 0
	}},
	{desc("fermata_notices_told_total", "Notices that this process told people."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.Delivered }},
	{desc("fermata_notices_failed_total", "Tries of this process to tell people something that failed; it is tried again."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.DeliveryFailed }},
	{desc("fermata_progress_missed_total", "Steps and tokens that followers of runs missed because they read too slowly."), prometheus.CounterValue, func(s executor.Stats) int64 { return s.DroppedProgress }},
}

var expiredDesc = desc("fermata_expired_total", "Questions that this process let expire, by reason: stale if nobody decided in time, other if the route says something else.", "reason")

var decisionDesc = desc("fermata_decision_seconds", "How long questions were open before they were decided, by verdict; each counts where it was applied.", "verdict")

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe is for the registry.
func (executorCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range executorMetrics {
		to <- m.desc
	}
	to <- decisionDesc
	to <- expiredDesc
}

// Collect is for the registry.
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

// PolicyStatus is what is wrong with the files of rules and groups as they are now. Actions are judged all the same.
type PolicyStatus struct {
	// Refused says that a file cannot be loaded: what was in force before stays in force.
	Rejected bool
	// Unsatisfiable says that rules in force ask what nobody in the groups can give any more.
	Unsatisfiable bool
}

var policyStatusDesc = desc("fermata_rules_trouble",
	"1 while there is that trouble with the files of rules and groups: refused if one cannot be loaded, and what was in force stays; unsatisfiable if rules ask what nobody can give.", "trouble")

// policyStatusCollector shows the trouble; nil is that there is none.
type policyStatusCollector func() PolicyStatus

// Describe is for the registry.
func (policyStatusCollector) Describe(to chan<- *prometheus.Desc) { to <- policyStatusDesc }

// Collect is for the registry.
func (look policyStatusCollector) Collect(to chan<- prometheus.Metric) {
	var now PolicyStatus
	if look != nil {
		now = look()
	}
	for name, there := range map[string]bool{"refused": now.Rejected, "unsatisfiable": now.Unsatisfiable} {
		value := 0.0
		if there {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(policyStatusDesc, prometheus.GaugeValue, value, name)
	}
}

// Metrics serves what operators watch, in Prometheus' format.
func (s *Server) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}
