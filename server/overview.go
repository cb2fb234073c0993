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
	overviewAge      = 15 * time.Second // how old what is shown of the store may be: many may look at it, and often
	overviewPatience = 5 * time.Second  // how long the store has for it
	otherKind        = "other"
)

// overview shows the whole store: what waits, and what became of the audit logs. Every replica shows the same.
type overview struct {
	look   func(context.Context) (executor.Overview, error)
	failed func(error)
	now    func() time.Time

	mu   sync.Mutex
	at   time.Time
	last *executor.Overview // nil: the store did not answer
}

var (
	waitsDesc    = desc("fermata_waiting", "Open questions of all accounts, by kind; 100000 at most. Kinds that this program does not know are other.", "kind")
	oldestDesc   = desc("fermata_waiting_oldest_seconds", "How long the oldest open question has waited, by kind; 0 if there is none.", "kind")
	dueDesc      = desc("fermata_notice_overdue_seconds", "For how long the notice is due that has waited longest for a process to tell it; 0 if there is none.")
	findingsDesc = desc("fermata_audit_findings", "Places where audit logs, runs and effects do not agree, by code and by how soon somebody should look (page, warn, info), as the last check found them.", "kind", "severity")
	unsoundDesc  = desc("fermata_audit_unsound", "Accounts whose audit log is not whole, or not what was signed before, by who found it: sign or check.", "by")
	failedDesc   = desc("fermata_audit_failed", "Accounts whose audit log could not be looked at the last time, by what was to be done: sign or check.", "by")
	passDesc     = desc("fermata_audit_last_timestamp_seconds", "When all accounts were signed or checked last; 0 if never.", "by")

	overviewDescs = []*prometheus.Desc{waitsDesc, oldestDesc, dueDesc, findingsDesc, unsoundDesc, failedDesc, passDesc}
)

// Describe is for the registry.
func (o *overview) Describe(to chan<- *prometheus.Desc) {
	for _, d := range overviewDescs {
		to <- d
	}
}

// Collect is for the registry. If the store does not answer there is nothing to show: an old value would be a lie.
func (o *overview) Collect(to chan<- prometheus.Metric) {
	seen := o.get()
	if seen == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counts, oldest := waitsByKind(seen)
	for kind, count := range counts {
		gauge(waitsDesc, float64(count), kind)
		gauge(oldestDesc, oldest[kind].Seconds(), kind)
	}
	overdue := time.Duration(0)
	if !seen.Due.IsZero() {
		overdue = max(0, seen.Now.Sub(seen.Due))
	}
	gauge(dueDesc, overdue.Seconds())
	for _, severity := range audit.Severities {
		for _, code := range audit.FindingCodes {
			gauge(findingsDesc, float64(seen.Checked.Findings[severity][code]), string(code), string(severity))
		}
	}
	for by, pass := range map[string]executor.Pass{"sign": seen.Signed, "check": seen.Checked} {
		gauge(unsoundDesc, float64(pass.Unsound), by)
		gauge(failedDesc, float64(pass.Failed), by)
		at := 0.0
		if !pass.At.IsZero() {
			at = float64(pass.At.UnixMilli()) / 1000
		}
		gauge(passDesc, at, by)
	}
}

// waitsByKind counts open questions by the kinds that this program has: others are words of whoever asks.
func waitsByKind(seen *executor.Overview) (counts map[string]int64, oldest map[string]time.Duration) {
	counts, oldest = map[string]int64{otherKind: 0}, make(map[string]time.Duration)
	for _, kind := range fermata.Kinds() {
		counts[kind.Name()] = 0
	}
	for _, wait := range seen.Waits {
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
func (o *overview) get() *executor.Overview {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.now(); o.at.IsZero() || now.Sub(o.at) >= overviewAge {
		ctx, cancel := context.WithTimeout(context.Background(), overviewPatience)
		defer cancel()
		seen, err := o.look(ctx)
		if o.at, o.last = now, &seen; err != nil {
			o.last = nil
			o.failed(err)
		}
	}
	return o.last
}
