package season

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
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/policy"
)

// season is one of them, at work.
type season struct {
	t       *testing.T
	seed    uint64
	size    int
	days    int
	rng     *rand.Rand
	service *service
	sink    *sink
	staff   *directory
	people  map[string]*person
	places  []*place
	plans   map[string]plan

	queue  queue
	runs   map[string]*run // by key
	tasks  map[string]*run // by the id of a task
	asks   map[string]*ask
	order  []*ask
	clicks int
	tally  map[string]int // how words were answered
	played map[string]int // scenes that came to their point

	mu       sync.Mutex
	told     []told
	read     int // of told
	failures map[string]bool
	bell     chan struct{}
	errs     int
}

// told is a notice that a channel was handed.
type told struct {
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
func (s *season) at(t time.Time, do func()) {
	s.queue.n++
	heap.Push(&s.queue, event{t, s.queue.n, do})
}

// play plays one season of so many requests, about, and returns how many there were. Runs are started for so many days; after that the season
// lasts until everything must be over.
func play(t *testing.T, seed uint64, requests, days int, where func(*testing.T) kept) (total int) {
	t.Helper()
	k := where(t)
	set, err := policy.Load("season.yaml", []byte(rulesText), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSeason(t, seed, days)
		s.size, s.days = requests, days
		s.open(k, fixed{set})
		end := time.Now().Add(time.Duration(days) * 24 * time.Hour)
		s.plan(requests, end)
		s.loop(end)
		s.check()
		total = len(s.order)
	})
	return total
}

func newSeason(t *testing.T, seed uint64, days int) *season {
	s := &season{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), sink: &sink{deeds: make(map[string][]deed), refused: make(map[string]time.Time)}, runs: make(map[string]*run),
		tasks: make(map[string]*run), asks: make(map[string]*ask), tally: make(map[string]int), played: make(map[string]int), failures: make(map[string]bool),
		bell: make(chan struct{}, 1), people: make(map[string]*person),
	}
	// Clocks change in spring and in autumn, on other days in other places.
	year, month := 2026+s.rng.IntN(4), []time.Month{time.March, time.October}[s.rng.IntN(2)]
	begin := time.Date(year, month, 1+s.rng.IntN(14), s.rng.IntN(24), s.rng.IntN(60), s.rng.IntN(60), 0, time.UTC)
	time.Sleep(time.Until(begin))
	holidays := []string{begin.AddDate(0, 0, 9).Format(time.DateOnly), begin.AddDate(0, 0, 10).Format(time.DateOnly), begin.AddDate(0, 0, 33).Format(time.DateOnly)}
	s.places = offices(year, holidays)
	for _, p := range s.places {
		if err := p.survey(begin.AddDate(0, 0, -2), begin.AddDate(0, 0, days+90)); err != nil {
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

func (s *season) open(k kept, rules policy.Source) {
	key, err := box.New(box.Key{7})
	if err != nil {
		s.t.Fatal(err)
	}
	routes, plans := routesOf(s.places)
	s.plans = plans
	s.service = newService(s.t, k, agent(s.t, s.sink), key, executor.Desk{Directory: s.staff, Routes: routes, Rules: rules, Notify: s.notify})
	s.service.up()
}

// notify is the channels. Now and then one is down, once for each notice.
func (s *season) notify(_ context.Context, _ string, n desk.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failures[n.Key] && len(n.Key)%7 == 3 && n.Rev%5 == 0 {
		s.failures[n.Key] = true
		return fmt.Errorf("the channel is down")
	}
	s.told = append(s.told, told{n, time.Now()})
	select {
	case s.bell <- struct{}{}:
	default:
	}
	return nil
}

// loop goes from event to event, until everything must be over.
func (s *season) loop(end time.Time) {
	var operator sync.WaitGroup
	operator.Go(func() { s.service.operate(rand.New(rand.NewPCG(s.seed, 2)), end) })
	last := end
	for {
		s.hear()
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
func (s *season) last() time.Time {
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
func (s *season) hear() {
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
		s.follow(nil, unknown[id])
	}
	news = slices.DeleteFunc(news, func(n told) bool {
		if s.asks[n.Request] != nil {
			return false
		}
		s.fail("a notice of %s, which nobody has asked: %+v", n.Request, n.Notice)
		return true
	})
	slices.SortFunc(news, func(a, b told) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(s.asks[a.Request].asked.ID, s.asks[b.Request].asked.ID), cmp.Compare(a.Rev, b.Rev),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Step, b.Step))
	})
	for _, n := range news {
		a := s.asks[n.Request]
		if n.Kind == desk.TellRequester && n.About == desk.WasDecided { // the run may have gone on by itself
			s.follow(a, a.run.key)
		}
		s.heard(a, n.Notice)
	}
}

// runOf is the state key of the run that asks something.
func (s *season) runOf(id string) string {
	e := s.anybody()
	defer e.calls.Done()
	q, err := e.Question(context.Background(), account, id)
	if err != nil {
		s.fail("%s: %v", id, err)
	}
	return q.StateKey
}

// anybody is an executor, as soon as one is up.
func (s *season) anybody() *instance {
	for {
		if e := s.service.take(s.rng); e != nil {
			return e
		}
		time.Sleep(10 * time.Minute)
	}
}

// follow looks how far a run has come, of which something has ended.
func (s *season) follow(a *ask, key string) {
	e := s.anybody()
	defer e.calls.Done()
	if a != nil {
		s.spare(a)
	}
	if a != nil && a.outcome == "" && !time.Now().Before(a.deadline) {
		a.end(desk.Lapsed, a.deadline)
		if a.question {
			s.dropped(a.run)
		}
	}
	view, err := e.Look(context.Background(), account, key)
	if err != nil {
		s.fail("%s: %v", key, err)
		return
	}
	s.came(s.runs[key], view.Outcome)
}

// came takes what a run has come to.
func (s *season) came(r *run, outcome fermata.Outcome) {
	switch o := outcome.(type) {
	case fermata.NeedsInput:
		slices.SortFunc(o.Interrupts, func(a, b fermata.OpenInterrupt) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
		for _, i := range o.Interrupts {
			s.discover(r, i)
		}
	case fermata.Completed:
		for _, a := range r.asks {
			s.spare(a) // an outage may have moved what ended before it was over
		}
		r.over = true
	case fermata.Failed:
		if !s.lapsed(r, time.Now()) && !r.over {
			s.fail("run %s failed: %s %s", r.key, o.Code, o.Message)
		}
		r.over = true
	}
}

// discover makes a request of a question that was not known. It must be one that its agent wanted to ask.
func (s *season) discover(r *run, i fermata.OpenInterrupt) {
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
	e := s.anybody()
	defer e.calls.Done()
	doc, err := e.Request(context.Background(), account, i.ID)
	if err != nil {
		s.fail("%s: %v", i.ID, err)
		return
	}
	a := newAsk(r, i.ID, o, question, s.plans, doc.Created, func(o order, now time.Time) demand { return s.demand(r, o, now, doc.Need) })
	if doc.Created.Before(r.started.Add(-time.Millisecond)) || doc.Created.After(time.Now().Add(time.Millisecond)) {
		s.bad(a, "it was made at %s", doc.Created)
	}
	if !doc.Deadline.Equal(a.deadline) {
		s.bad(a, "it is open until %s, not until %s", doc.Deadline, a.deadline)
	}
	if demandOf(o).deny || demandOf(o).unlessOften {
		s.bad(a, "the rules say %+v, and it is asked", demandOf(o))
	}
	if !question && people(doc.Need) != a.need.people() {
		s.bad(a, "%d people are asked, not %d", people(doc.Need), a.need.people())
	}
	s.asks[i.ID] = a
	s.order = append(s.order, a)
	r.asks = append(r.asks, a)
	if r.scene != nil {
		r.scene(a)
	}
}

// bad notes that something is wrong with a request, and tells the story of its run: as the model has it, and as the desk does.
func (s *season) bad(a *ask, format string, args ...any) {
	defer s.tell(a.run)
	s.fail("%s (%s, %+v, made %s): %s", a.id, a.need.rule, a.asked, a.created.Format(time.DateTime), fmt.Sprintf(format, args...))
}

// tell shows what everybody knows of the requests of a run.
func (s *season) tell(r *run) {
	if s.errs > mostErrors {
		return
	}
	for _, a := range r.asks {
		s.t.Logf("%s of %s, by %s: %v; edited by %q; %q at %s by %v", a.id, a.need.rule, r.requester, a.votes, a.editor, a.outcome, a.ended.Format(time.DateTime), a.by)
		e := s.service.take(s.rng)
		if e == nil {
			continue
		}
		if doc, err := e.Request(context.Background(), account, a.id); err == nil {
			s.t.Logf("  to the desk: %s, %+v; prior %v; edit %+v; deadline %s; final %+v", doc.State, doc.Votes, doc.Asked.PriorApprovers, doc.Edit, doc.Deadline, doc.Final)
			for _, was := range doc.Log {
				s.t.Logf("    %+v", was)
			}
		}
		if q, err := e.Question(context.Background(), account, a.id); err == nil {
			s.t.Logf("  to the run: %s by %s at %s, deadline %s", q.Verdict, q.Source, q.At, q.Deadline)
		}
		e.calls.Done()
	}
}

const mostErrors = 20

func (s *season) fail(format string, args ...any) {
	s.t.Helper()
	s.errs++
	if s.errs > mostErrors {
		return
	}
	s.t.Errorf("FERMATA_SEASON_SEED=%d FERMATA_SEASON_SIZE=%d FERMATA_SEASON_DAYS=%d, %s: %s", s.seed, s.size, s.days, time.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}
