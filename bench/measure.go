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

// sample is what one operation cost, on average over a stretch of them.
type sample struct {
	CPU    float64 `json:"cpuNs"` // user and system time of the whole process
	Wall   float64 `json:"wallNs"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"allocBytes"`
}

// minimum has the smaller of each value: what disturbs a measurement only adds to it.
func minimum(a, b sample) sample {
	return sample{CPU: min(a.CPU, b.CPU), Wall: min(a.Wall, b.Wall), Allocs: min(a.Allocs, b.Allocs), Bytes: min(a.Bytes, b.Bytes)}
}

// plan says how carefully to measure.
type plan struct {
	rounds int
	// stretch is the CPU time that one side gets per round. 0 is a single operation.
	duration time.Duration
}

// measure runs the scenarios. In each round every scenario gets its turn, and in it both sides: a minute in which the
// machine is slow falls on all of them.
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
				slices.Reverse(order) // who comes second must not be the same one always
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

	times  int // operations per round; 0 is not known yet
	stored int
	rounds []sample
}

// round takes one sample of a subject of its own: what one scenario holds must not weigh on the garbage collection of another.
func (s *side) round(ctx context.Context, p plan) error {
	if s.scenario.sizeOnly && s.times > 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	subject, err := s.make()
	if err != nil {
		return err
	}
	if subject.close != nil {
		defer func() { _ = subject.close() }() // temporary files; the measurement is over
	}
	if subject.stored != nil {
		if s.stored, err = subject.stored(ctx); err != nil {
			return err
		}
	}
	if s.scenario.sizeOnly {
		s.times = 1
		return subject.do(ctx) // it still has to come out right
	}
	if s.times == 0 {
		if err := s.calibrate(ctx, subject, p.duration); err != nil {
			return err
		}
	}
	pprof.Do(ctx, pprof.Labels("side", s.name, "scenario", s.scenario.name), func(ctx context.Context) {
		var one sample
		one, err = measureOnce(ctx, subject, s.times)
		s.rounds = append(s.rounds, one)
	})
	return err
}

// calibrate finds out how many operations fill a stretch.
func (s *side) calibrate(ctx context.Context, subject *engine, stretch time.Duration) error {
	s.times = 1
	if stretch == 0 {
		return nil
	}
	for {
		one, err := measureOnce(ctx, subject, s.times)
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

// measureOnce measures one stretch. The garbage of whoever ran before is gone when it begins.
func measureOnce(ctx context.Context, subject *engine, times int) (sample, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu, wall := cpuTime(), time.Now()
	for range times {
		if err := subject.do(ctx); err != nil {
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

// cpuTime is what the process has used so far, all threads together.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
