package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// overloadResult is what became of more than the server can do.
type overloadResult struct {
	Ground string `json:"database"`
	// Capacity is how many runs per second the server has started when nobody asked for more, Asked how many it was asked for.
	Capacity float64 `json:"capacity"`
	Asked    float64 `json:"asked"`
	// Good is how many requests were done, Refused how many the server had no room for (429 and 503), Failed how many ended otherwise.
	Good    int `json:"good"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	// Lasted is the time until the last one was done, Worst one of the failures.
	Lasted time.Duration `json:"lastedNs"`
	Worst  string        `json:"worst,omitempty"`
}

// goodput is which part of its capacity the server has got done.
func (r overloadResult) goodput() float64 {
	if r.Capacity == 0 || r.Lasted == 0 {
		return 0
	}
	return float64(r.Good) / r.Lasted.Seconds() / r.Capacity
}

// overloadBy is how many times as much is asked for as there is room for.
const overloadBy = 5

// mostUnderWay keeps this side from running out of connections. It is well above what the server takes at once, so whoever is
// left out here would have been refused there, and counts as that.
const mostUnderWay = 4000

// overload starts runs at a steady pace, whatever becomes of those before.
func (c *webClient) overload(ctx context.Context, ground string, capacity float64, lasts time.Duration) overloadResult {
	r := overloadResult{Ground: ground, Capacity: capacity, Asked: overloadBy * capacity}
	client := newTransport(mostUnderWay)
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	var underWay atomic.Int64
	begun := time.Now()
	count := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		r.count(err, time.Since(begun))
	}
	total := max(1, int(r.Asked*lasts.Seconds()))
	for n := range total {
		time.Sleep(time.Until(begun.Add(time.Duration(float64(n) / r.Asked * float64(time.Second)))))
		if underWay.Add(1) > mostUnderWay {
			underWay.Add(-1)
			count(&statusError{status: 429})
			continue
		}
		all.Go(func() {
			defer underWay.Add(-1)
			count(c.startWith(ctx, client, fmt.Sprintf("over-%d", n)))
		})
	}
	all.Wait()
	return r
}

// count notes what became of one request.
func (r *overloadResult) count(err error, at time.Duration) {
	said, isAnswer := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		r.Good++
		r.Lasted = max(r.Lasted, at)
	case isAnswer && said.refused():
		r.Refused++
	default:
		r.Failed++
		r.Worst = err.Error()
	}
}
