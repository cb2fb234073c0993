package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// Scrapes may be frequent: the store is read at intervals. If it does not answer, nothing is
// exported.
func TestStoreCollector_CachesStoreReads(t *testing.T) {
	now := time.Unix(1000, 0)
	var looks, failures int
	var broken error
	o := &Store{now: func() time.Time { return now }, onError: func(error) { failures++ }, read: func(context.Context) (executor.Overview, error) {
		looks++
		return executor.Overview{Now: now, OpenRequests: []store.PendingCount{{Kind: "unheard-of", Count: 3, Oldest: now.Add(-time.Minute)}}}, broken
	}}
	shown := func() int {
		to := make(chan prometheus.Metric, 1000)
		o.Collect(to)
		return len(to)
	}
	if first, second := shown(), shown(); looks != 1 || first == 0 || first != second {
		t.Errorf("%d reads, %d and %d metrics", looks, first, second)
	}
	now, broken = now.Add(storeMetricsTTL), errors.New("the store is gone")
	if shown() != 0 || looks != 2 || failures != 1 {
		t.Errorf("%d looks, %d failures", looks, failures)
	}
	if shown(); looks != 2 { // a failing store is not queried more often, either
		t.Errorf("%d looks", looks)
	}
	now, broken = now.Add(storeMetricsTTL), nil
	if shown() == 0 {
		t.Error("it is not exported again")
	}
}
