package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// overloadRound is the result of an overload. The capacity is measured immediately before, in each
// round, because the machine's speed varies.
type overloadRound struct {
	// capacity is how many runs per second the server started when each caller waited for its
	// response.
	capacity float64
	// good and refused are the durations of completed and of rejected (429 and 503) requests, and
	// failed the number of other failures; worst is one of them.
	good, refused []time.Duration
	failed        int
	worst         error
	// lasted is the time until the last one was completed, recovered the time from the end of the
	// overload until a new request is completed.
	lasted, recovered time.Duration
	// cpu is the CPU time of a completed start for server, database and clients, including all
	// rejections; baselineCPU the one without overload.
	baselineCPU, cpu time.Duration
}

// goodput is the share of its capacity that the server completed.
func (r overloadRound) goodput() float64 {
	if r.capacity == 0 || r.lasted == 0 {
		return 0
	}
	return float64(len(r.good)) / r.lasted.Seconds() / r.capacity
}

const (
	// overloadFactor is the offered load relative to the capacity.
	overloadFactor = 5
	// maxInFlight keeps this side from running out of connections. It is well above the server's
	// limit, so a request that is not sent would have been rejected, and counts as rejected.
	maxInFlight = 4000
	// baselineCallers is the number of callers that measure the capacity.
	baselineCallers = 16
	// maxRecovery is how long a client tries to be served again.
	maxRecovery = 30 * time.Second
)

// The goals of an overload.
const (
	minGoodput      = 0.8
	maxRejectTime   = 50 * time.Millisecond
	maxRecoveryTime = 5 * time.Second
)

// overload alternates between the capacity and an overload.
func (f *comparison) overload(ctx context.Context, name string, lasts time.Duration) error {
	c := f.targets[sideHTTP].(*callerPool)
	client := c.runKeeper.(*webClient)
	var rounds []overloadRound
	for n := range f.plan.rounds {
		before, err := f.cpuOfAll(client)
		if err != nil {
			return err
		}
		baseline, err := c.starts(ctx, baselineCallers, loadSpec{duration: f.plan.stretch, minRuns: baselineCallers})
		if err != nil {
			return err
		}
		between, err := f.cpuOfAll(client)
		if err != nil {
			return err
		}
		f.recorder.printf("%s: %d times %.0f starts a second", name, overloadFactor, baseline.rate())
		r := client.overload(ctx, fmt.Sprintf("over-%d", n), baseline.rate(), lasts)
		after, err := f.cpuOfAll(client)
		if err != nil {
			return err
		}
		r.baselineCPU, r.cpu = (between-before)/time.Duration(len(baseline.latencies)), (after-between)/time.Duration(max(1, len(r.good)))
		rounds = append(rounds, r)
		if _, err := c.decides(ctx, baselineCallers); err != nil {
			return err
		}
	}
	m := &scenarioMetrics{name: name}
	m.overload(rounds, minGoodput)
	f.recorder.add(m)
	return nil
}

// overload adds the metrics of an overload. Rates are medians of the rounds, and the recovery is
// the longest of all.
func (s *scenarioMetrics) overload(rounds []overloadRound, minGoodput float64) {
	var sum overloadRound
	var capacity, goodput, baseline, cpu []float64
	for _, r := range rounds {
		sum.good, sum.refused, sum.failed = append(sum.good, r.good...), append(sum.refused, r.refused...), sum.failed+r.failed
		sum.recovered = max(sum.recovered, r.recovered)
		capacity, goodput = append(capacity, r.capacity), append(goodput, r.goodput())
		baseline, cpu = append(baseline, float64(r.baselineCPU)), append(cpu, float64(r.cpu))
	}
	s.add("capacity", median(capacity), unitRate)
	s.add("goodput of it", median(goodput), unitTimes).AtLeast = minGoodput
	s.add("done", float64(len(sum.good)), "")
	s.add("rejected", float64(len(sum.refused)), "")
	s.add("failed", float64(sum.failed), "").AtMost = none
	s.percentiles("done", sum.good)
	s.percentiles("rejection", sum.refused).AtMost = float64(maxRejectTime.Milliseconds())
	s.millis("served again", sum.recovered).AtMost = float64(maxRecoveryTime.Milliseconds())
	s.millis("CPU of a start at capacity", time.Duration(median(baseline)))
	s.millis("overloaded", time.Duration(median(cpu)))
}

// cpuOfAll returns the CPU time of this process, the server and the database so far.
func (f *comparison) cpuOfAll(client *webClient) (time.Duration, error) {
	database, err := f.database.cpuTime()
	if err != nil {
		return 0, err
	}
	server, err := readStat(client.child.cmd.Process.Pid)
	return cpuTime() + server.own + database, err
}

// overload starts runs at a constant rate, regardless of earlier ones.
func (c *webClient) overload(ctx context.Context, prefix string, capacity float64, duration time.Duration) overloadRound {
	r := overloadRound{capacity: capacity}
	defer c.http.closeIdle()
	var mu sync.Mutex
	var underWay atomic.Int64
	offered := overloadFactor * capacity
	total := max(1, int(offered*duration.Seconds()))
	started := time.Now()
	_, _ = atPace(offered, total, func(n int) error { // errors are counted
		from := time.Now()
		var err error = &statusError{status: 429}
		if underWay.Add(1) <= maxInFlight {
			err = c.start(ctx, fmt.Sprintf("%s-%d", prefix, n))
		}
		underWay.Add(-1)
		mu.Lock()
		defer mu.Unlock()
		r.count(err, time.Since(started), time.Since(from))
		return nil
	})
	r.recovered = c.recoveryTime(ctx, prefix, started.Add(time.Duration(float64(total)/offered*float64(time.Second))))
	return r
}

// recoveryTime starts a run, with as many retries as necessary, and returns how long after a time
// that was done.
func (c *webClient) recoveryTime(ctx context.Context, prefix string, since time.Time) time.Duration {
	for time.Since(since) < maxRecovery && c.start(ctx, prefix+"-back") != nil {
		time.Sleep(20 * time.Millisecond)
	}
	return max(0, time.Since(since))
}

// count counts the result of one request.
func (r *overloadRound) count(err error, at, took time.Duration) {
	response, isResponse := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		r.lasted = max(r.lasted, at)
		r.good = append(r.good, took)
	case isResponse && response.isRejection():
		r.refused = append(r.refused, took)
	default:
		r.failed++
		r.worst = err
	}
}
