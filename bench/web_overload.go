package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// overloadResult is the result of an overload. The capacity is measured immediately before, in each
// round, because the machine's speed varies.
type overloadResult struct {
	Database string          `json:"database"`
	Rounds   []overloadRound `json:"turns"`
	// GoodP50 is the median duration of completed requests, RefusedP99 the time until a rejection,
	// in nanoseconds.
	GoodP50    float64 `json:"goodP50Ns"`
	RefusedP99 float64 `json:"refusedP99Ns"`
}

// overloadRound is one round.
type overloadRound struct {
	// Capacity is how many runs per second the server started when each caller waited for its
	// response, Offered the rate during the overload.
	Capacity float64 `json:"capacity"`
	Offered  float64 `json:"asked"`
	// Good is how many requests were completed, Refused how many were rejected (429 and 503),
	// Failed how many failed otherwise.
	Good    int `json:"good"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	// Lasted is the time until the last one ended, Worst one of the failures.
	Lasted time.Duration `json:"lastedNs"`
	Worst  string        `json:"worst,omitempty"`
	// Recovered is the time from the end of the overload until a new request is completed.
	Recovered time.Duration `json:"backNs"`
	// BaselineCPU is the CPU time of a start for server, database and clients without overload; CPU
	// the one during overload, including all rejections.
	BaselineCPU time.Duration `json:"calmCpuNs"`
	CPU         time.Duration `json:"cpuNs"`

	good, refused []time.Duration
}

// goodput is the share of its capacity that the server completed.
func (r overloadRound) goodput() float64 {
	if r.Capacity == 0 || r.Lasted == 0 {
		return 0
	}
	return float64(r.Good) / r.Lasted.Seconds() / r.Capacity
}

// goodput is the median of the rounds.
func (r overloadResult) goodput() float64 {
	var all []float64
	for _, t := range r.Rounds {
		all = append(all, t.goodput())
	}
	return median(all)
}

// sum adds up the rounds; rates are medians.
func (r overloadResult) sum() (sum overloadRound) {
	var capacity, asked, baseline, cpu []float64
	for _, t := range r.Rounds {
		sum.Good, sum.Refused, sum.Failed = sum.Good+t.Good, sum.Refused+t.Refused, sum.Failed+t.Failed
		sum.Lasted, sum.Worst = sum.Lasted+t.Lasted, t.Worst
		capacity, asked = append(capacity, t.Capacity), append(asked, t.Offered)
		baseline, cpu = append(baseline, float64(t.BaselineCPU)), append(cpu, float64(t.CPU))
	}
	sum.Capacity, sum.Offered = median(capacity), median(asked)
	sum.BaselineCPU, sum.CPU = time.Duration(median(baseline)), time.Duration(median(cpu))
	return sum
}

const (
	// overloadFactor is the offered load relative to the capacity.
	overloadFactor = 5
	// maxInFlight keeps this side from running out of connections. It is well above the server's
	// limit, so a request that is not sent would have been rejected, and counts as rejected.
	maxInFlight = 4000
	// baselineCallers is the number of callers that measure the capacity.
	baselineCallers = 16
)

// overload alternates between the capacity and an overload.
func (f *comparison) overload(ctx context.Context, turns int, lasts time.Duration) (r overloadResult, err error) {
	c := f.targets[sideHTTP].(*callerPool)
	client := c.runKeeper.(*webClient)
	r = overloadResult{Database: f.database.name()}
	var good, refused []time.Duration
	for round := range turns {
		before, err := f.cpuOfAll(client)
		if err != nil {
			return r, err
		}
		baseline, err := c.starts(ctx, baselineCallers, loadSpec{duration: f.plan.stretch, minRuns: baselineCallers})
		if err != nil {
			return r, err
		}
		between, err := f.cpuOfAll(client)
		if err != nil {
			return r, err
		}
		capacity := float64(len(baseline.latencies)) / baseline.wall.Seconds()
		fmt.Fprintf(f.progress, "http/%s: %d times %.0f starts a second\n", r.Database, overloadFactor, capacity)
		t := client.overload(ctx, fmt.Sprintf("over-%d", round), capacity, lasts)
		after, err := f.cpuOfAll(client)
		if err != nil {
			return r, err
		}
		t.BaselineCPU, t.CPU = (between-before)/time.Duration(len(baseline.latencies)), (after-between)/time.Duration(max(1, t.Good))
		r.Rounds, good, refused = append(r.Rounds, t), append(good, t.good...), append(refused, t.refused...)
		if _, err := c.decides(ctx, baselineCallers); err != nil {
			return r, err
		}
	}
	slices.Sort(good)
	slices.Sort(refused)
	r.GoodP50, r.RefusedP99 = float64(percentile(good, 50)), float64(percentile(refused, 99))
	return r, nil
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
	r := overloadRound{Capacity: capacity, Offered: overloadFactor * capacity}
	defer c.http.closeIdle()
	var mu sync.Mutex
	var underWay atomic.Int64
	started := time.Now()
	count := func(err error, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		r.count(err, time.Since(started), took)
	}
	total := max(1, int(r.Offered*duration.Seconds()))
	_, _ = atPace(r.Offered, total, func(n int) error { // errors are counted
		from := time.Now()
		var err error = &statusError{status: 429}
		if underWay.Add(1) <= maxInFlight {
			err = c.start(ctx, fmt.Sprintf("%s-%d", prefix, n))
		}
		underWay.Add(-1)
		count(err, time.Since(from))
		return nil
	})
	r.Recovered = c.recoveryTime(ctx, prefix, started.Add(time.Duration(float64(total)/r.Offered*float64(time.Second))))
	return r
}

// maxRecovery is how long a client tries to be served again.
const maxRecovery = 30 * time.Second

// recoveryTime starts a run, with as many retries as necessary, and returns how long after a time
// that was done.
func (c *webClient) recoveryTime(ctx context.Context, prefix string, since time.Time) time.Duration {
	for time.Since(since) < maxRecovery && c.start(ctx, prefix+"-back") != nil {
		time.Sleep(20 * time.Millisecond)
	}
	return max(0, time.Since(since))
}

// recoveryTime returns the longest of the rounds.
func (r overloadResult) recoveryTime() (longest time.Duration) {
	for _, t := range r.Rounds {
		longest = max(longest, t.Recovered)
	}
	return longest
}

// count counts the result of one request.
func (r *overloadRound) count(err error, at, took time.Duration) {
	said, isAnswer := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		r.Good++
		r.Lasted = max(r.Lasted, at)
		r.good = append(r.good, took)
	case isAnswer && said.isRejection():
		r.Refused++
		r.refused = append(r.refused, took)
	default:
		r.Failed++
		r.Worst = err.Error()
	}
}
