package calendarsim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

// check compares the model with all stored data after the last executor is idle, and stops it.
func (s *simulation) check() {
	e := s.service.take(s.rng)
	for ; e == nil; e = s.service.take(s.rng) {
		s.service.start()
		time.Sleep(4 * poll)
		s.processNotices()
	}
	s.expireModel()
	told, fired := s.timers()
	for _, a := range s.order {
		s.checkDecision(e, a)
	}
	for _, r := range s.runs {
		s.checkOutcome(e, r)
	}
	s.checkEffects()
	s.checkSpending()
	s.checkPosts()
	s.checkScenarios()
	s.checkAudit(e)
	s.checkReport(e, told, fired)
	e.calls.Done()
	for range 3 {
		s.service.stop(false)
	}
}

// expireModel expires requests in the model whose deadline has passed.
func (s *simulation) expireModel() {
	for _, a := range s.order {
		s.ignoreRace(a)
		if a.outcome == "" && !a.run.over || a.question {
			a.end(desk.OutcomeExpired, a.deadline)
			if a.question && a.outcome == desk.OutcomeExpired {
				s.markWithdrawn(a.run)
			}
		}
	}
}

// checkDecision checks that every request was decided as the model says, by the people who were
// told so.
func (s *simulation) checkDecision(e *instance, a *modelRequest) {
	doc, err := e.RequestDocument(context.Background(), account, a.id)
	if err != nil {
		s.failRequest(a, "it is lost: %v", err)
		return
	}
	if doc.Decision == nil {
		s.failRequest(a, "it is still %s, but must be closed with %q since %s", doc.State, a.outcome, a.ended)
		return
	}
	if a.either && (doc.Decision.Outcome == desk.OutcomeExpired || doc.Decision.Outcome == desk.OutcomeWithdrawn) {
		a.outcome = doc.Decision.Outcome
		return
	}
	if doc.Decision.Outcome != a.outcome {
		s.failRequest(a, "outcome %q by %v at %s, want %q by %v at %s", doc.Decision.Outcome, doc.Decision.By, doc.Decision.At, a.outcome, a.by, a.ended)
		return
	}
	switch a.outcome {
	case desk.OutcomeExpired:
		s.checkExpiry(e, a, doc)
	case desk.OutcomeApproved:
		if !enough(doc.Decision.By, a.need.parties, a.then) || !subset(doc.Decision.By, a.by) || slices.Contains(doc.Decision.By, a.run.requester) {
			s.failRequest(a, "%v approved it, but the model has %v", doc.Decision.By, a.by)
		}
	case desk.OutcomeRejected, desk.OutcomeAnswered, desk.OutcomeAbandoned:
		if !subset(doc.Decision.By, a.by) {
			s.failRequest(a, "it was closed by %v, want %v", doc.Decision.By, a.by)
		}
	}
	if a.outcome != desk.OutcomeExpired && !doc.Decision.At.Before(a.deadline) && a.outcome != desk.OutcomeWithdrawn {
		s.failRequest(a, "it was decided at %s, after its deadline %s", doc.Decision.At, a.deadline)
	}
}

// checkExpiry checks that the expiry came at the deadline, not before and not much later.
func (s *simulation) checkExpiry(e *instance, a *modelRequest, doc desk.Request) {
	q, err := e.GetRequest(context.Background(), account, a.id)
	if err != nil || q.Verdict != store.VerdictExpire || q.Source != store.SourceClock {
		s.failRequest(a, "it expired, but the run has %q by %q, %v", q.Verdict, q.Source, err)
	}
	if !doc.Decision.At.Equal(a.deadline) || q.DecidedAt.Before(a.deadline) || q.DecidedAt.After(s.service.late(a.deadline, 1)) {
		s.failRequest(a, "it expired at %s, the run was told at %s, and its deadline was %s", doc.Decision.At, q.DecidedAt, a.deadline)
	}
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(of, one) })
}

// checkOutcome checks that every run has ended, and that its results match the model.
func (s *simulation) checkOutcome(e *instance, r *run) {
	view, err := e.GetRun(context.Background(), account, r.key)
	if err != nil {
		s.fail("run %s is lost: %v", r.key, err)
		return
	}
	if view.Status.Active() {
		s.fail("run %s is still %s", r.key, view.Status)
		return
	}
	for _, i := range view.Interrupts {
		if i.State == store.InterruptPending {
			s.fail("run %s has ended but still asks %s", r.key, i.ID)
		}
	}
	done, ok := view.Outcome.(fermata.Completed)
	if !ok {
		if !slices.ContainsFunc(r.asks, func(a *modelRequest) bool {
			return a.outcome == desk.OutcomeWithdrawn || a.question && a.outcome != desk.OutcomeAnswered
		}) && view.Status != store.StatusCancelled {
			s.fail("run %s has the outcome %+v", r.key, view.Outcome)
		}
		return
	}
	var state taskList
	if err := json.Unmarshal(done.Output, &state); err != nil || len(state.LeftSaid) != len(state.Left) || len(state.RightSaid) != len(state.Right) {
		s.fail("run %s ended with %s: %v", r.key, done.Output, err)
		return
	}
	said := append(state.LeftSaid, state.RightSaid...)
	for n, t := range append(state.Left, state.Right...) {
		if want := s.expectedResult(r, t); said[n] != want {
			s.fail("run %s: task %+v has the result %q, want %q", r.key, t.Order, said[n], want)
		}
	}
}

// expectedResult returns the result of a task according to the model.
func (s *simulation) expectedResult(r *run, t task) string {
	i := slices.IndexFunc(r.asks, func(a *modelRequest) bool { return a.asked.ID == t.Order.ID })
	if i < 0 {
		_, refused := s.sink.refused[t.Order.ID]
		// the rate limit is checked elsewhere
		if d := requirementOf(t.Order); d.deny || d.unlessOften && refused {
			return saidRejected
		}
		return saidDone
	}
	switch a := r.asks[i]; a.outcome {
	case desk.OutcomeApproved:
		return saidDone
	case desk.OutcomeRejected:
		return saidRejected
	case desk.OutcomeExpired:
		return saidExpired
	case desk.OutcomeAnswered:
		return "answer " + a.asked.ID + " " + a.answer
	default:
		return string(a.outcome)
	}
}

// checkEffects checks that the sink has seen exactly the approved and allowed actions, once, with
// exactly those arguments.
func (s *simulation) checkEffects() {
	byTask := make(map[string]*modelRequest)
	for _, a := range s.order {
		byTask[a.asked.ID] = a
	}
	for id, done := range s.sink.deeds {
		a, r := byTask[id], s.tasks[id]
		var want order
		switch {
		case a != nil && a.outcome == desk.OutcomeApproved:
			want = a.now
		case a != nil:
			s.failRequest(a, "the outcome is %q, but it was executed: %+v", a.outcome, done)
			continue
		default:
			i := slices.IndexFunc(r.tasks, func(t task) bool { return t.Order.ID == id })
			if want = r.tasks[i].Order; !requirementOf(want).perhapsBySpends && !requirementOf(want).unlessOften {
				s.fail("%+v was executed without a request", want)
			}
		}
		for n, d := range done {
			if d.args != want {
				s.fail("%s was executed with %+v, but %+v was approved", id, d.args, want)
			}
			if n > 0 && (d.key != done[0].key || !done[n-1].cut) {
				s.fail("%s was executed twice: %+v", id, done)
			}
		}
	}
	for _, a := range s.order {
		if a.outcome == desk.OutcomeApproved && len(s.sink.deeds[a.asked.ID]) == 0 && !a.run.over {
			s.failRequest(a, "it was approved but never executed")
		}
	}
}

// checkAudit verifies the audit log and reconciles it with runs and effects.
func (s *simulation) checkAudit(e *instance) {
	ctx := context.Background()
	opened, shut, err := s.service.kept.open()
	if err != nil {
		s.fail("%v", err)
		return
	}
	defer shut()
	if err := simtest.CheckLog(ctx, opened, account); err != nil {
		s.fail("%v", err)
	}
	findings, err := e.Reconcile(ctx, account)
	if err != nil || len(findings) > 0 {
		s.fail("reconciliation: %v %+v", err, findings[:min(3, len(findings))])
	}
}

// checkReport compares the analytics report with the model.
func (s *simulation) checkReport(e *instance, told, fired int) {
	report, err := e.Analytics(context.Background(), account, analytics.Query{})
	if err != nil {
		s.fail("%v", err)
		return
	}
	var want analytics.Row
	words := 0
	for _, a := range s.order {
		want.Requests++
		switch a.outcome {
		case desk.OutcomeApproved:
			want.Approved++
		case desk.OutcomeRejected:
			want.Rejected++
		case desk.OutcomeAnswered:
			want.Answered++
		case desk.OutcomeExpired:
			want.Expired++
		case desk.OutcomeAbandoned:
			want.Abandoned++
		case desk.OutcomeWithdrawn:
			want.Withdrawn++
		}
		want.Clarified += min(a.backs, 1)
		words += a.words
	}
	got := report.All
	if got.Paged < told || got.Paged > fired {
		s.fail("the report has %d paged requests, want %d to %d", got.Paged, told, fired)
	}
	want.Paged = got.Paged
	said := 0
	for _, v := range report.People {
		said += v.Votes
	}
	got.Edited, got.ToView, got.ToDecide, got.WaitedHours, got.OldestOpen = 0, analytics.Percentiles{}, analytics.Percentiles{}, 0, 0
	if got != want || said != words {
		s.fail("the report has %+v and %d votes, want %+v and %d", got, said, want, words)
	}
	down := time.Duration(0)
	for _, d := range s.service.downs {
		down += d.to.Sub(d.from)
	}
	s.t.Logf("seed %d: %d runs, %d requests: %d approved, %d rejected, %d answered, %d expired, %d abandoned, %d withdrawn; %d votes; %d notices, %d paged; %d executor starts, down for %s; replies to votes: %v",
		s.seed, len(s.runs), want.Requests, want.Approved, want.Rejected, want.Answered, want.Expired, want.Abandoned, want.Withdrawn, words, len(s.told), got.Paged,
		s.service.events, down.Round(time.Minute), s.tally)
}
