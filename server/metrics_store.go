package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/executor"
)

const (
	storeMetricsTTL     = 15 * time.Second // how old what is shown of the store may be: many may look at it, and often
	storeMetricsTimeout = 5 * time.Second  // how long the store has for it
	otherKind           = "other"
)

// storeCollector shows the whole store: what waits, and what became of the audit logs. Every replica shows the same.
type storeCollector struct {
	read    func(context.Context) (executor.Overview, error)
	onError func(error)
	now     func() time.Time

	mu     sync.Mutex
	readAt time.Time
	last   *executor.Overview // nil: the store did not answer
}

var (
	openRequestsDesc  = desc("fermata_waiting", "Open questions of all accounts, by kind; 100000 at most. Kinds that this program does not know are other.", "kind")
	oldestRequestDesc = desc("fermata_waiting_oldest_seconds", "How long the oldest open question has waited, by kind; 0 if there is none.", "kind")
	noticeOverdueDesc = desc("fermata_notice_overdue_seconds", "For how long the notice is due that has waited longest for a process to tell it; 0 if there is none.")
	findingsDesc      = desc("fermata_audit_findings", "Places where audit logs, runs and effects do not agree, by code and by how soon somebody should look (page, warn, info), as the last check found them.", "kind", "severity")
	auditInvalidDesc  = desc("fermata_audit_unsound", "Accounts whose audit log is not whole, or not what was signed before, by who found it: sign or check.", "by")
	auditFailedDesc   = desc("fermata_audit_failed", "Accounts whose audit log could not be looked at the last time, by what was to be done: sign or check.", "by")
	auditLastDesc     = desc("fermata_audit_last_timestamp_seconds", "When all accounts were signed or checked last; 0 if never.", "by")

	storeDescs = []*prometheus.Desc{openRequestsDesc, oldestRequestDesc, noticeOverdueDesc, findingsDesc, auditInvalidDesc, auditFailedDesc, auditLastDesc}
)

// Describe is for the registry.
func (o *storeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range storeDescs {
		to <- d
	}
}

// Collect is for the registry. If the store does not answer there is nothing to show: an old value would be a lie.
func (o *storeCollector) Collect(to chan<- prometheus.Metric) {
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
	for _, severity := range audit.Severities {
		for _, code := range audit.FindingCodes {
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

// openByKind counts open questions by the kinds that this program has: others are words of whoever asks.
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

// get looks at the store, or remembers what it saw a moment ago.
func (o *storeCollector) get() *executor.Overview {
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
