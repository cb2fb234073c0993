package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
)

// holdScenario is a number of callers on one kind of database.
type holdScenario struct {
	family   string // hold or http
	database string
	workload string
	callers  int
}

func (s holdScenario) name() string {
	if s.workload == workloadChain {
		return fmt.Sprintf("%s/%s/%s/%d", s.family, s.database, s.workload, s.callers)
	}
	return fmt.Sprintf("%s/%s/%d", s.family, s.database, s.callers)
}

// holdScenarios lists them in the order of the report, grouped by database and then by workload.
func holdScenarios() (list []holdScenario) {
	for _, on := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16, 32} {
			list = append(list, holdScenario{"hold", on, workloadReview, callers})
		}
		for _, callers := range []int{1, 4} {
			list = append(list, holdScenario{"hold", on, workloadChain, callers})
		}
	}
	return list
}

// The sides. LangGraph is measured on PostgreSQL only: its SQLite driver would have to be compiled.
const (
	sideOurs      = "executor"
	sideLangGraph = "LangGraph"
	sideHTTP      = "HTTP"
)

// The goals of waiting runs, relative to LangGraph.
const (
	minTimesLangGraph = 20
	maxShareOfBytes   = 1. / 5
)

// holdPlan defines the precision of the measurement.
type holdPlan struct {
	rounds int
	// stretch is how long callers start runs in one round; they decide as many as they have
	// started. 0 means one run each.
	stretch time.Duration
	// sizedRuns is how many runs are stored to measure their size.
	sizedRuns int
}

var (
	holdFull  = holdPlan{rounds: 5, stretch: 600 * time.Millisecond, sizedRuns: 200}
	holdQuick = holdPlan{rounds: 1, sizedRuns: 5}
)

// measureHold measures the executor next to LangGraph, one database after the other.
func measureHold(ctx context.Context, c config, r *recorder) error {
	p := holdFull
	if c.quick {
		p = holdQuick
	}
	p.rounds = min(p.rounds, c.rounds)
	for _, group := range groupBy(selected(c, holdScenarios(), holdScenario.name), func(s holdScenario) string { return s.database }) {
		if err := p.measureOn(ctx, group, r); err != nil {
			return fmt.Errorf("hold/%s: %w", group[0].database, err)
		}
	}
	return nil
}

func (p holdPlan) measureOn(ctx context.Context, list []holdScenario, r *recorder) (err error) {
	sides := []string{sideOurs}
	if list[0].database == onPostgres {
		if err := installLangGraph(ctx, r.progress); err != nil {
			return err
		}
		sides = append(sides, sideLangGraph)
	}
	db, err := newDatabase(ctx, list[0].database, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	for _, group := range groupBy(list, func(s holdScenario) string { return s.workload }) {
		if err := p.measureWorkload(ctx, db, sides, group, r); err != nil {
			return err
		}
	}
	return nil
}

func (p holdPlan) measureWorkload(ctx context.Context, db database, sides []string, list []holdScenario, r *recorder) (err error) {
	f, err := p.newComparison(ctx, db, newWorkload(list[0].workload), sides, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, s := range list {
		if _, err := f.measure(ctx, s, sideLangGraph, minTimesLangGraph); err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
	}
	return f.sizes(ctx)
}

// comparison is all sides on one database, with one workload. The first side is the measured one.
type comparison struct {
	plan     holdPlan
	database database
	workload workload
	sealer   executor.Sealer
	recorder *recorder

	sides   []string
	targets map[string]loadTarget
}

// newComparison creates all sides on a database, and warms them up so that JIT compilation is
// finished.
func (p holdPlan) newComparison(ctx context.Context, db database, work workload, sides []string, r *recorder) (_ *comparison, err error) {
	f := &comparison{plan: p, database: db, workload: work, sides: sides, recorder: r, targets: make(map[string]loadTarget)}
	if f.sealer, err = newSealer(); err != nil {
		return nil, err
	}
	for _, side := range sides {
		h, _, err := f.make(ctx, side)
		if err == nil {
			f.targets[side] = h
			err = f.warm(ctx, side)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", side, err), f.close())
		}
	}
	return f, nil
}

// make creates a side with a new database, and returns its location.
func (f *comparison) make(ctx context.Context, side string) (h loadTarget, place string, err error) {
	if place, err = f.database.create(); err != nil {
		return nil, "", err
	}
	switch side {
	case sideLangGraph:
		l, err := newLangGraph(ctx, f.database.name(), place, f.workload)
		if err != nil {
			return nil, "", err
		}
		f.recorder.version("LangGraph " + l.version)
		return l, place, nil
	case sideHTTP:
		client, err := newWebClient(ctx, childOrder{Database: f.database.name(), Place: place, Text: f.workload.text, Sealed: true})
		if err != nil {
			return nil, "", err
		}
		return &callerPool{runKeeper: client}, place, nil
	}
	st, err := f.database.open(ctx, place)
	if err != nil {
		return nil, "", err
	}
	e, err := newExecutorSide(executor.Config{Store: st, Sealer: f.sealer}, f.workload, st.Close)
	if err != nil {
		return nil, "", errors.Join(err, st.Close())
	}
	return &callerPool{runKeeper: e}, place, nil
}

func (f *comparison) warm(ctx context.Context, side string) error {
	f.recorder.printf("%s: warming up %s", f.database.name(), side)
	h := f.targets[side]
	if _, err := h.starts(ctx, 4, loadSpec{duration: 3 * f.plan.stretch, minRuns: 4}); err != nil {
		return err
	}
	_, err := h.decides(ctx, 4)
	return err
}

func (f *comparison) close() error {
	var errs []error
	for _, h := range f.targets {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// measure lets the sides alternate. The goal is for the first side, in times the rate of another.
// It returns the rate of decisions of the first side.
func (f *comparison) measure(ctx context.Context, s holdScenario, other string, goal float64) (decisions float64, err error) {
	found := map[operation]map[string][]measuredLoad{opStart: {}, opDecide: {}}
	for round := range f.plan.rounds {
		f.recorder.printf("round %d of %d: %s", round+1, f.plan.rounds, s.name())
		order := slices.Clone(f.sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			pprof.Do(ctx, pprof.Labels("side", side, "scenario", s.name()), func(ctx context.Context) {
				err = f.round(ctx, side, s.callers, found)
			})
			if err != nil {
				return 0, fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	for _, op := range []operation{opStart, opDecide} {
		m := &scenarioMetrics{name: s.name() + " " + string(op)}
		for _, side := range f.sides {
			m.load(side, found[op][side])
		}
		if theirs, ok := found[op][other]; ok {
			m.add("× "+other, ratio(found[op][f.sides[0]], theirs), unitTimes).AtLeast = goal
		}
		f.recorder.add(m)
	}
	return rate(found[opDecide][f.sides[0]]), nil
}

// load adds the metrics of one side: the operations per second, their latencies, and the CPU time
// of an operation for the process and for the database server.
func (s *scenarioMetrics) load(side string, rounds []measuredLoad) {
	s.add(side, rate(rounds), unitRate)
	var latencies []time.Duration
	var cpu, server time.Duration
	for _, w := range rounds {
		latencies, cpu, server = append(latencies, w.latencies...), cpu+w.cpu, server+w.server
	}
	s.percentiles(side, latencies)
	s.millis(side+" CPU", cpu/time.Duration(len(latencies)))
	s.millis("+ server", server/time.Duration(len(latencies)))
}

func (w measuredLoad) rate() float64 { return float64(len(w.latencies)) / w.wall.Seconds() }

// rate is the median of the rounds.
func rate(rounds []measuredLoad) float64 {
	var rates []float64
	for _, w := range rounds {
		rates = append(rates, w.rate())
	}
	return median(rates)
}

// ratio is the median over the rounds. In each round the two sides run one after the other.
func ratio(ours, theirs []measuredLoad) float64 {
	var ratios []float64
	for i := range ours {
		ratios = append(ratios, ours[i].rate()/theirs[i].rate())
	}
	return median(ratios)
}

func (f *comparison) round(ctx context.Context, side string, callers int, found map[operation]map[string][]measuredLoad) error {
	h := f.targets[side]
	started, err := f.metered(func() (measuredLoad, error) {
		return h.starts(ctx, callers, loadSpec{duration: f.plan.stretch, minRuns: callers})
	})
	if err != nil {
		return err
	}
	decided, err := f.metered(func() (measuredLoad, error) { return h.decides(ctx, callers) })
	if err == nil && len(decided.latencies) != len(started.latencies) {
		err = fmt.Errorf("%d runs were started, and %d decided", len(started.latencies), len(decided.latencies))
	}
	found[opStart][side] = append(found[opStart][side], started)
	found[opDecide][side] = append(found[opDecide][side], decided)
	return err
}

// metered adds the CPU time of the database server.
func (f *comparison) metered(do func() (measuredLoad, error)) (measuredLoad, error) {
	before, err := f.database.cpuTime()
	if err != nil {
		return measuredLoad{}, err
	}
	done, err := do()
	if err != nil {
		return measuredLoad{}, err
	}
	after, err := f.database.cpuTime()
	done.server = after - before
	return done, err
}

// sizes adds the disk space of one run, tables and indexes, while it waits and after its end.
func (f *comparison) sizes(ctx context.Context) error {
	m := &scenarioMetrics{name: fmt.Sprintf("hold/%s/%s size", f.database.name(), f.workload.name)}
	var ended []float64
	for _, side := range f.sides {
		f.recorder.printf("%s of %s", m.name, side)
		waiting, over, err := f.size(ctx, side)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		m.add(side+" waiting", waiting, "")
		m.add("ended", over, "")
		ended = append(ended, over)
	}
	if len(ended) > 1 {
		m.add("share", ended[0]/ended[1], unitTimes).AtMost = maxShareOfBytes
	}
	f.recorder.add(m)
	return nil
}

// size stores runs twice: the first ones leave free space, as in a database that has been in use
// for a while, and the second ones are measured.
func (f *comparison) size(ctx context.Context, side string) (waiting, ended float64, err error) {
	h, place, err := f.make(ctx, side)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var before, open, over int64
	for range 2 {
		before = over
		if _, err := h.starts(ctx, 4, loadSpec{minRuns: f.plan.sizedRuns}); err != nil {
			return 0, 0, err
		}
		if open, err = f.database.size(ctx, place); err != nil {
			return 0, 0, err
		}
		if _, err := h.decides(ctx, 4); err != nil {
			return 0, 0, err
		}
		if over, err = f.database.size(ctx, place); err != nil {
			return 0, 0, err
		}
	}
	n := float64(f.plan.sizedRuns)
	return float64(open-before) / n, float64(over-before) / n, nil
}
