package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// noisyResult has the latencies of a quiet tenant's decisions at a slow, constant rate: alone, and
// while another tenant overloads the server with several keys. The two alternate, because the
// machine's speed varies.
type noisyResult struct {
	Database string `json:"database"`
	// Pace is the quiet tenant's decisions per second, Ops the number of decisions on each side.
	Pace float64 `json:"pace"`
	Ops  int     `json:"ops"`
	// Alone and WithNoise have the latencies, from the time when a decision was due.
	Alone     pacedSide `json:"alone"`
	WithNoise pacedSide `json:"beside"`
	// Refused is how many decisions of the quiet tenant were rejected.
	Refused int `json:"refused"`
	// Noise is the result of the noisy tenant's requests.
	Noise overloadResult `json:"noise"`
}

const (
	// noisyPace is slow enough that the quiet tenant does not delay itself.
	noisyPace = 25
	// noisyKeys is how many keys the noisy tenant has.
	noisyKeys = 4
	// noisyLead sets how much earlier the noisy tenant starts: an eighth of the time.
	noisyLead = 8
)

func noisyName(database string) string { return "http/" + database + "/noisy" }

// ratio is the slowdown of the quiet tenant by the noisy one.
func (r noisyResult) ratio() (p99 float64, known bool) {
	if r.Alone.P99 == 0 {
		return 0, false
	}
	return r.WithNoise.P99 / r.Alone.P99, true
}

// noisy alternates between the quiet tenant alone and with the noisy one.
func (f *comparison) noisy(ctx context.Context, duration time.Duration) (r noisyResult, err error) {
	c := f.targets[sideHTTP].(*callerPool)
	client := c.runKeeper.(*webClient)
	r = noisyResult{Database: f.database.name(), Pace: noisyPace, Noise: overloadResult{Database: f.database.name()}}
	quiet, err := client.tenant("quiet", 1)
	if err != nil {
		return r, err
	}
	defer quiet[0].http.closeIdle()
	var alone, beside, refused []time.Duration
	for round := range f.plan.rounds {
		capacity, err := c.capacity(ctx, f.plan.stretch)
		if err != nil {
			return r, err
		}
		fmt.Fprintf(f.progress, "round %d of %d: %s, %d times %.0f starts a second\n", round+1, f.plan.rounds, noisyName(r.Database), overloadFactor, capacity)
		day := &quietTenant{webClient: quiet[0], count: max(1, int(noisyPace*duration.Seconds()))}
		if err := day.prepare(ctx, round); err != nil {
			return r, err
		}
		took, err := day.decide(ctx)
		if err != nil {
			return r, fmt.Errorf("alone: %w", err)
		}
		alone = append(alone, took...)
		crew, err := client.tenant(fmt.Sprintf("noisy-%d", round), noisyKeys)
		if err != nil {
			return r, err
		}
		took, noise, err := day.decideDuringNoise(ctx, crew, capacity, duration)
		if err != nil {
			return r, fmt.Errorf("with noise: %w", err)
		}
		beside, refused = append(beside, took...), append(refused, noise.refused...)
		r.Refused, r.Noise.Rounds = r.Refused+day.refused, append(r.Noise.Rounds, noise)
	}
	slices.Sort(refused)
	r.Ops, r.Alone, r.WithNoise, r.Noise.RefusedP99 = len(beside), sideOf(alone), sideOf(beside), float64(percentile(refused, 99))
	return r, nil
}

func sideOf(latencies []time.Duration) pacedSide {
	slices.Sort(latencies)
	return pacedSide{P50: float64(percentile(latencies, 50)), P99: float64(percentile(latencies, 99))}
}

// capacity is how many runs per second the server starts when each caller waits for its response.
func (c *callerPool) capacity(ctx context.Context, lasts time.Duration) (float64, error) {
	baseline, err := c.starts(ctx, baselineCallers, loadSpec{duration: lasts, minRuns: baselineCallers})
	if err == nil {
		_, err = c.decides(ctx, baselineCallers)
	}
	return float64(len(baseline.latencies)) / baseline.wall.Seconds(), err
}

// tenant has a client for each of several keys of an account.
type tenant []*webClient

// tenant creates keys for an account.
func (c *webClient) tenant(account string, keys int) (t tenant, err error) {
	reply, err := c.child.ask(childOrder{Account: account, Keys: keys})
	if err != nil {
		return nil, err
	}
	for _, key := range reply.Keys {
		w, err := newRawHTTPClient(c.url, chatPath, key)
		if err != nil {
			return nil, err
		}
		t = append(t, &webClient{url: c.url, key: key, text: c.text, http: w})
	}
	return t, nil
}

// overload overloads the server with all keys at the same time.
func (t tenant) overload(ctx context.Context, capacity float64, duration time.Duration) (sum overloadRound) {
	turns := make([]overloadRound, len(t))
	var all sync.WaitGroup
	for n, c := range t {
		all.Go(func() { turns[n] = c.overload(ctx, fmt.Sprintf("key-%d", n), capacity/float64(len(t)), duration) })
	}
	all.Wait()
	for _, one := range turns {
		sum.Capacity, sum.Offered, sum.Lasted = sum.Capacity+one.Capacity, sum.Offered+one.Offered, max(sum.Lasted, one.Lasted)
		sum.Good, sum.Refused, sum.Failed = sum.Good+one.Good, sum.Refused+one.Refused, sum.Failed+one.Failed
		sum.good, sum.refused = append(sum.good, one.good...), append(sum.refused, one.refused...)
		if one.Worst != "" {
			sum.Worst = one.Worst
		}
	}
	return sum
}

// quietTenant makes as many decisions alone as during the noise.
type quietTenant struct {
	*webClient
	count   int
	keys    []string
	refused int
}

// prepare starts the runs to be decided later.
func (q *quietTenant) prepare(ctx context.Context, round int) error {
	for n := range 2 * q.count {
		key := fmt.Sprintf("quiet-%d-%d", round, n)
		if err := q.start(ctx, key); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		q.keys = append(q.keys, key)
	}
	return nil
}

// decide decides half of them at the pace, and counts rejections.
func (q *quietTenant) decide(ctx context.Context) ([]time.Duration, error) {
	keys := q.keys[:q.count]
	q.keys = q.keys[q.count:]
	var mu sync.Mutex
	return atPace(noisyPace, len(keys), func(n int) error {
		err := q.webClient.decide(ctx, keys[n])
		if said, ok := errors.AsType[*statusError](err); ok && said.isRejection() {
			mu.Lock()
			defer mu.Unlock()
			q.refused++
			return nil
		}
		return err
	})
}

// decideDuringNoise decides the other half while the noisy tenant, which has started before,
// overloads the server.
func (q *quietTenant) decideDuringNoise(ctx context.Context, crew tenant, capacity float64, duration time.Duration) ([]time.Duration, overloadRound, error) {
	lead := duration / noisyLead
	noise := make(chan overloadRound, 1)
	go func() { noise <- crew.overload(ctx, capacity, lead+duration) }()
	time.Sleep(lead)
	took, err := q.decide(ctx)
	return took, <-noise, err
}

// noisyMarkdown writes the rows of the quiet tenant.
func (w webReport) noisyMarkdown(out io.Writer) {
	if len(w.Noisy) == 0 {
		return
	}
	fmt.Fprint(out, "\n| noisy tenant | quiet tenant | alone, p50 / p99 | with noise | p99 with noise / alone | rejected for the quiet one | offered by the noisy one | share of the capacity it got | p99 of a rejection |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range w.Noisy {
		sum := r.Noise.sum()
		ratio, known := r.ratio()
		fmt.Fprintf(out, "| `%s` | %.0f/s | %s | %s | %s | %d of %d | %.0f/s | %s | %s ms |\n", noisyName(r.Database), r.Pace, r.Alone, r.WithNoise, times(ratio, known),
			r.Refused, r.Ops, sum.Offered, percent(r.Noise.goodput(), sum.Capacity > 0), millis(r.Noise.RefusedP99))
	}
}

func times(ratio float64, known bool) string {
	if !known {
		return noValue
	}
	return fmt.Sprintf("× %.2f", ratio)
}
