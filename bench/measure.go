package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// sample is the average cost of an operation.
type sample struct {
	cpu    float64 // user and system time of the whole process, in nanoseconds
	allocs float64
}

// result is the measurement of a scenario.
type result struct {
	scenario   scenario
	ours, eino *side
}

// metrics returns the cost of an operation on both sides, and our share of Eino's.
func (r result) metrics() *scenarioMetrics {
	s := &scenarioMetrics{name: r.scenario.name}
	if r.scenario.sizeOnly {
		r.stored(s)
		return s
	}
	ours, eino := r.ours.best(), r.eino.best()
	s.millis("CPU", time.Duration(ours.cpu))
	s.millis("CPU of Eino", time.Duration(eino.cpu))
	s.add("share", ours.cpu/eino.cpu, unitTimes).AtMost = r.scenario.cpuShare
	s.add("allocations", ours.allocs, "")
	s.add("of Eino", eino.allocs, "")
	s.add("share", ours.allocs/eino.allocs, unitTimes)
	r.stored(s)
	return s
}

func (r result) stored(s *scenarioMetrics) {
	s.add("stored", float64(r.ours.stored), unitBytes).AtMost = float64(r.scenario.maxStored)
	s.add("by Eino", float64(r.eino.stored), unitBytes)
}

// plan defines the precision of the measurement.
type plan struct {
	rounds int
	// duration is the CPU time of one side per round. 0 means a single operation.
	duration time.Duration
}

// stretch is the CPU time of a measurement: long enough for many garbage collections.
const stretch = 100 * time.Millisecond

// measure runs the scenarios. Each round runs every scenario on both sides, so that a slow minute
// of the machine affects all of them.
func (p plan) measure(ctx context.Context, list []scenario, r *recorder) ([]result, error) {
	results := make([]result, len(list))
	for i, s := range list {
		results[i] = result{s, &side{scenario: s, name: "ours", make: s.ours}, &side{scenario: s, name: "eino", make: s.eino}}
	}
	for round := range p.rounds {
		for _, one := range results {
			r.printf("round %d of %d: %s", round+1, p.rounds, one.scenario.name)
			order := []*side{one.ours, one.eino}
			if round%2 == 1 {
				slices.Reverse(order) // alternate which side is second
			}
			for _, s := range order {
				if err := s.round(ctx, p); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.scenario.name, s.name, err)
				}
			}
		}
	}
	return results, nil
}

// side is one side of a scenario under measurement.
type side struct {
	scenario scenario
	name     string
	make     func() (*engine, error)

	times  int // operations per round; 0 means not known yet
	stored int
	rounds []sample
}

// best has the smallest of each value: disturbances only add to a measurement.
func (s *side) best() (best sample) {
	for i, one := range s.rounds {
		if i == 0 {
			best = one
		}
		best = sample{cpu: min(best.cpu, one.cpu), allocs: min(best.allocs, one.allocs)}
	}
	return best
}

// round takes one sample with a new engine: the memory of one scenario must not affect the garbage
// collection of another.
func (s *side) round(ctx context.Context, p plan) error {
	if s.scenario.sizeOnly && s.times > 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	eng, err := s.make()
	if err != nil {
		return err
	}
	if eng.stored != nil {
		if s.stored, err = eng.stored(ctx); err != nil {
			return err
		}
	}
	if s.scenario.sizeOnly {
		s.times = 1
		return eng.do(ctx) // the result must still be correct
	}
	if s.times == 0 {
		if err := s.calibrate(ctx, eng, p.duration); err != nil {
			return err
		}
	}
	pprof.Do(ctx, pprof.Labels("side", s.name, "scenario", s.scenario.name), func(ctx context.Context) {
		var one sample
		one, err = measureOnce(ctx, eng, s.times)
		s.rounds = append(s.rounds, one)
	})
	return err
}

// calibrate determines how many operations fill a round.
func (s *side) calibrate(ctx context.Context, eng *engine, stretch time.Duration) error {
	s.times = 1
	if stretch == 0 {
		return nil
	}
	for {
		one, err := measureOnce(ctx, eng, s.times)
		if err != nil {
			return err
		}
		if spent := one.cpu * float64(s.times); spent >= float64(stretch)/4 {
			s.times = max(1, int(float64(stretch)/one.cpu))
			return nil
		}
		s.times *= 2
	}
}

// measureOnce takes one sample, after a garbage collection.
func measureOnce(ctx context.Context, eng *engine, times int) (sample, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	for range times {
		if err := eng.do(ctx); err != nil {
			return sample{}, err
		}
	}
	spent := cpuTime() - cpu
	runtime.ReadMemStats(&after)
	return sample{cpu: float64(spent) / float64(times), allocs: float64(after.Mallocs-before.Mallocs) / float64(times)}, nil
}

// cpuTime returns the CPU time of the process so far, for all threads.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
