package memory

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/modelcheck"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
)

// The model check explores every interleaving of decisions, workers, crashes and timeouts on the
// code of tables. It is exhaustive within its bounds: one run with two gates, two workers, three
// people of whom two decide at once and one clicks twice, one crash, two leases that expire under a
// running worker, one deadline, one worker that gives up.

// at is the time of the model. It does not advance; actions simulate the effects of time.
var at = time.Unix(1_000_000, 0)

var gates = []string{"gate1", "gate2"}

// world is one state of the model.
type world struct {
	tables  tables
	workers [2]worker
	clicks  []submission
	// applied is the provider's checkpoint: the number of gates that are passed. effects counts the
	// calls that the target has seen.
	applied       int
	effects       map[string]int
	faults        faultBudget
	lateDecisions bool // the late decision was made
}

type faultBudget struct{ crashes, leaseExpiries, deadlines, releases int }

// submission is a decision of a person and its result.
type submission struct {
	decision store.Decision
	answer   store.DecisionResult // "" until there is one
}

// worker is a process that executes the run.
type worker struct {
	step  step
	lease store.Lease
	todo  store.Interrupt // the decision that it applies
}

type step int

const (
	idle    step = iota
	claimed      // has the run
	began        // has recorded the intent
	called       // the target was called
	ended        // has recorded the end of the effect
	taken        // the provider has saved that the gate is passed
)

func (s *world) clone() *world {
	c := *s
	c.tables = tables{runs: make(map[store.Key]*runRow), resumes: maps.Clone(s.tables.resumes), effects: make(map[effectKey]*store.Effect), readyCount: s.tables.readyCount}
	for key, run := range s.tables.runs {
		own := *run
		own.interrupts = nil
		for _, i := range run.interrupts {
			dup := *i
			own.interrupts = append(own.interrupts, &dup)
		}
		c.tables.runs[key] = &own
	}
	for key, resume := range s.tables.resumes {
		dup := *resume
		c.tables.resumes[key] = &dup
	}
	for key, line := range s.tables.effects {
		dup := *line
		c.tables.effects[key] = &dup
	}
	c.clicks = slices.Clone(s.clicks)
	c.effects = maps.Clone(s.effects)
	return &c
}

func (s *world) run() *runRow { return s.tables.runs[store.Key{Account: "a", Run: "r"}] }

// fingerprint identifies equivalent states.
func (s *world) fingerprint() string {
	b := make([]byte, 0, 128)
	put := func(v ...int) {
		for _, n := range v {
			b = append(b, byte(n))
		}
	}
	name := func(text string) { b = append(append(b, text...), ';') }
	r := s.run()
	name(string(r.Status))
	put(int(r.Fence), flag(r.LeaseUntil.After(at)), s.applied, s.faults.crashes, s.faults.leaseExpiries, s.faults.deadlines, s.faults.releases, flag(s.lateDecisions))
	for _, w := range s.workers {
		put(int(w.step), int(w.lease.Fence))
		name(w.todo.ID + string(w.todo.Verdict))
	}
	for _, i := range r.interrupts {
		put(flag(i.Applied), flag(i.Deadline.After(at)))
		name(i.ID + string(i.State) + string(i.Verdict) + i.DecidedBy)
	}
	for _, gate := range gates {
		put(s.effects[gate])
		if line := s.tables.effects[effectKey{"a", gate, 1}]; line != nil {
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

func opening(f faultBudget) *world {
	s := &world{tables: newTables(), effects: map[string]int{}, faults: f}
	lease, err := s.tables.create(at, store.NewRun{Account: "a", ID: "r", StateKey: "k", Owner: "w", Lease: time.Hour})
	if err == nil {
		_, err = s.tables.endExecution(at, lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: gate(0)})
	}
	if err != nil {
		panic(err)
	}
	word := func(person, id, gate string, verdict store.Verdict) submission {
		answer := store.Answer{Interrupt: gate, Verdict: verdict}
		if verdict == store.VerdictApprove {
			answer.ApprovedDigest = "digest of " + gate
		}
		return submission{decision: store.Decision{Account: "a", Run: "r", ResumeID: id, Actor: person, BodyDigest: gate + string(verdict), Answers: []store.Answer{answer}}}
	}
	s.clicks = []submission{
		// twice
		word("ann", "1", "gate1", store.VerdictApprove), word("ann", "1", "gate1", store.VerdictApprove),
		word("bob", "2", "gate1", store.VerdictReject), // concurrently
		word("cat", "3", "gate2", store.VerdictApprove),
	}
	return s
}

func gate(n int) []store.NewInterrupt {
	return []store.NewInterrupt{{ID: gates[n], ActionDigest: "digest of " + gates[n], Timeout: time.Hour}}
}

// action is one possible transition. A run must be able to settle without faults.
type action struct {
	name  string
	fault bool
	do    func(*world)
}

func (s *world) actions() []action {
	var list []action
	add := func(fault bool, name string, do func(*world)) { list = append(list, action{name, fault, do}) }
	for n, c := range s.clicks {
		if c.answer == "" {
			add(false, fmt.Sprintf("%s decides %s (%s)", c.decision.Actor, c.decision.Answers[0].Interrupt, c.decision.Answers[0].Verdict), func(s *world) { s.decide(n) })
		}
	}
	for n := range s.workers {
		w := s.workers[n]
		add(false, fmt.Sprintf("worker %d goes on from %d", n, w.step), func(s *world) { s.work(n) })
		if w.step != idle && s.faults.crashes > 0 {
			add(true, fmt.Sprintf("worker %d dies", n), func(s *world) {
				s.faults.crashes--
				s.workers[n] = worker{}
			})
		}
		if w.step != idle && s.faults.releases > 0 {
			for _, how := range []store.Release{{}, {Park: true}} {
				add(true, fmt.Sprintf("worker %d gives up: %+v", n, how), func(s *world) { s.release(n, how) })
			}
		}
	}
	r := s.run()
	if r.Status == store.StatusRunning && r.LeaseUntil.After(at) {
		owned := slices.ContainsFunc(s.workers[:], func(w worker) bool { return w.step != idle && w.lease.Fence == r.Fence })
		if !owned || s.faults.leaseExpiries > 0 { // the lease of a dead owner always expires
			add(owned, "the lease ends", func(s *world) {
				if owned {
					s.faults.leaseExpiries--
				}
				s.run().LeaseUntil = at
			})
		}
	}
	if s.faults.deadlines > 0 {
		add(true, "a deadline passes", func(s *world) {
			s.faults.deadlines--
			for _, i := range s.run().interrupts {
				i.Deadline = at
			}
		})
	}
	answered := !slices.ContainsFunc(s.clicks, func(c submission) bool { return c.answer == "" })
	for _, i := range r.interrupts {
		if answered && i.State == store.InterruptPending && i.Deadline.After(at) {
			add(false, "dan decides "+i.ID, func(s *world) { s.decideLate(i.ID) })
		}
	}
	add(false, "the clock is looked at", func(s *world) { s.tables.expire(at, time.Time{}, 1, nil) })
	switch {
	case r.Status == store.StatusParked && s.inDoubt():
		add(false, "a person checks the target", func(s *world) { s.reconcile() })
	// before that, the run could be retried and parked again forever
	case r.Status == store.StatusParked:
		add(false, "an operator retries", func(s *world) {
			if _, err := s.tables.retry(at, "a", r.ID, store.Writes{}); err != nil {
				panic(err)
			}
		})
	}
	return list
}

// release is a worker that gives up the run at any point.
func (s *world) release(n int, how store.Release) {
	s.faults.releases--
	_ = s.tables.release(at, s.workers[n].lease, how) // rejected if the run has another owner
	s.workers[n] = worker{}
}

func (s *world) decide(n int) {
	receipt, err := s.tables.decide(at, s.clicks[n].decision)
	if err != nil {
		panic(err)
	}
	s.clicks[n].answer = receipt.Result
}

// decideLate is a last decision after all others, so that a run can always continue.
func (s *world) decideLate(gate string) {
	answer := store.Answer{Interrupt: gate, Verdict: store.VerdictApprove, ApprovedDigest: "digest of " + gate}
	if _, err := s.tables.decide(at, store.Decision{Account: "a", Run: "r", ResumeID: "late " + gate, Actor: "dan", Answers: []store.Answer{answer}}); err != nil {
		panic(err)
	}
	s.lateDecisions = true
}

// work is one step of a worker. Its writes may be rejected, because it may have lost the run.
func (s *world) work(n int) {
	w := &s.workers[n]
	gate := w.todo.ID
	switch w.step {
	case idle:
		if work := s.tables.claim(at, store.Claim{Owner: "w", Lease: time.Hour}); work != nil {
			*w = worker{step: claimed, lease: work.Lease}
			if len(work.Decided) > 0 {
				w.todo = work.Decided[0]
			}
		}
	case claimed:
		s.begin(w)
	case began:
		s.effects[gate]++ // no fence can stop a call that is already sent
		w.step = called
	case called:
		if err := s.tables.endEffect(at, store.EffectEnd{Account: "a", Interrupt: gate, Attempt: 1, State: store.EffectSucceeded}); err != nil {
			panic(err)
		}
		w.step = ended
	case ended:
		s.save(w)
	case taken:
		s.endExecution(w)
	}
}

func (s *world) begin(w *worker) {
	if w.todo.ID == "" || w.todo.Verdict != store.VerdictApprove {
		w.step = ended // there is no effect to call
		return
	}
	line, begun, err := s.tables.beginEffect(at, w.lease, store.NewEffect{Interrupt: w.todo.ID, Attempt: 1, ActionDigest: "digest of " + w.todo.ID})
	switch {
	case err != nil:
		*w = worker{}
	case begun:
		w.step = began
	case line.State == store.EffectSucceeded:
		w.step = ended
	// a person checked that it had not happened: give up; only a person may order a retry
	case line.State == store.EffectFailed:
		_, _ = s.tables.endExecution(at, w.lease, store.ExecutionEnd{Status: store.StatusFailed, Applied: []string{w.todo.ID}})
		*w = worker{}
	default: // unknown: a person must check
		_ = s.tables.release(at, w.lease, store.Release{Park: true})
		*w = worker{}
	}
}

// open returns the interrupts that the provider waits for.
func (s *world) open() []store.NewInterrupt {
	if s.applied < len(gates) {
		return gate(s.applied)
	}
	return nil
}

// save saves the provider's checkpoint, which is rejected for a former owner.
func (s *world) save(w *worker) {
	if _, err := s.tables.owned(w.lease); err != nil {
		*w = worker{}
		return
	}
	if s.applied < len(gates) && gates[s.applied] == w.todo.ID {
		s.applied++
	}
	w.step = taken
}

func (s *world) endExecution(w *worker) {
	end := store.ExecutionEnd{Status: store.StatusWaiting, Outcome: []byte("o"), Open: s.open()}
	if w.todo.ID != "" {
		end.Applied = []string{w.todo.ID}
		if w.todo.Verdict != store.VerdictApprove {
			end.Status, end.Open = store.StatusFailed, nil
		}
	}
	if s.applied == len(gates) {
		end.Status = store.StatusCompleted
	}
	_, _ = s.tables.endExecution(at, w.lease, end) // rejected if the run has another owner
	*w = worker{}
}

// inDoubt reports whether the outcome of an effect is unknown.
func (s *world) inDoubt() bool {
	for _, line := range s.tables.effects {
		if line.State == store.EffectStarted {
			return true
		}
	}
	return false
}

// reconcile is a person who checks the target.
func (s *world) reconcile() {
	for key, line := range s.tables.effects {
		if line.State == store.EffectStarted {
			state := store.EffectFailed
			if s.effects[key.interrupt] > 0 {
				state = store.EffectSucceeded
			}
			if err := s.tables.endEffect(at, store.EffectEnd{Account: "a", Interrupt: key.interrupt, Attempt: 1, State: state}); err != nil {
				panic(err)
			}
		}
	}
}

// violated names the invariants that do not hold in this state.
func (s *world) violated() []string {
	r := s.run()
	for _, i := range r.interrupts {
		switch {
		case s.effects[i.ID] > 1:
			return []string{"I4: an effect happened twice"}
		case s.effects[i.ID] > 0 && (i.State != store.InterruptDecided || i.Verdict != store.VerdictApprove):
			return []string{"I4: an effect happened without an approve"}
		case i.Source == store.SourceClock && i.Verdict != store.VerdictExpire:
			return []string{"I11: the clock has decided"}
		case r.Status == store.StatusWaiting && i.State == store.InterruptDecided && !i.Applied:
			return []string{"I2: a decision is forgotten"}
		case r.Status == store.StatusCompleted && i.State == store.InterruptPending:
			return []string{"I5: a gate was passed"}
		}
	}
	if s.effects["gate2"] > 0 && s.effects["gate1"] == 0 {
		return []string{"I5: the first gate was passed by"}
	}
	accepted := map[string]string{}
	for _, c := range s.clicks {
		if c.answer != store.ResultAccepted {
			continue
		}
		gate := c.decision.Answers[0].Interrupt
		if i := r.interrupt(gate); i.DecidedBy != c.decision.Actor || i.Verdict != c.decision.Answers[0].Verdict {
			return []string{"I1: what was accepted is not what is written down"}
		}
		if by := accepted[gate]; by != "" && by != c.decision.Actor {
			return []string{"I1: two people were told that theirs counts"}
		}
		accepted[gate] = c.decision.Actor
	}
	return nil
}

// steps returns the possible next states.
func (s *world) steps() []modelcheck.Step[*world] {
	var list []modelcheck.Step[*world]
	for _, a := range s.actions() {
		next := s.clone()
		a.do(next)
		list = append(list, modelcheck.Step[*world]{Name: a.name, Fault: a.fault, To: next})
	}
	return list
}

func TestModel_KeepsEveryInvariant(t *testing.T) {
	all := []faultBudget{{crashes: 1, leaseExpiries: 1}, {crashes: 1, deadlines: 1}, {leaseExpiries: 1, deadlines: 1}, {leaseExpiries: 1, releases: 1}, {deadlines: 1, releases: 1}}
	if testtier.IsSoak() {
		all = []faultBudget{{crashes: 2, leaseExpiries: 2, deadlines: 1}, {crashes: 1, leaseExpiries: 1, deadlines: 1, releases: 2}}
	}
	for _, bounds := range all {
		result, err := modelcheck.Run(modelcheck.Model[*world, string]{
			Start: opening(bounds), Key: (*world).fingerprint, Steps: (*world).steps, Violated: (*world).violated,
			Settled: func(s *world) bool { return !s.run().Status.Active() }, Limit: 20_000_000,
		})
		if err != nil || len(result.Violations) > 0 || result.Stuck > 0 {
			t.Fatalf("%+v: %v; %v; %d of %d states cannot settle:\n%s", bounds, err, result.Violations, result.Stuck, result.States, result.StuckAt)
		}
		t.Logf("%+v: %d states", bounds, result.States)
	}
}
