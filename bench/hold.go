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

// The scenarios hold/… start runs that wait for a person, and decide them: the main work of a
// server. Each side has its own database, on the same server or disk:
//
//	executor   the executor with the in-process provider
//	langgraph  LangGraph JS with its PostgreSQL saver, in a Node process

// operation is a measured operation.
type operation string

const (
	opStart  operation = "start"  // from the call until the run waits
	opDecide operation = "decide" // from the decision until the run has ended
)

// loadSpec is how long callers start runs: at least this duration, and this many.
type loadSpec struct {
	duration time.Duration
	minRuns  int
}

// measuredLoad is what callers completed together.
type measuredLoad struct {
	wall, cpu time.Duration
	server    time.Duration // CPU of the database server
	latencies []time.Duration
}

// loadTarget is one side, with its own database.
type loadTarget interface {
	// starts lets callers start runs sequentially. At the end all of them wait.
	starts(ctx context.Context, callers int, how loadSpec) (measuredLoad, error)
	// decides lets callers decide all waiting runs. At the end all have ended.
	decides(ctx context.Context, callers int) (measuredLoad, error)
	close() error
}

// runKeeper is a side in this process. Its methods are safe for concurrent use, and fail unless the
// result is correct.
type runKeeper interface {
	start(ctx context.Context, key string) error
	decide(ctx context.Context, key string) error
	close() error
}

// callerPool makes a loadTarget of a runKeeper.
type callerPool struct {
	runKeeper
	runs atomic.Int64

	mu      sync.Mutex
	waiting []string
}

func (c *callerPool) starts(ctx context.Context, callers int, spec loadSpec) (measuredLoad, error) {
	until := time.Now().Add(spec.duration)
	var begun atomic.Int64
	return runCallers(callers, func() func() error {
		if begun.Add(1) > int64(spec.minRuns) && !time.Now().Before(until) {
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

// runCallers lets callers work until each has nothing more to do, or one fails. It collects garbage
// first.
func runCallers(callers int, next func() func() error) (measuredLoad, error) {
	runtime.GC()
	latencies := make([][]time.Duration, callers)
	errs := make(chan error, callers)
	var failed atomic.Bool
	var all sync.WaitGroup
	cpu, started := cpuTime(), time.Now()
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
	done := measuredLoad{wall: time.Since(started), cpu: cpuTime() - cpu, latencies: slices.Concat(latencies...)}
	select {
	case err := <-errs:
		return measuredLoad{}, err
	default:
		return done, nil
	}
}
