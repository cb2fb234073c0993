package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// pacedShare is the constant rate of decisions, relative to the highest that the server reached:
// people do not wait for each other.
const pacedShare = 0.6

// maxP99 is the goal for a decision at that rate.
const maxP99 = 20 * time.Millisecond

// paced measures decisions over HTTP at a constant rate, regardless of earlier ones.
func (f *comparison) paced(ctx context.Context, name string, pace float64, duration time.Duration) error {
	c := f.targets[sideHTTP].(*callerPool)
	var all []time.Duration
	refused := 0
	for round := range f.plan.rounds {
		f.recorder.printf("round %d of %d: %s, %.0f decisions a second", round+1, f.plan.rounds, name, pace)
		if _, err := c.starts(ctx, 4, loadSpec{minRuns: max(1, int(pace*duration.Seconds()))}); err != nil {
			return err
		}
		keys := c.waiting
		c.waiting = nil
		latencies, no, err := decideAtPace(ctx, c, pace, keys)
		if err != nil {
			return err
		}
		all, refused = append(all, latencies...), refused+no
	}
	m := &scenarioMetrics{name: name}
	m.add("decisions", pace, unitRate)
	m.percentiles("latency", all).AtMost = float64(maxP99.Milliseconds())
	m.add("rejected", float64(refused), "")
	f.recorder.add(m)
	return nil
}

// decideAtPace decides runs at a rate per second, and counts rejections.
func decideAtPace(ctx context.Context, c interface {
	decide(ctx context.Context, key string) error
}, pace float64, keys []string) (latencies []time.Duration, refused int, err error) {
	var rejected atomic.Int64
	latencies, err = atPace(pace, len(keys), func(n int) error {
		err := c.decide(ctx, keys[n])
		if no, ok := errors.AsType[*statusError](err); ok && no.isRejection() {
			rejected.Add(1)
			return nil
		}
		return err
	})
	return latencies, int(rejected.Load()), err
}

// atPace calls a function count times at a rate per second, and returns the latency of each from
// the time when it was due.
func atPace(pace float64, count int, do func(n int) error) ([]time.Duration, error) {
	latencies, errs := make([]time.Duration, count), make([]error, count)
	var all sync.WaitGroup
	started := time.Now()
	for n := range count {
		due := started.Add(time.Duration(float64(n) / pace * float64(time.Second)))
		time.Sleep(time.Until(due))
		all.Go(func() {
			errs[n] = do(n)
			latencies[n] = time.Since(due)
		})
	}
	all.Wait()
	return latencies, errors.Join(errs...)
}
