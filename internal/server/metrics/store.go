package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor"
)

const (
	storeMetricsTTL     = 15 * time.Second // how long a result is reused: scrapes may be frequent
	storeMetricsTimeout = 5 * time.Second  // timeout of the store query
	otherKind           = "other"
)

// Store exports store-wide metrics: open requests and audit log checks. All replicas
// export the same values.
type Store struct {
	read    func(context.Context) (executor.Overview, error)
	onError func(error)
	now     func() time.Time

	mu     sync.Mutex
	readAt time.Time
	last   *executor.Overview // nil: the store did not answer
}

// NewStore returns a collector. onError is called when the store cannot be read.
func NewStore(read func(context.Context) (executor.Overview, error), onError func(error)) *Store {
	return &Store{read: read, onError: onError, now: time.Now}
}

var (
	openRequestsDesc  = desc("fermata_requests_open", "Open requests of all accounts by kind, at most 100000. Kinds that this program does not know count as other.", "kind")
	oldestRequestDesc = desc("fermata_request_oldest_seconds", "Age of the oldest open request by kind; 0 if there is none.", "kind")
	noticeOverdueDesc = desc("fermata_notice_overdue_seconds", "How long the oldest undelivered notice is overdue; 0 if there is none.")
	findingsDesc      = desc("fermata_audit_findings", "Reconciliation findings between audit logs, runs and effects of the last check, by code and severity (page, warn, info).", "kind", "severity")
	auditInvalidDesc  = desc("fermata_audit_invalid", "Accounts whose audit log is broken or contradicts a signed checkpoint, by the job that found it: sign or check.", "by")
	auditFailedDesc   = desc("fermata_audit_check_failed", "Accounts whose audit log could not be processed in the last pass, by job: sign or check.", "by")
	auditLastDesc     = desc("fermata_audit_check_timestamp_seconds", "When the last pass over all accounts finished, by job; 0 if never.", "by")

	storeDescs = []*prometheus.Desc{openRequestsDesc, oldestRequestDesc, noticeOverdueDesc, findingsDesc, auditInvalidDesc, auditFailedDesc, auditLastDesc}
)

// Describe implements prometheus.Collector.
func (o *Store) Describe(to chan<- *prometheus.Desc) {
	for _, d := range storeDescs {
		to <- d
	}
}

// Collect implements prometheus.Collector. If the store does not answer, it exports nothing instead
// of an old value.
func (o *Store) Collect(to chan<- prometheus.Metric) {
	seen := o.get()
	if seen == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counts, oldest := openByKind(seen)
	for kind, count := range counts {
		gauge(openRequestsDesc, float64(count), kind)
		gauge(oldestRequestDesc, oldest[kind].Seconds(), kind)
	}
	overdue := time.Duration(0)
	if !seen.OldestDueNotice.IsZero() {
		overdue = max(0, seen.Now.Sub(seen.OldestDueNotice))
	}
	gauge(noticeOverdueDesc, overdue.Seconds())
	for _, severity := range reconcile.Severities {
		for _, code := range reconcile.FindingCodes {
			gauge(findingsDesc, float64(seen.LastCheck.Findings[severity][code]), string(code), string(severity))
		}
	}
	for by, pass := range map[string]executor.JobResult{"sign": seen.LastSigning, "check": seen.LastCheck} {
		gauge(auditInvalidDesc, float64(pass.Invalid), by)
		gauge(auditFailedDesc, float64(pass.Failed), by)
		at := 0.0
		if !pass.FinishedAt.IsZero() {
			at = float64(pass.FinishedAt.UnixMilli()) / 1000
		}
		gauge(auditLastDesc, at, by)
	}
}

// openByKind counts open requests by the kinds that this program registers; other kinds are names
// that clients chose.
func openByKind(seen *executor.Overview) (counts map[string]int64, oldest map[string]time.Duration) {
	counts, oldest = map[string]int64{otherKind: 0}, make(map[string]time.Duration)
	for _, kind := range fermata.Kinds() {
		counts[kind.Name()] = 0
	}
	for _, wait := range seen.OpenRequests {
		kind := wait.Kind
		if _, known := counts[kind]; !known {
			kind = otherKind
		}
		counts[kind] += wait.Count
		oldest[kind] = max(oldest[kind], seen.Now.Sub(wait.Oldest))
	}
	return counts, oldest
}

// get reads the store, or returns a recent result.
func (o *Store) get() *executor.Overview {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.now(); o.readAt.IsZero() || now.Sub(o.readAt) >= storeMetricsTTL {
		ctx, cancel := context.WithTimeout(context.Background(), storeMetricsTimeout)
		defer cancel()
		seen, err := o.read(ctx)
		if o.readAt, o.last = now, &seen; err != nil {
			o.last = nil
			o.onError(err)
		}
	}
	return o.last
}
