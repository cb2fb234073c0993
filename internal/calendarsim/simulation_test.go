package calendarsim

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/simtest"
)

// simulation is one simulation.
type simulation struct {
	t       *testing.T
	seed    uint64
	size    int
	days    int
	rng     *rand.Rand
	service *service
	sink    *sink
	staff   *directory
	people  map[string]*person
	places  []*office
	plans   map[string]plan

	queue  queue
	runs   map[string]*run // by key
	tasks  map[string]*run // by task id
	asks   map[string]*modelRequest
	order  []*modelRequest
	clicks int
	tally  map[string]int // replies to submissions
	played map[string]int // scenarios that reached their goal

	mu       sync.Mutex
	told     []deliveredNotice
	read     int // of told
	failures map[string]bool
	bell     chan struct{}
	errs     int
}

// deliveredNotice is a notice that a channel got.
type deliveredNotice struct {
	desk.Notice
	at time.Time
}

// event is a scheduled event.
type event struct {
	at time.Time
	n  int // scheduling order for events at the same time
	do func()
}

type queue struct {
	events []event
	n      int
}

func (q *queue) Len() int { return len(q.events) }
func (q *queue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.n < b.n
}
func (q *queue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }
func (q *queue) Push(e any)    { q.events = append(q.events, e.(event)) }
func (q *queue) Pop() any {
	last := q.events[len(q.events)-1]
	q.events = q.events[:len(q.events)-1]
	return last
}

// at schedules an event.
func (s *simulation) at(t time.Time, do func()) {
	s.queue.n++
	heap.Push(&s.queue, event{t, s.queue.n, do})
}

// runSimulation runs one simulation with about the given number of requests, and returns their
// actual number. Runs are started for some days. After that the simulation continues until
// everything must be closed.
func runSimulation(t *testing.T, seed uint64, requests, days int, where func(*testing.T) storage) (total int) {
	t.Helper()
	k := where(t)
	set, err := policy.Load("policy.yaml", []byte(rulesText), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, seed, days)
		s.size, s.days = requests, days
		s.open(k, simtest.FixedPolicy{Set: set})
		end := time.Now().Add(time.Duration(days) * 24 * time.Hour)
		s.plan(requests, end)
		s.loop(end)
		s.check()
		total = len(s.order)
	})
	return total
}

func newSimulation(t *testing.T, seed uint64, days int) *simulation {
	s := &simulation{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), sink: &sink{deeds: make(map[string][]effectCall), refused: make(map[string]time.Time)}, runs: make(map[string]*run),
		tasks: make(map[string]*run), asks: make(map[string]*modelRequest), tally: make(map[string]int), played: make(map[string]int), failures: make(map[string]bool),
		bell: make(chan struct{}, 1), people: make(map[string]*person),
	}
	// Clocks change in spring and in autumn, on different days in different places.
	year, month := 2026+s.rng.IntN(4), []time.Month{time.March, time.October}[s.rng.IntN(2)]
	begin := time.Date(year, month, 1+s.rng.IntN(14), s.rng.IntN(24), s.rng.IntN(60), s.rng.IntN(60), 0, time.UTC)
	time.Sleep(time.Until(begin))
	holidays := []string{begin.AddDate(0, 0, 9).Format(time.DateOnly), begin.AddDate(0, 0, 10).Format(time.DateOnly), begin.AddDate(0, 0, 33).Format(time.DateOnly)}
	s.places = offices(year, holidays)
	for _, p := range s.places {
		if err := p.precompute(begin.AddDate(0, 0, -2), begin.AddDate(0, 0, days+90)); err != nil {
			t.Fatal(err)
		}
	}
	all, staff := staff(s.rng, s.places, begin, begin.AddDate(0, 0, days))
	for _, p := range all {
		s.people[p.name] = p
	}
	s.staff = staff
	return s
}

func (s *simulation) open(k storage, rules policy.Source) {
	key, err := seal.New(seal.Key{7})
	if err != nil {
		s.t.Fatal(err)
	}
	routes, plans := routesOf(s.places)
	s.plans = plans
	s.service = newService(s.t, k, agent(s.t, s.sink), key, executor.DeskConfig{Directory: s.staff, Routes: routes, Policy: rules, Channels: []channel.Channel{channel.Notify(s.notify)}})
	s.service.start()
}

// notify is the channels. Sometimes one is down, once for each notice.
func (s *simulation) notify(_ context.Context, _ string, n desk.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failures[n.Key] && len(n.Key)%7 == 3 && n.Rev%5 == 0 {
		s.failures[n.Key] = true
		return fmt.Errorf("the channel is down")
	}
	s.told = append(s.told, deliveredNotice{n, time.Now()})
	select {
	case s.bell <- struct{}{}:
	default:
	}
	return nil
}

// loop runs the events until everything must be closed.
func (s *simulation) loop(end time.Time) {
	var operator sync.WaitGroup
	operator.Go(func() { s.service.operate(rand.New(rand.NewPCG(s.seed, 2)), end) })
	last := end
	for {
		s.processNotices()
		now := time.Now()
		if s.queue.Len() > 0 && !s.queue.events[0].at.After(now) {
			heap.Pop(&s.queue).(event).do()
			continue
		}
		if !now.Before(last) {
			if last = s.last(); !now.Before(last) {
				break
			}
		}
		next := last
		if s.queue.Len() > 0 {
			next = first(next, s.queue.events[0].at)
		}
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-timer.C:
		case <-s.bell:
		}
		timer.Stop()
	}
	operator.Wait()
}

// last returns when everything that is known now must be closed and delivered.
func (s *simulation) last() time.Time {
	var last time.Time
	for _, a := range s.order {
		over := a.deadline
		if a.outcome != "" {
			over = a.ended
		}
		if last.Before(over) {
			last = over
		}
	}
	return last.Add(15 * time.Hour) // and perhaps all are down
}

// processNotices processes the delivered notices, in an order that does not depend on timing.
func (s *simulation) processNotices() {
	synctest.Wait() // all pending submissions are sent
	s.mu.Lock()
	news := slices.Clone(s.told[s.read:])
	s.read = len(s.told)
	s.mu.Unlock()
	unknown := make(map[string]string) // request → run
	for _, n := range news {
		if s.asks[n.Request] == nil && unknown[n.Request] == "" {
			unknown[n.Request] = s.runOf(n.Request)
		}
	}
	for _, id := range slices.SortedFunc(keys(unknown), func(a, b string) int { return cmp.Compare(unknown[a], unknown[b]) }) {
		s.watchRequest(nil, unknown[id])
	}
	news = slices.DeleteFunc(news, func(n deliveredNotice) bool {
		if s.asks[n.Request] != nil {
			return false
		}
		s.fail("a notice for an unknown request %s: %+v", n.Request, n.Notice)
		return true
	})
	slices.SortFunc(news, func(a, b deliveredNotice) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(s.asks[a.Request].asked.ID, s.asks[b.Request].asked.ID), cmp.Compare(a.Rev, b.Rev),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Step, b.Step))
	})
	for _, n := range news {
		a := s.asks[n.Request]
		// the run may have continued by itself
		if n.Kind == desk.NoticeRequester && n.Cause == desk.EventDecided {
			s.watchRequest(a, a.run.key)
		}
		s.onNotice(a, n.Notice)
	}
}

// runOf returns the state key of the run of a request.
func (s *simulation) runOf(id string) string {
	e := s.anyInstance()
	defer e.calls.Done()
	q, err := e.GetRequest(context.Background(), account, id)
	if err != nil {
		s.fail("%s: %v", id, err)
	}
	return q.StateKey
}

// anyInstance returns an executor as soon as one is up.
func (s *simulation) anyInstance() *instance {
	for {
		if e := s.service.take(s.rng); e != nil {
			return e
		}
		time.Sleep(10 * time.Minute)
	}
}

// watchRequest follows a run after one of its requests was closed.
func (s *simulation) watchRequest(a *modelRequest, key string) {
	e := s.anyInstance()
	defer e.calls.Done()
	if a != nil {
		s.ignoreRace(a)
	}
	if a != nil && a.outcome == "" && !time.Now().Before(a.deadline) {
		a.end(desk.OutcomeExpired, a.deadline)
		if a.question {
			s.markWithdrawn(a.run)
		}
	}
	view, err := e.GetRun(context.Background(), account, key)
	if err != nil {
		s.fail("%s: %v", key, err)
		return
	}
	s.onOutcome(s.runs[key], view.Outcome)
}

// onOutcome records the outcome of a run.
func (s *simulation) onOutcome(r *run, outcome fermata.Outcome) {
	switch o := outcome.(type) {
	case fermata.NeedsInput:
		slices.SortFunc(o.Interrupts, func(a, b fermata.OpenInterrupt) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
		for _, i := range o.Interrupts {
			s.discover(r, i)
		}
	case fermata.Completed:
		for _, a := range r.asks {
			s.ignoreRace(a) // an outage may have moved the deadline of an expired request
		}
		r.over = true
	case fermata.Failed:
		if !s.hasExpiredRequest(r, time.Now()) && !r.over {
			s.fail("run %s failed: %s %s", r.key, o.Code, o.Message)
		}
		r.over = true
	}
}

// discover adds a new request to the model. Its agent must have wanted it.
func (s *simulation) discover(r *run, i fermata.OpenInterrupt) {
	if s.asks[i.ID] != nil {
		return
	}
	var o order
	question := i.Kind == inquiries.Name()
	if question {
		var q inquiry
		if err := json.Unmarshal(i.Data, &q); err != nil {
			s.fail("%s: %v", i.ID, err)
		}
		o.ID = q.ID
	} else {
		var q fermata.ApprovalRequest
		if err := json.Unmarshal(i.Data, &q); err != nil || json.Unmarshal(q.Args, &o) != nil {
			s.fail("%s is requested as %s", i.ID, i.Data)
		}
	}
	wanted := false
	for _, t := range r.tasks {
		wanted = wanted || t.Order == o
	}
	if !wanted || s.tasks[o.ID] != r {
		s.fail("run %s has a request about %+v, which it does not want", r.key, o)
		return
	}
	e := s.anyInstance()
	defer e.calls.Done()
	doc, err := e.RequestDocument(context.Background(), account, i.ID)
	if err != nil {
		s.fail("%s: %v", i.ID, err)
		return
	}
	a := newModelRequest(r, i.ID, o, question, s.plans, doc.Created, func(o order, now time.Time) modelRequirement { return s.modelRequirement(r, o, now, doc.Requirement) })
	if doc.Created.Before(r.started.Add(-time.Millisecond)) || doc.Created.After(time.Now().Add(time.Millisecond)) {
		s.failRequest(a, "it was made at %s", doc.Created)
	}
	if !doc.Deadline.Equal(a.deadline) {
		s.failRequest(a, "its deadline is %s, want %s", doc.Deadline, a.deadline)
	}
	if requirementOf(o).deny || requirementOf(o).unlessOften {
		s.failRequest(a, "the rules say %+v, but there is a request", requirementOf(o))
	}
	if !question && people(doc.Requirement) != a.need.people() {
		s.failRequest(a, "%d people are required, want %d", people(doc.Requirement), a.need.people())
	}
	s.asks[i.ID] = a
	s.order = append(s.order, a)
	r.asks = append(r.asks, a)
	if r.scene != nil {
		r.scene(a)
	}
}

// failRequest reports an error of a request and logs its run, as the model and the desk have it.
func (s *simulation) failRequest(a *modelRequest, format string, args ...any) {
	defer s.logRun(a.run)
	s.fail("%s (%s, %+v, made %s): %s", a.id, a.need.rule, a.asked, a.created.Format(time.DateTime), fmt.Sprintf(format, args...))
}

// logRun logs everything that is known of the requests of a run.
func (s *simulation) logRun(r *run) {
	if s.errs > maxErrors {
		return
	}
	for _, a := range r.asks {
		s.t.Logf("%s of %s, by %s: %v; edited by %q; %q at %s by %v", a.id, a.need.rule, r.requester, a.votes, a.editor, a.outcome, a.ended.Format(time.DateTime), a.by)
		e := s.service.take(s.rng)
		if e == nil {
			continue
		}
		if doc, err := e.RequestDocument(context.Background(), account, a.id); err == nil {
			s.t.Logf("  desk: %s, %+v; prior %v; edit %+v; deadline %s; decision %+v", doc.State, doc.Votes, doc.Subject.PriorApprovers, doc.Edit, doc.Deadline, doc.Decision)
			for _, was := range doc.Log {
				s.t.Logf("    %+v", was)
			}
		}
		if q, err := e.GetRequest(context.Background(), account, a.id); err == nil {
			s.t.Logf("  run: %s by %s at %s, deadline %s", q.Verdict, q.Source, q.DecidedAt, q.Deadline)
		}
		e.calls.Done()
	}
}

const maxErrors = 20

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.errs++
	if s.errs > maxErrors {
		return
	}
	s.t.Errorf("FERMATA_CALENDARSIM_SEED=%d FERMATA_CALENDARSIM_SIZE=%d FERMATA_CALENDARSIM_DAYS=%d, %s: %s", s.seed, s.size, s.days, time.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}
