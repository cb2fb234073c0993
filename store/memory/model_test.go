package memory

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/explore"
	"github.com/fermata-go/fermata/store"
)

// The model check explores every order in which people decide, workers work, processes die and clocks run out, on the very code
// of the book. It is exhaustive within its bounds: one run with two gates, two workers, three people of whom two decide at once and one
// clicks twice, one crash, two leases that end under a worker which goes on, one deadline, one worker that gives up.

// at is the time of the model. It stands still; what time does is done by actions.
var at = time.Unix(1_000_000, 0)

var gates = []string{"gate1", "gate2"}

// scene is one state of the world.
type scene struct {
	book    book
	workers [2]worker
	clicks  []click
	// taken is the provider's checkpoint: how many gates it has behind it. happened is what the outside world saw.
	taken    int
	happened map[string]int
	faults   faults
	late     bool // somebody has decided what nobody else would
}

type faults struct{ crashes, lapses, deadlines, releases int }

// click is a request of a person, and what it was answered.
type click struct {
	decision store.Decision
	answer   store.Result // "" as long as there is none
}

// worker is a process at work on the run.
type worker struct {
	step  step
	lease store.Lease
	todo  store.Interrupt // the decision it works on
}

type step int

const (
	idle    step = iota
	claimed      // has the run
	began        // has written down the intent
	called       // the target has done it
	ended        // has written down that it is done
	taken        // the provider has saved that the gate is behind it
)

func (s *scene) clone() *scene {
	c := *s
	c.book = book{runs: make(map[store.Key]*bookedRun), resumes: maps.Clone(s.book.resumes), effects: make(map[effectKey]*store.Effect), ready: s.book.ready}
	for key, run := range s.book.runs {
		own := *run
		own.asked = nil
		for _, i := range run.asked {
			dup := *i
			own.asked = append(own.asked, &dup)
		}
		c.book.runs[key] = &own
	}
	for key, resume := range s.book.resumes {
		dup := *resume
		c.book.resumes[key] = &dup
	}
	for key, line := range s.book.effects {
		dup := *line
		c.book.effects[key] = &dup
	}
	c.clicks = slices.Clone(s.clicks)
	c.happened = maps.Clone(s.happened)
	return &c
}

func (s *scene) run() *bookedRun { return s.book.runs[store.Key{Account: "a", Run: "r"}] }

// print is the same for states from which the same can follow.
func (s *scene) print() string {
	b := make([]byte, 0, 128)
	put := func(v ...int) {
		for _, n := range v {
			b = append(b, byte(n))
		}
	}
	name := func(text string) { b = append(append(b, text...), ';') }
	r := s.run()
	name(string(r.Status))
	put(int(r.Fence), flag(r.Until.After(at)), s.taken, s.faults.crashes, s.faults.lapses, s.faults.deadlines, s.faults.releases, flag(s.late))
	for _, w := range s.workers {
		put(int(w.step), int(w.lease.Fence))
		name(w.todo.ID + string(w.todo.Verdict))
	}
	for _, i := range r.asked {
		put(flag(i.Applied), flag(i.Deadline.After(at)))
		name(i.ID + string(i.State) + string(i.Verdict) + i.By)
	}
	for _, gate := range gates {
		put(s.happened[gate])
		if line := s.book.effects[effectKey{"a", gate, 1}]; line != nil {
			name(string(line.State))
		}
	}
	for _, c := range s.clicks {
		name(string(c.answer))
	}
	return string(b)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func opening(f faults) *scene {
	s := &scene{book: newBook(), happened: map[string]int{}, faults: f}
	lease, err := s.book.create(at, store.NewRun{Account: "a", ID: "r", StateKey: "k", Owner: "w", Lease: time.Hour})
	if err == nil {
		_, err = s.book.rest(at, lease, store.Rest{Status: store.Waiting, Open: gate(0)})
	}
	if err != nil {
		panic(err)
	}
	word := func(person, id, gate string, verdict store.Verdict) click {
		answer := store.Answer{Interrupt: gate, Verdict: verdict}
		if verdict == store.Approve {
			answer.Final = "digest of " + gate
		}
		return click{decision: store.Decision{Account: "a", Run: "r", ResumeID: id, Actor: person, Body: gate + string(verdict), Answers: []store.Answer{answer}}}
	}
	s.clicks = []click{
		word("ann", "1", "gate1", store.Approve), word("ann", "1", "gate1", store.Approve), // twice
		word("bob", "2", "gate1", store.Reject), // at the same time
		word("cat", "3", "gate2", store.Approve),
	}
	return s
}

func gate(n int) []store.NewInterrupt {
	return []store.NewInterrupt{{ID: gates[n], Action: "digest of " + gates[n], Timeout: time.Hour}}
}

// action is something that can happen. Faults are what must not be needed for a run to settle.
type action struct {
	name  string
	fault bool
	do    func(*scene)
}

func (s *scene) actions() []action {
	var list []action
	add := func(fault bool, name string, do func(*scene)) { list = append(list, action{name, fault, do}) }
	for n, c := range s.clicks {
		if c.answer == "" {
			add(false, fmt.Sprintf("%s decides %s (%s)", c.decision.Actor, c.decision.Answers[0].Interrupt, c.decision.Answers[0].Verdict), func(s *scene) { s.decide(n) })
		}
	}
	for n := range s.workers {
		w := s.workers[n]
		add(false, fmt.Sprintf("worker %d goes on from %d", n, w.step), func(s *scene) { s.work(n) })
		if w.step != idle && s.faults.crashes > 0 {
			add(true, fmt.Sprintf("worker %d dies", n), func(s *scene) {
				s.faults.crashes--
				s.workers[n] = worker{}
			})
		}
		if w.step != idle && s.faults.releases > 0 {
			for _, how := range []store.Release{{}, {Park: true}} {
				add(true, fmt.Sprintf("worker %d gives up: %+v", n, how), func(s *scene) { s.giveUp(n, how) })
			}
		}
	}
	r := s.run()
	if r.Status == store.Running && r.Until.After(at) {
		owned := slices.ContainsFunc(s.workers[:], func(w worker) bool { return w.step != idle && w.lease.Fence == r.Fence })
		if !owned || s.faults.lapses > 0 { // of a dead owner it always ends
			add(owned, "the lease ends", func(s *scene) {
				if owned {
					s.faults.lapses--
				}
				s.run().Until = at
			})
		}
	}
	if s.faults.deadlines > 0 {
		add(true, "a deadline passes", func(s *scene) {
			s.faults.deadlines--
			for _, i := range s.run().asked {
				i.Deadline = at
			}
		})
	}
	answered := !slices.ContainsFunc(s.clicks, func(c click) bool { return c.answer == "" })
	for _, i := range r.asked {
		if answered && i.State == store.Pending && i.Deadline.After(at) {
			add(false, "dan decides "+i.ID, func(s *scene) { s.decideLate(i.ID) })
		}
	}
	add(false, "the clock is looked at", func(s *scene) { s.book.expire(at, time.Time{}, 1, nil) })
	switch {
	case r.Status == store.Parked && s.doubtful():
		add(false, "somebody looks what happened", func(s *scene) { s.reconcile() })
	case r.Status == store.Parked: // before, it could be retried, and parked because it is in doubt, for ever
		add(false, "somebody wants it to be tried again", func(s *scene) {
			if _, err := s.book.retry(at, "a", r.ID, store.Beside{}); err != nil {
				panic(err)
			}
		})
	}
	return list
}

// giveUp is a worker that gives the run back undone, wherever it is with it.
func (s *scene) giveUp(n int, how store.Release) {
	s.faults.releases--
	_ = s.book.release(at, s.workers[n].lease, how) // refused: somebody else has it
	s.workers[n] = worker{}
}

func (s *scene) decide(n int) {
	receipt, err := s.book.decide(at, s.clicks[n].decision)
	if err != nil {
		panic(err)
	}
	s.clicks[n].answer = receipt.Result
}

// decideLate is somebody who comes when all others have been there, so that a run always has a chance.
func (s *scene) decideLate(gate string) {
	answer := store.Answer{Interrupt: gate, Verdict: store.Approve, Final: "digest of " + gate}
	if _, err := s.book.decide(at, store.Decision{Account: "a", Run: "r", ResumeID: "late " + gate, Actor: "dan", Answers: []store.Answer{answer}}); err != nil {
		panic(err)
	}
	s.late = true
}

// work is one step of a worker. Whatever it writes may be refused, because it has lost the run without knowing.
func (s *scene) work(n int) {
	w := &s.workers[n]
	gate := w.todo.ID
	switch w.step {
	case idle:
		if work := s.book.claim(at, store.Claim{Owner: "w", Lease: time.Hour}); work != nil {
			*w = worker{step: claimed, lease: work.Lease}
			if len(work.Decided) > 0 {
				w.todo = work.Decided[0]
			}
		}
	case claimed:
		s.begin(w)
	case began:
		s.happened[gate]++ // no fence can hold back a call that is on its way
		w.step = called
	case called:
		if err := s.book.end(at, store.EffectEnd{Account: "a", Interrupt: gate, Number: 1, State: store.Succeeded}); err != nil {
			panic(err)
		}
		w.step = ended
	case ended:
		s.save(w)
	case taken:
		s.rest(w)
	}
}

func (s *scene) begin(w *worker) {
	if w.todo.ID == "" || w.todo.Verdict != store.Approve {
		w.step = ended // there is nothing to do outside
		return
	}
	line, begun, err := s.book.begin(at, w.lease, store.NewEffect{Interrupt: w.todo.ID, Number: 1, Digest: "digest of " + w.todo.ID})
	switch {
	case err != nil:
		*w = worker{}
	case begun:
		w.step = began
	case line.State == store.Succeeded:
		w.step = ended
	case line.State == store.Faulted: // somebody looked, and it had not happened: give up. To try again is a person's word to give.
		_, _ = s.book.rest(at, w.lease, store.Rest{Status: store.Failed, Applied: []string{w.todo.ID}})
		*w = worker{}
	default: // nobody knows: leave it to somebody who can look
		_ = s.book.release(at, w.lease, store.Release{Park: true})
		*w = worker{}
	}
}

// open is what the provider waits for.
func (s *scene) open() []store.NewInterrupt {
	if s.taken < len(gates) {
		return gate(s.taken)
	}
	return nil
}

// save is the provider's checkpoint, which is refused to a former owner.
func (s *scene) save(w *worker) {
	if _, err := s.book.owned(w.lease); err != nil {
		*w = worker{}
		return
	}
	if s.taken < len(gates) && gates[s.taken] == w.todo.ID {
		s.taken++
	}
	w.step = taken
}

func (s *scene) rest(w *worker) {
	rest := store.Rest{Status: store.Waiting, Outcome: []byte("o"), Open: s.open()}
	if w.todo.ID != "" {
		rest.Applied = []string{w.todo.ID}
		if w.todo.Verdict != store.Approve {
			rest.Status, rest.Open = store.Failed, nil
		}
	}
	if s.taken == len(gates) {
		rest.Status = store.Completed
	}
	_, _ = s.book.rest(at, w.lease, rest) // refused: somebody else has it
	*w = worker{}
}

// doubtful reports whether nobody knows of an effect whether it happened.
func (s *scene) doubtful() bool {
	for _, line := range s.book.effects {
		if line.State == store.Started {
			return true
		}
	}
	return false
}

// reconcile is a person who looks at the target.
func (s *scene) reconcile() {
	for key, line := range s.book.effects {
		if line.State == store.Started {
			state := store.Faulted
			if s.happened[key.interrupt] > 0 {
				state = store.Succeeded
			}
			if err := s.book.end(at, store.EffectEnd{Account: "a", Interrupt: key.interrupt, Number: 1, State: state}); err != nil {
				panic(err)
			}
		}
	}
}

// broken says which promise does not hold in this state.
func (s *scene) broken() []string {
	r := s.run()
	for _, i := range r.asked {
		switch {
		case s.happened[i.ID] > 1:
			return []string{"I4: an effect happened twice"}
		case s.happened[i.ID] > 0 && (i.State != store.Decided || i.Verdict != store.Approve):
			return []string{"I4: an effect happened without an approve"}
		case i.Source == store.Clock && i.Verdict != store.Expired:
			return []string{"I11: the clock has decided"}
		case r.Status == store.Waiting && i.State == store.Decided && !i.Applied:
			return []string{"I2: a decision is forgotten"}
		case r.Status == store.Completed && i.State == store.Pending:
			return []string{"I5: a gate was passed"}
		}
	}
	if s.happened["gate2"] > 0 && s.happened["gate1"] == 0 {
		return []string{"I5: the first gate was passed by"}
	}
	accepted := map[string]string{}
	for _, c := range s.clicks {
		if c.answer != store.Accepted {
			continue
		}
		gate := c.decision.Answers[0].Interrupt
		if i := r.find(gate); i.By != c.decision.Actor || i.Verdict != c.decision.Answers[0].Verdict {
			return []string{"I1: what was accepted is not what is written down"}
		}
		if by := accepted[gate]; by != "" && by != c.decision.Actor {
			return []string{"I1: two people were told that theirs counts"}
		}
		accepted[gate] = c.decision.Actor
	}
	return nil
}

// steps are the states that can follow.
func (s *scene) steps() []explore.Step[*scene] {
	var list []explore.Step[*scene]
	for _, a := range s.actions() {
		next := s.clone()
		a.do(next)
		list = append(list, explore.Step[*scene]{Name: a.name, Fault: a.fault, To: next})
	}
	return list
}

func TestModel_TheProtocolHolds(t *testing.T) {
	all := []faults{{crashes: 1, lapses: 1}, {crashes: 1, deadlines: 1}, {lapses: 1, deadlines: 1}, {lapses: 1, releases: 1}, {deadlines: 1, releases: 1}}
	if os.Getenv("FERMATA_SOAK") != "" {
		all = []faults{{crashes: 2, lapses: 2, deadlines: 1}, {crashes: 1, lapses: 1, deadlines: 1, releases: 2}}
	}
	for _, bounds := range all {
		result, err := explore.Run(explore.Model[*scene, string]{
			Start: opening(bounds), Key: (*scene).print, Steps: (*scene).steps, Broken: (*scene).broken,
			Settled: func(s *scene) bool { return !s.run().Status.Alive() }, Limit: 20_000_000,
		})
		if err != nil || len(result.Broken) > 0 || result.Stuck > 0 {
			t.Fatalf("%+v: %v; %v; %d of %d states cannot settle:\n%s", bounds, err, result.Broken, result.Stuck, result.States, result.StuckAt)
		}
		t.Logf("%+v: %d states", bounds, result.States)
	}
}
