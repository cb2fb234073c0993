package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
)

// The scenarios parked/… measure the cost of waiting runs: an executor in its own process has none,
// a few, or very many of them in its store while some are decided.

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

// parkedText is short: the number of runs matters, and a million should fit on a disk.
var parkedText = randomText(100)

// parkedResult is the result on one kind of database.
type parkedResult struct {
	Name     string `json:"name"`
	Database string `json:"database"`
	Few      int    `json:"few"`
	Many     int    `json:"many"`
	// Resident memory of the process in bytes: idle after a garbage collection, and the maximum
	// while runs were decided.
	EmptyIdle int64 `json:"emptyIdle"`
	ManyIdle  int64 `json:"manyIdle"`
	FewBusy   int64 `json:"fewBusy"`
	ManyBusy  int64 `json:"manyBusy"`
	// Latency of a decision, in nanoseconds.
	FewP50    float64       `json:"fewP50Ns"`
	FewP99    float64       `json:"fewP99Ns"`
	ManyP50   float64       `json:"manyP50Ns"`
	ManyP99   float64       `json:"manyP99Ns"`
	Decisions int           `json:"decisions"`
	Filled    time.Duration `json:"filledNs"`
	Bytes     int64         `json:"bytes"`
	// Began is the startup time of the process with the many runs.
	Began time.Duration `json:"beganNs"`
	Inbox inboxResult   `json:"inbox"`
	Sweep sweepResult   `json:"sweep"`
}

func parkedName(database string) string { return "parked/" + database }

// measure measures one kind of database.
func (p parkedPlan) measure(ctx context.Context, name string, progress io.Writer) (r parkedResult, err error) {
	r = parkedResult{Name: parkedName(name), Few: p.few, Many: p.many}
	db, err := newDatabase(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if r.Database, err = db.version(ctx); err != nil {
		return r, err
	}
	var lots [3]*parkedDatabase
	defer func() {
		for _, l := range lots {
			if l != nil {
				err = errors.Join(err, l.close())
			}
		}
	}()
	for i, runs := range []int{0, p.few, p.many} {
		fmt.Fprintf(progress, "%s: filling a database with %d runs\n", r.Name, runs)
		started := time.Now()
		if lots[i], err = newParkedDatabase(ctx, db, runs); err != nil {
			return r, err
		}
		r.Filled = time.Since(started)
	}
	if r.Bytes, err = db.size(ctx, lots[2].place); err != nil {
		return r, err
	}
	return r, p.observe(ctx, lots[0], lots[1], lots[2], &r, progress)
}

// observe measures the processes when idle, during decisions and inbox reads, and during expiry.
func (p parkedPlan) observe(ctx context.Context, empty, few, many *parkedDatabase, r *parkedResult, progress io.Writer) (err error) {
	for _, l := range []*parkedDatabase{empty, few, many} {
		started := time.Now()
		if err := l.run(ctx); err != nil {
			return err
		}
		r.Began = time.Since(started)
	}
	if r.EmptyIdle, err = empty.idle(); err != nil {
		return err
	}
	if r.ManyIdle, err = many.idle(); err != nil {
		return err
	}
	if err := p.decide(few, many, r, progress); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s: the inbox\n", r.Name)
	if r.Inbox, err = many.inbox(ctx, p.pages); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s: expiring some of the runs\n", r.Name)
	r.Sweep, err = many.sweep(ctx, p.pause)
	return err
}

// decide alternates between decisions of the few and of the many.
func (p parkedPlan) decide(few, many *parkedDatabase, r *parkedResult, progress io.Writer) error {
	var found [2][]time.Duration
	most := [2]*int64{&r.FewBusy, &r.ManyBusy}
	for round := range p.rounds + 1 {
		fmt.Fprintf(progress, "%s: round %d of %d\n", r.Name, round, p.rounds)
		order := []int{0, 1}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			latencies, resident, err := []*parkedDatabase{few, many}[i].decide(p.decisions, p.pause)
			if err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				found[i] = append(found[i], latencies...)
			}
			*most[i] = max(*most[i], resident)
		}
	}
	for i := range found {
		slices.Sort(found[i])
	}
	r.Decisions = len(found[1])
	r.FewP50, r.FewP99 = float64(percentile(found[0], 50)), float64(percentile(found[0], 99))
	r.ManyP50, r.ManyP99 = float64(percentile(found[1], 50)), float64(percentile(found[1], 99))
	return nil
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

// newParkedDatabase fills a new database: the executor creates one run, and SQL copies it.
func newParkedDatabase(ctx context.Context, db database, runs int) (*parkedDatabase, error) {
	place, err := db.create()
	if err != nil {
		return nil, err
	}
	l := &parkedDatabase{database: db, place: place, runs: runs, decided: make(map[int]bool), random: rand.New(rand.NewPCG(3, 4))}
	st, err := db.open(ctx, place)
	if err != nil {
		return nil, err
	}
	e, err := newExecutorSide(executor.Config{Store: st, Sealer: plainSealer{}}, reviewWorkload(parkedText), st.Close)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if runs == 0 {
		return l, e.close()
	}
	t := &rowTemplate{key: parkedKey(1)}
	err = e.start(ctx, t.key)
	if err == nil {
		err = t.read(ctx, st)
	}
	if err := errors.Join(err, e.close()); err != nil {
		return nil, err
	}
	return l, db.fill(ctx, place, t, runs)
}

// maxParked is the number of possible keys.
const maxParked = 9_999_999

func parkedKey(n int) string { return fmt.Sprintf("key-%07d", n) }

// run starts the process.
func (l *parkedDatabase) run(ctx context.Context) (err error) {
	if l.child, err = newChild(ctx, childOrder{Database: l.database.name(), Place: l.place, Text: parkedText}); err != nil {
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
		// the first ones are for the sweep
		n := 1 + expiringRuns(l.runs) + l.random.IntN(l.runs-expiringRuns(l.runs))
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

// plainSealer does not encrypt, so that SQL can copy a run under another name.
type plainSealer struct{}

func (plainSealer) Seal(_ string, data []byte) []byte          { return data }
func (plainSealer) Open(_ string, data []byte) ([]byte, error) { return data, nil }
func (plainSealer) Current([]byte) bool                        { return true }
