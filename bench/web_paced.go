package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pacedResult is how long decisions take when they come at a steady pace, whatever becomes of those before: people do not wait for each other.
// The pace is the one that the server has to keep, a part of what bare SQL can do; bare SQL and the disk alone have turns at the same pace beside it.
type pacedResult struct {
	Database string `json:"database"`
	// Bare is how many decisions a second bare SQL did with any number of callers, Pace how many come.
	RawSQL float64 `json:"bare"`
	Pace   float64 `json:"pace"`
	Ops    int     `json:"ops"`
	// Refused is how many of them the server did not take: it was behind by more than it lets wait.
	Refused int `json:"refused,omitempty"`
	// Sides has the latencies, from the moment at which a decision was due.
	Sides map[string]pacedSide `json:"sides"`
}

type pacedSide struct {
	P50 float64 `json:"p50Ns"`
	P99 float64 `json:"p99Ns"`
}

func pacedName(ground string) string { return "http/" + ground + "/paced" }

// paced lets the server and bare SQL take turns at the pace.
func (f *comparison) paced(ctx context.Context, bare float64, lasts time.Duration) (pacedResult, error) {
	r := pacedResult{Database: f.database.name(), RawSQL: bare, Pace: minOfRawSQL * bare, Sides: make(map[string]pacedSide)}
	count := max(1, int(r.Pace*lasts.Seconds()))
	found := make(map[string][]time.Duration)
	for round := range f.plan.rounds {
		fmt.Fprintf(f.progress, "round %d of %d: %s, %.0f decisions a second\n", round+1, f.plan.rounds, pacedName(r.Database), r.Pace)
		for _, side := range []string{sideHTTP, sideRawSQL} {
			c := f.targets[side].(*callerPool)
			if _, err := c.starts(ctx, 4, loadSpec{minRuns: count}); err != nil {
				return r, fmt.Errorf("%s: %w", side, err)
			}
			keys := c.waiting
			c.waiting = nil
			var refused atomic.Int64
			latencies, err := atPace(r.Pace, len(keys), func(n int) error {
				err := c.decide(ctx, keys[n])
				if no, ok := errors.AsType[*statusError](err); ok && no.isRejection() {
					refused.Add(1)
					return nil
				}
				return err
			})
			r.Refused += int(refused.Load())
			if err != nil {
				return r, fmt.Errorf("%s: %w", side, err)
			}
			found[side] = append(found[side], latencies...)
		}
		latencies, err := fsyncAtPace(r.Pace, count)
		if err != nil {
			return r, fmt.Errorf("%s: %w", sideFsync, err)
		}
		found[sideFsync] = append(found[sideFsync], latencies...)
	}
	r.Ops = len(found[sideHTTP])
	for side, latencies := range found {
		slices.Sort(latencies)
		r.Sides[side] = pacedSide{P50: float64(percentile(latencies, 50)), P99: float64(percentile(latencies, 99))}
	}
	return r, nil
}

// atPace does something so many times, so often a second, and returns how long each took from the moment at which it was due.
func atPace(pace float64, count int, do func(n int) error) ([]time.Duration, error) {
	latencies, errs := make([]time.Duration, count), make([]error, count)
	var all sync.WaitGroup
	begun := time.Now()
	for n := range count {
		due := begun.Add(time.Duration(float64(n) / pace * float64(time.Second)))
		time.Sleep(time.Until(due))
		all.Go(func() {
			errs[n] = do(n)
			latencies[n] = time.Since(due)
		})
	}
	all.Wait()
	return latencies, errors.Join(errs...)
}

// markdown writes the rows of what comes at a steady pace.
func (w webReport) pacedMarkdown(out io.Writer) {
	fmt.Fprint(out, "\n| at a steady pace | decisions a second | of bare SQL | over HTTP, p50 / p99 | refused | bare SQL at that pace | the disk alone |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range w.Paced {
		fmt.Fprintf(out, "| `%s` | %.0f | %s | %s | %d | %s | %s |\n", pacedName(p.Database), p.Pace, percent(minOfRawSQL, true), p.Sides[sideHTTP], p.Refused, p.Sides[sideRawSQL], p.Sides[sideFsync])
	}
}

func (s pacedSide) String() string { return millis(s.P50) + " / " + millis(s.P99) + " ms" }
