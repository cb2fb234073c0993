package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The scenarios hold/… start runs that wait for a person, and decide them: what a server does all day. Each side keeps its runs in a database
// of its own, on the same server or disk:
//
//	ours       the executor with the in-process provider
//	bare       the transactions of the same operations in plain SQL: nobody who keeps as much can be faster
//	langgraph  LangGraph JS with its saver, in a Node process

// operation is what is measured.
type operation string

const (
	opStart  operation = "start"  // from the call until the run waits
	opDecide operation = "decide" // from a person's word until the run is over
)

// loadSpec is how long callers start runs: so long, and at least so many.
type loadSpec struct {
	duration time.Duration
	minRuns  int
}

// measuredLoad is what callers got done together.
type measuredLoad struct {
	wall, cpu time.Duration
	server    time.Duration // CPU of the database server
	latencies []time.Duration
}

// loadTarget is one side, with a database of its own.
type loadTarget interface {
	// starts lets callers start runs, each one after the other. In the end all of them wait.
	starts(ctx context.Context, callers int, how loadSpec) (measuredLoad, error)
	// decideStep lets callers decide everything that waits. In the end all of it is over.
	decides(ctx context.Context, callers int) (measuredLoad, error)
	close() error
}

// runKeeper is a side that is in this process. Its methods may be called at once, and fail unless the result is right.
type runKeeper interface {
	start(ctx context.Context, key string) error
	decide(ctx context.Context, key string) error
	close() error
}

// callerPool makes a holder of a keeper.
type callerPool struct {
	runKeeper
	runs atomic.Int64

	mu      sync.Mutex
	waiting []string
}

func (c *callerPool) starts(ctx context.Context, callers int, how loadSpec) (measuredLoad, error) {
	until := time.Now().Add(how.duration)
	var begun atomic.Int64
	return runCallers(callers, func() func() error {
		if begun.Add(1) > int64(how.minRuns) && !time.Now().Before(until) {
			return nil
		}
		key := fmt.Sprintf("key-%d", c.runs.Add(1))
		return func() error {
			if err := c.start(ctx, key); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waiting = append(c.waiting, key)
			return nil
		}
	})
}

func (c *callerPool) decides(ctx context.Context, callers int) (measuredLoad, error) {
	keys := c.waiting
	c.waiting = nil
	var taken atomic.Int64
	return runCallers(callers, func() func() error {
		i := taken.Add(1) - 1
		if i >= int64(len(keys)) {
			return nil
		}
		return func() error {
			if err := c.decide(ctx, keys[i]); err != nil {
				return fmt.Errorf("%s: %w", keys[i], err)
			}
			return nil
		}
	})
}

// runCallers lets callers work until each finds nothing more to do, or one fails. The garbage of whoever worked before is gone when it begins.
func runCallers(callers int, next func() func() error) (measuredLoad, error) {
	runtime.GC()
	latencies := make([][]time.Duration, callers)
	errs := make(chan error, callers)
	var failed atomic.Bool
	var all sync.WaitGroup
	cpu, begun := cpuTime(), time.Now()
	for i := range callers {
		all.Go(func() {
			for do := next(); do != nil && !failed.Load(); do = next() {
				from := time.Now()
				if err := do(); err != nil {
					failed.Store(true)
					errs <- err
					return
				}
				latencies[i] = append(latencies[i], time.Since(from))
			}
		})
	}
	all.Wait()
	done := measuredLoad{wall: time.Since(begun), cpu: cpuTime() - cpu, latencies: slices.Concat(latencies...)}
	select {
	case err := <-errs:
		return measuredLoad{}, err
	default:
		return done, nil
	}
}
