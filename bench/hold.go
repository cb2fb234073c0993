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

// act is what is measured.
type act string

const (
	starting act = "start"  // from the call until the run waits
	deciding act = "decide" // from a person's word until the run is over
)

// stretchOf is how long callers start runs: so long, and at least so many.
type stretchOf struct {
	lasts time.Duration
	least int
}

// work is what callers got done together.
type work struct {
	wall, cpu time.Duration
	server    time.Duration // CPU of the database server
	latencies []time.Duration
}

// holder is one side, with a database of its own.
type holder interface {
	// starts lets callers start runs, each one after the other. In the end all of them wait.
	starts(ctx context.Context, callers int, how stretchOf) (work, error)
	// decides lets callers decide everything that waits. In the end all of it is over.
	decides(ctx context.Context, callers int) (work, error)
	close() error
}

// keeper is a side that is in this process. Its methods may be called at once, and fail unless the result is right.
type keeper interface {
	start(ctx context.Context, key string) error
	decide(ctx context.Context, key string) error
	close() error
}

// crowd makes a holder of a keeper.
type crowd struct {
	keeper
	runs atomic.Int64

	mu      sync.Mutex
	waiting []string
}

func (c *crowd) starts(ctx context.Context, callers int, how stretchOf) (work, error) {
	until := time.Now().Add(how.lasts)
	var begun atomic.Int64
	return together(callers, func() func() error {
		if begun.Add(1) > int64(how.least) && !time.Now().Before(until) {
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

func (c *crowd) decides(ctx context.Context, callers int) (work, error) {
	keys := c.waiting
	c.waiting = nil
	var taken atomic.Int64
	return together(callers, func() func() error {
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

// together lets callers work until each finds nothing more to do, or one fails. The garbage of whoever worked before is gone when it begins.
func together(callers int, next func() func() error) (work, error) {
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
	done := work{wall: time.Since(begun), cpu: cpuTime() - cpu, latencies: slices.Concat(latencies...)}
	select {
	case err := <-errs:
		return work{}, err
	default:
		return done, nil
	}
}
