package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The scenarios http/…/noisy measure the latencies of a quiet tenant's decisions at a slow and
// constant rate: alone, and while another tenant overloads the server with several keys. The two
// alternate, because the machine's speed varies.
const (
	// noisyPace is slow enough that the quiet tenant does not delay itself.
	noisyPace = 25
	// noisyKeys is how many keys the noisy tenant has.
	noisyKeys = 4
	// noisyLead sets how much earlier the noisy tenant starts: an eighth of the time.
	noisyLead = 8
)

// The goals: a noisy tenant does not slow down a quiet one, and is not locked out completely.
const (
	maxSlowdown = 1.2
	minNoise    = 0.5
)

// noisy alternates between the quiet tenant alone and with the noisy one.
func (f *comparison) noisy(ctx context.Context, name string, duration time.Duration) error {
	c := f.targets[sideHTTP].(*callerPool)
	client := c.runKeeper.(*webClient)
	quiet, err := client.tenant("quiet", 1)
	if err != nil {
		return err
	}
	defer quiet[0].http.closeIdle()
	var alone, beside []time.Duration
	var rounds []overloadRound
	refused := 0
	for round := range f.plan.rounds {
		baseline, err := c.starts(ctx, baselineCallers, loadSpec{duration: f.plan.stretch, minRuns: baselineCallers})
		if err != nil {
			return err
		}
		if _, err := c.decides(ctx, baselineCallers); err != nil {
			return err
		}
		f.recorder.printf("round %d of %d: %s, %d times %.0f starts a second", round+1, f.plan.rounds, name, overloadFactor, baseline.rate())
		keys, err := quiet[0].prepare(ctx, fmt.Sprintf("quiet-%d", round), 2*max(1, int(noisyPace*duration.Seconds())))
		if err != nil {
			return err
		}
		took, no, err := decideAtPace(ctx, quiet[0], noisyPace, keys[:len(keys)/2])
		if err != nil {
			return fmt.Errorf("alone: %w", err)
		}
		alone, refused = append(alone, took...), refused+no
		loud, err := client.tenant(fmt.Sprintf("noisy-%d", round), noisyKeys)
		if err != nil {
			return err
		}
		lead := duration / noisyLead
		noise := make(chan overloadRound, 1)
		go func() { noise <- loud.overload(ctx, baseline.rate(), lead+duration) }()
		time.Sleep(lead)
		took, no, err = decideAtPace(ctx, quiet[0], noisyPace, keys[len(keys)/2:])
		rounds = append(rounds, <-noise)
		if err != nil {
			return fmt.Errorf("with noise: %w", err)
		}
		beside, refused = append(beside, took...), refused+no
	}
	m := &scenarioMetrics{name: name}
	p99 := m.percentiles("alone", alone).Value
	with := m.percentiles("with noise", beside).Value
	m.add("slowdown of p99", with/p99, unitTimes).AtMost = maxSlowdown
	m.add("rejected for the quiet tenant", float64(refused), "").AtMost = none
	m.overload(rounds, minNoise)
	f.recorder.add(m)
	return nil
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
	rounds := make([]overloadRound, len(t))
	var all sync.WaitGroup
	for n, c := range t {
		all.Go(func() { rounds[n] = c.overload(ctx, fmt.Sprintf("key-%d", n), capacity/float64(len(t)), duration) })
	}
	all.Wait()
	for _, r := range rounds {
		sum.capacity, sum.lasted, sum.recovered = sum.capacity+r.capacity, max(sum.lasted, r.lasted), max(sum.recovered, r.recovered)
		sum.good, sum.refused, sum.failed = append(sum.good, r.good...), append(sum.refused, r.refused...), sum.failed+r.failed
	}
	return sum
}

// prepare starts runs to be decided later.
func (c *webClient) prepare(ctx context.Context, prefix string, count int) (keys []string, err error) {
	for n := range count {
		key := fmt.Sprintf("%s-%d", prefix, n)
		if err := c.start(ctx, key); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
