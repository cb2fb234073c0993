package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
)

// The scenarios parked/… measure the cost of waiting runs: an executor in its own process has none,
// a few, or very many of them in its store while some are decided. Then their inbox is read, and
// some expire.

// parkedPlan has the number of waiting runs, and how many of them are decided.
type parkedPlan struct {
	few, many int
	rounds    int
	decisions int // per round, of the few and of the many
	pages     int // of the inbox
	pause     time.Duration
}

var (
	parkedFull  = parkedPlan{few: 1000, rounds: 30, decisions: 20, pages: 200, pause: 10 * time.Millisecond}
	parkedQuick = parkedPlan{few: 1000, rounds: 2, decisions: 5, pages: 3}
)

// The goals for any number of runs: memory in addition to that of a process with an empty store,
// the p99 of a decision relative to that with few runs, the start of a process, an inbox page, the
// expiry of one request, and the p99 of a decision during expiry relative to that before.
const (
	maxParkedMemory  = 50 * mib
	maxParkedP99     = 2
	maxStartTime     = 2 * time.Second
	maxPageTime      = 50 * time.Millisecond
	maxExpiryTime    = 600 * time.Microsecond // a minute for a hundred thousand
	maxSweepSlowdown = 2
)

// parkedText is short: the number of runs matters, and a million should fit on a disk.
var parkedText = randomText(100)

// measureParked measures each database, if the command line asks for it.
func measureParked(ctx context.Context, c config, r *recorder) error {
	if c.parked == 0 {
		return nil
	}
	p := parkedFull
	if c.quick {
		p = parkedQuick
	}
	p.many = c.parked
	return c.onSelected("parked", func(on, name string) error {
		m, err := p.measure(ctx, on, name, r)
		if err == nil {
			r.add(m)
		}
		return err
	})
}

// measure measures one kind of database: processes when idle, during decisions and inbox reads, and
// during expiry.
func (p parkedPlan) measure(ctx context.Context, on, name string, r *recorder) (_ *scenarioMetrics, err error) {
	db, err := newDatabase(ctx, on, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	var lots [3]*parkedDatabase
	defer func() {
		for _, l := range lots {
			if l != nil {
				err = errors.Join(err, l.close())
			}
		}
	}()
	var startup time.Duration
	for i, runs := range []int{0, p.few, p.many} {
		r.printf("%s: starting %d runs", name, runs)
		if lots[i], err = newParkedDatabase(ctx, db, runs); err != nil {
			return nil, err
		}
		if startup, err = timed(func() error { return lots[i].run(ctx) }); err != nil {
			return nil, err
		}
	}
	empty, few, many := lots[0], lots[1], lots[2]
	m := &scenarioMetrics{name: fmt.Sprintf("%s %s", name, grouped(p.many))}
	bytes, err := db.size(ctx, many.place)
	if err != nil {
		return nil, err
	}
	m.add("disk", float64(bytes), "B")
	m.millis("process started", startup).AtMost = float64(maxStartTime.Milliseconds())
	emptyIdle, err := empty.idle()
	if err != nil {
		return nil, err
	}
	manyIdle, err := many.idle()
	if err != nil {
		return nil, err
	}
	fewLatencies, manyLatencies, busy, err := p.decide(few, many, name, r)
	if err != nil {
		return nil, err
	}
	m.add("memory of an empty store", float64(emptyIdle), "B")
	m.add("more with all", float64(max(manyIdle, busy)-emptyIdle), unitBytes).AtMost = maxParkedMemory
	before := m.percentiles("decision with "+grouped(p.few), fewLatencies).Value
	after := m.percentiles("with all", manyLatencies).Value
	m.add("slowdown", after/before, unitTimes).AtMost = maxParkedP99
	r.printf("%s: the inbox", name)
	if err := many.inbox(ctx, p.pages, m); err != nil {
		return nil, err
	}
	r.printf("%s: expiring some of the runs", name)
	during, err := many.sweep(ctx, p.pause, m)
	m.add("slowdown during expiry", during/after, unitTimes).AtMost = maxSweepSlowdown
	return m, err
}

// decide alternates between decisions of the few and of the many, and returns their latencies and
// the largest resident memory of the many.
func (p parkedPlan) decide(few, many *parkedDatabase, name string, r *recorder) (fewLatencies, manyLatencies []time.Duration, busy int64, err error) {
	for round := range p.rounds + 1 {
		r.printf("%s: round %d of %d", name, round, p.rounds)
		a, _, err := few.decide(p.decisions, p.pause)
		if err != nil {
			return nil, nil, 0, err
		}
		b, resident, err := many.decide(p.decisions, p.pause)
		if err != nil {
			return nil, nil, 0, err
		}
		if round > 0 { // the first one warms up
			fewLatencies, manyLatencies = append(fewLatencies, a...), append(manyLatencies, b...)
		}
		busy = max(busy, resident)
	}
	return fewLatencies, manyLatencies, busy, nil
}

// parkedDatabase is a database with waiting runs, and its process.
type parkedDatabase struct {
	database database
	place    string
	runs     int
	decided  map[int]bool
	random   *rand.Rand
	child    *child
}

// fillers is how many callers start the runs.
const fillers = 32

// newParkedDatabase starts runs in a new database. A share of them, which expires later, belongs to
// many accounts.
func newParkedDatabase(ctx context.Context, db database, runs int) (_ *parkedDatabase, err error) {
	place, err := db.create()
	if err != nil {
		return nil, err
	}
	l := &parkedDatabase{database: db, place: place, runs: runs, decided: make(map[int]bool), random: rand.New(rand.NewPCG(3, 4))}
	e, err := openChild(ctx, l.order())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	return l, together(fillers, 0, runs, func(n int) error {
		if n < expiringRuns(runs) {
			return e.startIn(ctx, expiringAccount(n%tenantCount(runs)), parkedKey(n))
		}
		return e.start(ctx, parkedKey(n))
	})
}

// maxParked is the number of possible keys.
const maxParked = 9_999_999

func parkedKey(n int) string { return fmt.Sprintf("key-%07d", n) }

func (l *parkedDatabase) order() childOrder {
	return childOrder{Database: l.database.name(), Place: l.place, Text: parkedText}
}

// run starts the process.
func (l *parkedDatabase) run(ctx context.Context) (err error) {
	if l.child, err = newChild(ctx, l.order()); err != nil {
		return err
	}
	_, err = l.child.ask(childOrder{}) // it has started
	return err
}

func (l *parkedDatabase) close() error {
	if l.child == nil {
		return nil
	}
	return l.child.close()
}

// idle returns the resident memory when idle.
func (l *parkedDatabase) idle() (int64, error) {
	reply, err := l.child.ask(childOrder{Collect: true})
	return reply.Resident, err
}

// decide decides random runs. For each one another is started, so that their number stays the same.
func (l *parkedDatabase) decide(decisions int, pause time.Duration) (latencies []time.Duration, resident int64, err error) {
	order := childOrder{Pause: pause}
	for len(order.Decide) < decisions {
		n := expiringRuns(l.runs) + l.random.IntN(l.runs-expiringRuns(l.runs))
		if l.decided[n] {
			if len(l.decided) == l.runs-expiringRuns(l.runs) {
				return nil, 0, errors.New("all runs are decided")
			}
			continue
		}
		l.decided[n] = true
		order.Decide = append(order.Decide, parkedKey(n))
	}
	reply, err := l.child.ask(order)
	return reply.Latencies, reply.Resident, err
}

// plainSealer does not encrypt, as the keys of processes would differ.
type plainSealer struct{}

var _ executor.Sealer = plainSealer{}

func (plainSealer) Seal(_ string, data []byte) []byte          { return data }
func (plainSealer) Open(_ string, data []byte) ([]byte, error) { return data, nil }
func (plainSealer) Current([]byte) bool                        { return true }
