package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// Executor exports the counters of an executor at scrape time.
type Executor struct{ *executor.Executor }

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

// Describe implements prometheus.Collector.
func (Executor) Describe(to chan<- *prometheus.Desc) {
	for _, m := range executorMetrics {
		to <- m.desc
	}
	to <- decisionDesc
	to <- expiredDesc
}

// Collect implements prometheus.Collector.
func (w Executor) Collect(to chan<- prometheus.Metric) {
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
