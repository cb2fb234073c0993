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
	CPU    float64 `json:"cpuNs"` // user and system time of the whole process
	Wall   float64 `json:"wallNs"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"allocBytes"`
}

// minimum has the smaller of each value: disturbances only add to a measurement.
func minimum(a, b sample) sample {
	return sample{CPU: min(a.CPU, b.CPU), Wall: min(a.Wall, b.Wall), Allocs: min(a.Allocs, b.Allocs), Bytes: min(a.Bytes, b.Bytes)}
}

// plan defines the precision of the measurement.
type plan struct {
	rounds int
	// duration is the CPU time of one side per round. 0 means a single operation.
	duration time.Duration
}

// measure runs the scenarios. Each round runs every scenario on both sides, so that a slow minute
// of the machine affects all of them.
func (p plan) measure(ctx context.Context, list []scenario, progress func(round int, scenario string)) ([]result, error) {
	pairs := make([][]*side, len(list))
	for i, s := range list {
		pairs[i] = []*side{{scenario: s, name: "ours", make: s.ours}}
		if s.eino != nil {
			pairs[i] = append(pairs[i], &side{scenario: s, name: "eino", make: s.eino})
		}
	}
	for round := range p.rounds {
		for i, sides := range pairs {
			progress(round, list[i].name)
			order := slices.Clone(sides)
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
	found := make([]result, len(list))
	for i, sides := range pairs {
		found[i] = newResult(list[i], sides)
	}
	return found, nil
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
	if eng.close != nil {
		defer func() { _ = eng.close() }() // temporary files; the measurement is over
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
		if spent := one.CPU * float64(s.times); spent >= float64(stretch)/4 {
			s.times = max(1, int(float64(stretch)/one.CPU))
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
	cpu, wall := cpuTime(), time.Now()
	for range times {
		if err := eng.do(ctx); err != nil {
			return sample{}, err
		}
	}
	spent, passed := cpuTime()-cpu, time.Since(wall)
	runtime.ReadMemStats(&after)
	n := float64(times)
	return sample{
		CPU: float64(spent) / n, Wall: float64(passed) / n,
		Allocs: float64(after.Mallocs-before.Mallocs) / n, Bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

// cpuTime returns the CPU time of the process so far, for all threads.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
