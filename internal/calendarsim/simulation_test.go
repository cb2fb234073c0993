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
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/policy"
)

// simulation is one of them, at work.
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
	tasks  map[string]*run // by the id of a task
	asks   map[string]*modelRequest
	order  []*modelRequest
	clicks int
	tally  map[string]int // how words were answered
	played map[string]int // scenes that came to their point

	mu       sync.Mutex
	told     []deliveredNotice
	read     int // of told
	failures map[string]bool
	bell     chan struct{}
	errs     int
}

// deliveredNotice is a notice that a channel was handed.
type deliveredNotice struct {
	desk.Notice
	at time.Time
}

// event is something that somebody will do.
type event struct {
	at time.Time
	n  int // in the order of planning, if several are at one time
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

// at plans something.
func (s *simulation) at(t time.Time, do func()) {
	s.queue.n++
	heap.Push(&s.queue, event{t, s.queue.n, do})
}

// runSimulation plays one season of so many requests, about, and returns how many there were. Runs are started for so many days; after that the season
// lasts until everything must be over.
func runSimulation(t *testing.T, seed uint64, requests, days int, where func(*testing.T) storage) (total int) {
	t.Helper()
	k := where(t)
	set, err := policy.Load("season.yaml", []byte(rulesText), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, seed, days)
		s.size, s.days = requests, days
		s.open(k, fixedPolicy{set})
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
	// Clocks change in spring and in autumn, on other days in other places.
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
	s.service = newService(s.t, k, agent(s.t, s.sink), key, executor.DeskConfig{Directory: s.staff, Routes: routes, Policy: rules, Notify: s.notify})
	s.service.start()
}

// notify is the channels. Now and then one is down, once for each notice.
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

// loop goes from event to event, until everything must be over.
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

// last is when everything is over that is known now, and has been told.
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

// hear passes on what the channels were told, in an order that does not depend on who was faster.
func (s *simulation) processNotices() {
	synctest.Wait() // everybody who has something to say now has said it
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
		s.fail("a notice of %s, which nobody has asked: %+v", n.Request, n.Notice)
		return true
	})
	slices.SortFunc(news, func(a, b deliveredNotice) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(s.asks[a.Request].asked.ID, s.asks[b.Request].asked.ID), cmp.Compare(a.Rev, b.Rev),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Step, b.Step))
	})
	for _, n := range news {
		a := s.asks[n.Request]
		if n.Kind == desk.NoticeRequester && n.Cause == desk.EventDecided { // the run may have gone on by itself
			s.watchRequest(a, a.run.key)
		}
		s.onNotice(a, n.Notice)
	}
}

// runOf is the state key of the run that asks something.
func (s *simulation) runOf(id string) string {
	e := s.anyInstance()
	defer e.calls.Done()
	q, err := e.GetRequest(context.Background(), account, id)
	if err != nil {
		s.fail("%s: %v", id, err)
	}
	return q.StateKey
}

// anybody is an executor, as soon as one is up.
func (s *simulation) anyInstance() *instance {
	for {
		if e := s.service.take(s.rng); e != nil {
			return e
		}
		time.Sleep(10 * time.Minute)
	}
}

// follow looks how far a run has come, of which something has ended.
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

// came takes what a run has come to.
func (s *simulation) onOutcome(r *run, outcome fermata.Outcome) {
	switch o := outcome.(type) {
	case fermata.NeedsInput:
		slices.SortFunc(o.Interrupts, func(a, b fermata.OpenInterrupt) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
		for _, i := range o.Interrupts {
			s.discover(r, i)
		}
	case fermata.Completed:
		for _, a := range r.asks {
			s.ignoreRace(a) // an outage may have moved what ended before it was over
		}
		r.over = true
	case fermata.Failed:
		if !s.hasExpiredRequest(r, time.Now()) && !r.over {
			s.fail("run %s failed: %s %s", r.key, o.Code, o.Message)
		}
		r.over = true
	}
}

// discover makes a request of a question that was not known. It must be one that its agent wanted to ask.
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
			s.fail("%s is asked as %s", i.ID, i.Data)
		}
	}
	wanted := false
	for _, t := range r.tasks {
		wanted = wanted || t.Order == o
	}
	if !wanted || s.tasks[o.ID] != r {
		s.fail("run %s is asked about %+v, which it does not want", r.key, o)
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
		s.failRequest(a, "it is open until %s, not until %s", doc.Deadline, a.deadline)
	}
	if requirementOf(o).deny || requirementOf(o).unlessOften {
		s.failRequest(a, "the rules say %+v, and it is asked", requirementOf(o))
	}
	if !question && people(doc.Requirement) != a.need.people() {
		s.failRequest(a, "%d people are asked, not %d", people(doc.Requirement), a.need.people())
	}
	s.asks[i.ID] = a
	s.order = append(s.order, a)
	r.asks = append(r.asks, a)
	if r.scene != nil {
		r.scene(a)
	}
}

// bad notes that something is wrong with a request, and tells the story of its run: as the model has it, and as the desk does.
func (s *simulation) failRequest(a *modelRequest, format string, args ...any) {
	defer s.logRun(a.run)
	s.fail("%s (%s, %+v, made %s): %s", a.id, a.need.rule, a.asked, a.created.Format(time.DateTime), fmt.Sprintf(format, args...))
}

// tell shows what everybody knows of the requests of a run.
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
			s.t.Logf("  to the desk: %s, %+v; prior %v; edit %+v; deadline %s; final %+v", doc.State, doc.Votes, doc.Subject.PriorApprovers, doc.Edit, doc.Deadline, doc.Decision)
			for _, was := range doc.Log {
				s.t.Logf("    %+v", was)
			}
		}
		if q, err := e.GetRequest(context.Background(), account, a.id); err == nil {
			s.t.Logf("  to the run: %s by %s at %s, deadline %s", q.Verdict, q.Source, q.DecidedAt, q.Deadline)
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
	s.t.Errorf("FERMATA_SEASON_SEED=%d FERMATA_SEASON_SIZE=%d FERMATA_SEASON_DAYS=%d, %s: %s", s.seed, s.size, s.days, time.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}
