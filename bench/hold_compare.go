package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
)

// holdScenario is a number of callers on one kind of database.
type holdScenario struct {
	database string
	workload string // in scenarios hold/…
	callers  int
	kind     string // hold, http or desk
}

func (s holdScenario) name() string {
	if s.workload == workloadChain {
		return fmt.Sprintf("%s/%s/%s/%d", s.kind, s.database, s.workload, s.callers)
	}
	return fmt.Sprintf("%s/%s/%d", s.kind, s.database, s.callers)
}

// holdScenarios lists them in the order of the report, grouped by database and then by workload.
func holdScenarios() (list []holdScenario) {
	for _, ground := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16, 32} {
			list = append(list, holdScenario{kind: "hold", database: ground, workload: workloadReview, callers: callers})
		}
		for _, callers := range []int{1, 4} {
			list = append(list, holdScenario{kind: "hold", database: ground, workload: workloadChain, callers: callers})
		}
	}
	return list
}

// The sides. The last one is LangGraph with the same durability as ours.
const (
	sideOurs          = "ours"
	sideRawSQL        = "rawsql"
	sideLangGraph     = "langgraph"
	sideLangGraphFull = "langgraph-full"
	sideHTTP          = "http"
)

// holdPlan defines the precision of the measurement.
type holdPlan struct {
	rounds int
	// stretch is how long callers start runs in one round; they decide as many as they have
	// started. 0 means one run each.
	stretch time.Duration
	// sizedRuns is how many runs are stored to measure their size.
	sizedRuns int
	// langGraph says whether LangGraph's side is included, web whether the server's is.
	langGraph, web bool
}

var (
	holdFull  = holdPlan{rounds: 5, stretch: 600 * time.Millisecond, sizedRuns: 200}
	holdQuick = holdPlan{rounds: 1, sizedRuns: 5}
)

// measure measures scenarios, one database after the other.
func (p holdPlan) measure(ctx context.Context, list []holdScenario, progress io.Writer) (report holdReport, err error) {
	if len(list) == 0 {
		return report, nil
	}
	if p.langGraph {
		if err := installLangGraph(ctx, progress); err != nil {
			return report, err
		}
	}
	for _, group := range groupBy(list, func(s holdScenario) string { return s.database }) {
		if err := p.measureOn(ctx, group[0].database, group, progress, &report); err != nil {
			return report, fmt.Errorf("hold/%s: %w", group[0].database, err)
		}
	}
	return report, nil
}

// groupBy splits a list where a key changes from one scenario to the next.
func groupBy(list []holdScenario, what func(holdScenario) string) (groups [][]holdScenario) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && what(list[n]) == what(list[0]) {
			n++
		}
		groups, list = append(groups, list[:n]), list[n:]
	}
	return groups
}

func (p holdPlan) measureOn(ctx context.Context, name string, list []holdScenario, progress io.Writer, report *holdReport) (err error) {
	db, err := newDatabase(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	version, err := db.version(ctx)
	if err != nil {
		return err
	}
	report.Databases, report.Rounds = append(report.Databases, version), p.rounds
	for _, group := range groupBy(list, func(s holdScenario) string { return s.workload }) {
		if err := p.measureWorkload(ctx, db, group, progress, report); err != nil {
			return err
		}
	}
	return nil
}

func (p holdPlan) measureWorkload(ctx context.Context, db database, list []holdScenario, progress io.Writer, report *holdReport) (err error) {
	f, err := p.newComparison(ctx, db, newWorkload(list[0].workload), progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	report.note(f)
	for _, s := range list {
		rows, err := f.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	sizes, err := f.sizes(ctx)
	report.Sizes = append(report.Sizes, sizes)
	report.LangGraph = f.langGraphVersion
	return err
}

// newComparison creates and warms up all sides on a database.
func (p holdPlan) newComparison(ctx context.Context, db database, work workload, progress io.Writer) (_ *comparison, err error) {
	f := &comparison{plan: p, database: db, workload: work, progress: progress}
	if f.sealer, err = newSealer(); err != nil {
		return nil, err
	}
	if f.script, err = recordScript(ctx, db, f.sealer, f.workload); err != nil {
		return nil, err
	}
	if err := f.setUp(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// comparison is all sides on one database, with one workload.
type comparison struct {
	plan      holdPlan
	database  database
	workload  workload
	sealer    executor.Sealer
	saveDelay time.Duration // of our side; 0 is the default
	script    *script
	progress  io.Writer

	names            []string
	targets          map[string]loadTarget
	langGraphVersion string
}

// sides returns the sides available on this database.
func (f *comparison) sides() []string {
	sides := []string{sideOurs, sideRawSQL}
	if f.plan.web {
		sides = append(sides, sideHTTP)
	}
	if f.plan.langGraph {
		sides = append(sides, sideLangGraph)
		if f.database.name() == onSQLite {
			sides = append(sides, sideLangGraphFull)
		}
	}
	return sides
}

// make creates a side with a new database, and returns its location.
func (f *comparison) make(ctx context.Context, side string) (h loadTarget, place string, err error) {
	if place, err = f.database.create(); err != nil {
		return nil, "", err
	}
	switch side {
	case sideRawSQL:
		sql, err := f.database.rawBackend(ctx, place, f.script)
		if err != nil {
			return nil, "", err
		}
		return &callerPool{runKeeper: &rawSQL{script: f.script, backend: sql}}, place, nil
	case sideLangGraph, sideLangGraphFull:
		saver := f.database.name()
		if side == sideLangGraphFull {
			saver += "-full"
		}
		l, err := newLangGraph(ctx, saver, place, f.workload)
		if err != nil {
			return nil, "", err
		}
		f.langGraphVersion = l.version
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
	e, err := newExecutorSide(executor.Config{Store: st, Sealer: f.sealer, SaveDelay: f.saveDelay}, f.workload, st.Close)
	if err != nil {
		return nil, "", errors.Join(err, st.Close())
	}
	return &callerPool{runKeeper: e}, place, nil
}

// setUp creates all sides and warms them up, so that JIT compilation is finished.
func (f *comparison) setUp(ctx context.Context) error {
	f.targets = make(map[string]loadTarget)
	for _, side := range f.sides() {
		h, _, err := f.make(ctx, side)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		f.names, f.targets[side] = append(f.names, side), h
		if err := f.warm(ctx, side); err != nil {
			return err
		}
	}
	return nil
}

func (f *comparison) warm(ctx context.Context, side string) error {
	fmt.Fprintf(f.progress, "%s: warming up %s\n", f.database.name(), side)
	h := f.targets[side]
	if _, err := h.starts(ctx, 4, loadSpec{duration: 3 * f.plan.stretch, minRuns: 4}); err != nil {
		return fmt.Errorf("%s: %w", side, err)
	}
	if _, err := h.decides(ctx, 4); err != nil {
		return fmt.Errorf("%s: %w", side, err)
	}
	return nil
}

func (f *comparison) close() error {
	var errs []error
	for _, h := range f.targets {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// measure lets the sides alternate.
func (f *comparison) measure(ctx context.Context, s holdScenario) ([]holdRow, error) {
	found := map[operation]map[string][]measuredLoad{opStart: {}, opDecide: {}}
	for round := range f.plan.rounds {
		fmt.Fprintf(f.progress, "round %d of %d: %s\n", round+1, f.plan.rounds, s.name())
		order := slices.Clone(f.names)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			var err error
			pprof.Do(ctx, pprof.Labels("side", side, "scenario", s.name()), func(ctx context.Context) {
				err = f.round(ctx, side, s.callers, found)
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	return []holdRow{newHoldRow(s, opStart, found[opStart]), newHoldRow(s, opDecide, found[opDecide])}, nil
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

// sizes stores runs twice: the first ones leave free space, as in a database that has been in use
// for a while, and the second ones are measured.
func (f *comparison) sizes(ctx context.Context) (holdSizes, error) {
	found := holdSizes{Database: f.database.name(), Workload: f.workload.name, Runs: f.plan.sizedRuns, Bytes: map[string]holdSize{}}
	for _, side := range f.names {
		if side == sideLangGraphFull {
			continue // it stores the same
		}
		fmt.Fprintf(f.progress, "%s: size of %s\n", found.name(), side)
		size, err := f.size(ctx, side)
		if err != nil {
			return found, fmt.Errorf("%s: %w", side, err)
		}
		found.Bytes[side] = size
	}
	return found, nil
}

func (f *comparison) size(ctx context.Context, side string) (_ holdSize, err error) {
	h, place, err := f.make(ctx, side)
	if err != nil {
		return holdSize{}, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	var waiting, over [2]int64
	for i := range 2 {
		if _, err := h.starts(ctx, 4, loadSpec{minRuns: f.plan.sizedRuns}); err != nil {
			return holdSize{}, err
		}
		if waiting[i], err = f.database.size(ctx, place); err != nil {
			return holdSize{}, err
		}
		if _, err := h.decides(ctx, 4); err != nil {
			return holdSize{}, err
		}
		if over[i], err = f.database.size(ctx, place); err != nil {
			return holdSize{}, err
		}
	}
	n := int64(f.plan.sizedRuns)
	return holdSize{Waiting: (waiting[1] - over[0]) / n, Over: (over[1] - over[0]) / n}, nil
}
