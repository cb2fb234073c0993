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

// pacedResult has the latencies of decisions at a constant rate, regardless of earlier ones: people
// do not wait for each other. The rate is the one that the server must sustain, a share of raw
// SQL's; raw SQL and the disk alone are measured at the same rate.
type pacedResult struct {
	Database string `json:"database"`
	// RawSQL is how many decisions per second raw SQL did with any number of callers, Pace the
	// offered rate.
	RawSQL float64 `json:"rawsql"`
	Pace   float64 `json:"pace"`
	Ops    int     `json:"ops"`
	// Refused is how many of them the server rejected because its queue was full.
	Refused int `json:"refused,omitempty"`
	// Sides has the latencies, from the time when a decision was due.
	Sides map[string]pacedSide `json:"sides"`
}

type pacedSide struct {
	P50 float64 `json:"p50Ns"`
	P99 float64 `json:"p99Ns"`
}

func pacedName(database string) string { return "http/" + database + "/paced" }

// paced alternates between the server and raw SQL at the rate.
func (f *comparison) paced(ctx context.Context, rawSQL float64, duration time.Duration) (pacedResult, error) {
	r := pacedResult{Database: f.database.name(), RawSQL: rawSQL, Pace: minOfRawSQL * rawSQL, Sides: make(map[string]pacedSide)}
	count := max(1, int(r.Pace*duration.Seconds()))
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

// pacedMarkdown writes the rows of the constant rate.
func (w webReport) pacedMarkdown(out io.Writer) {
	fmt.Fprint(out, "\n| constant rate | decisions a second | of raw SQL | over HTTP, p50 / p99 | rejected | raw SQL at that rate | disk alone |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range w.Paced {
		fmt.Fprintf(out, "| `%s` | %.0f | %s | %s | %d | %s | %s |\n", pacedName(p.Database), p.Pace, percent(minOfRawSQL, true), p.Sides[sideHTTP], p.Refused, p.Sides[sideRawSQL], p.Sides[sideFsync])
	}
}

func (s pacedSide) String() string { return millis(s.P50) + " / " + millis(s.P99) + " ms" }
