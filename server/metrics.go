package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what operators watch. No label holds anything that a caller chose.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	streams  prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fermata_http_request_seconds", Help: "How long requests took.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fermata_http_refusals_total", Help: "Requests that were refused, by code."}, []string{"code"}),
		streams:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "fermata_http_streams", Help: "Open event streams."}),
	}
	m.registry.MustRegister(m.requests, m.refusals, m.streams)
	return m
}

func (m *metrics) served(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) refused(code string) { m.refusals.WithLabelValues(code).Inc() }

// Metrics serves what operators watch, in Prometheus' format.
func (s *Server) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}
