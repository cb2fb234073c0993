package season

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// check compares the model with everything that is kept, after the last executor has come to rest; and stops it.
func (s *season) check() {
	e := s.service.take(s.rng)
	for ; e == nil; e = s.service.take(s.rng) {
		s.service.up()
		time.Sleep(4 * poll)
		s.hear()
	}
	s.lapse()
	told, fired := s.timers()
	for _, a := range s.order {
		s.ending(e, a)
	}
	for _, r := range s.runs {
		s.outcome(e, r)
	}
	s.deeds()
	s.spends()
	s.posts()
	s.points()
	s.books(e)
	s.report(e, told, fired)
	e.calls.Done()
	for range 3 {
		s.service.down(false)
	}
}

// lapse lets everything be over in the model whose time is.
func (s *season) lapse() {
	for _, a := range s.order {
		s.spare(a)
		if a.outcome == "" && !a.run.over || a.question {
			a.end(desk.Lapsed, a.deadline)
			if a.question && a.outcome == desk.Lapsed {
				s.dropped(a.run)
			}
		}
	}
}

// ending: every request has ended, as the model says, by those who were told so.
func (s *season) ending(e *instance, a *ask) {
	doc, err := e.Request(context.Background(), account, a.id)
	if err != nil {
		s.bad(a, "it is lost: %v", err)
		return
	}
	if doc.Final == nil {
		s.bad(a, "it is still %s, and should be over by %q since %s", doc.State, a.outcome, a.ended)
		return
	}
	if a.either && (doc.Final.Outcome == desk.Lapsed || doc.Final.Outcome == desk.Dropped) {
		a.outcome = doc.Final.Outcome
		return
	}
	if doc.Final.Outcome != a.outcome {
		s.bad(a, "it came to %q by %v at %s, not to %q by %v at %s", doc.Final.Outcome, doc.Final.By, doc.Final.At, a.outcome, a.by, a.ended)
		return
	}
	switch a.outcome {
	case desk.Lapsed:
		s.expiry(e, a, doc)
	case desk.Approved:
		if !enough(doc.Final.By, a.need.parties, a.then) || !subset(doc.Final.By, a.by) || slices.Contains(doc.Final.By, a.run.requester) {
			s.bad(a, "%v approved it, and the model knows of %v", doc.Final.By, a.by)
		}
	case desk.Rejected, desk.Responded, desk.Escaped:
		if !subset(doc.Final.By, a.by) {
			s.bad(a, "it was ended by %v, not by %v", doc.Final.By, a.by)
		}
	}
	if a.outcome != desk.Lapsed && !doc.Final.At.Before(a.deadline) && a.outcome != desk.Dropped {
		s.bad(a, "it was decided at %s, after its deadline %s", doc.Final.At, a.deadline)
	}
}

// expiry: the clock's word came at its time, not before, and not much later.
func (s *season) expiry(e *instance, a *ask, doc desk.Request) {
	q, err := e.Question(context.Background(), account, a.id)
	if err != nil || q.Verdict != store.Expired || q.Source != store.Clock {
		s.bad(a, "it expired, and the run knows %q by %q, %v", q.Verdict, q.Source, err)
	}
	if !doc.Final.At.Equal(a.deadline) || q.At.Before(a.deadline) || q.At.After(s.service.late(a.deadline, 1)) {
		s.bad(a, "it expired at %s, which the run was told at %s, and its deadline was %s", doc.Final.At, q.At, a.deadline)
	}
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(of, one) })
}

// outcome: no run stands still, and each knows of its tasks what the model knows.
func (s *season) outcome(e *instance, r *run) {
	view, err := e.Look(context.Background(), account, r.key)
	if err != nil {
		s.fail("run %s is lost: %v", r.key, err)
		return
	}
	if view.Status.Alive() {
		s.fail("run %s is still %s", r.key, view.Status)
		return
	}
	for _, i := range view.Interrupts {
		if i.State == store.Pending {
			s.fail("run %s is over and still asks %s", r.key, i.ID)
		}
	}
	done, ok := view.Outcome.(fermata.Completed)
	if !ok {
		if !slices.ContainsFunc(r.asks, func(a *ask) bool { return a.outcome == desk.Dropped || a.question && a.outcome != desk.Responded }) && view.Status != store.Cancelled {
			s.fail("run %s came to %+v", r.key, view.Outcome)
		}
		return
	}
	var state errand
	if err := json.Unmarshal(done.Output, &state); err != nil || len(state.LeftSaid) != len(state.Left) || len(state.RightSaid) != len(state.Right) {
		s.fail("run %s ended with %s: %v", r.key, done.Output, err)
		return
	}
	said := append(state.LeftSaid, state.RightSaid...)
	for n, t := range append(state.Left, state.Right...) {
		if want := s.wanted(r, t); said[n] != want {
			s.fail("run %s was told of %+v %q, not %q", r.key, t.Order, said[n], want)
		}
	}
}

// wanted is what a run should know of a task.
func (s *season) wanted(r *run, t task) string {
	i := slices.IndexFunc(r.asks, func(a *ask) bool { return a.asked.ID == t.Order.ID })
	if i < 0 {
		_, refused := s.sink.refused[t.Order.ID]
		if d := demandOf(t.Order); d.deny || d.unlessOften && refused { // whether it was too often is looked at elsewhere
			return saidRejected
		}
		return saidDone
	}
	switch a := r.asks[i]; a.outcome {
	case desk.Approved:
		return saidDone
	case desk.Rejected:
		return saidRejected
	case desk.Lapsed:
		return saidExpired
	case desk.Responded:
		return "answer " + a.asked.ID + " " + a.answer
	default:
		return string(a.outcome)
	}
}

// deeds: the sink has seen what was approved and nothing else, once, with exactly those arguments; and what was allowed.
func (s *season) deeds() {
	byTask := make(map[string]*ask)
	for _, a := range s.order {
		byTask[a.asked.ID] = a
	}
	for id, done := range s.sink.deeds {
		a, r := byTask[id], s.tasks[id]
		var want order
		switch {
		case a != nil && a.outcome == desk.Approved:
			want = a.now
		case a != nil:
			s.bad(a, "it came to %q and was done: %+v", a.outcome, done)
			continue
		default:
			i := slices.IndexFunc(r.tasks, func(t task) bool { return t.Order.ID == id })
			if want = r.tasks[i].Order; !demandOf(want).perhapsBySpends && !demandOf(want).unlessOften {
				s.fail("%+v was done, and nobody was asked", want)
			}
		}
		for n, d := range done {
			if d.args != want {
				s.fail("%s was done with %+v, and %+v was approved", id, d.args, want)
			}
			if n > 0 && (d.key != done[0].key || !done[n-1].cut) {
				s.fail("%s was done twice: %+v", id, done)
			}
		}
	}
	for _, a := range s.order {
		if a.outcome == desk.Approved && len(s.sink.deeds[a.asked.ID]) == 0 && !a.run.over {
			s.bad(a, "it was approved and never done")
		}
	}
}

// books: the audit log is whole, and agrees with runs and effects.
func (s *season) books(e *instance) {
	ctx := context.Background()
	opened, shut, err := s.service.kept.open()
	if err != nil {
		s.fail("%v", err)
		return
	}
	defer shut()
	if _, err := audit.Verify(ctx, audit.Over(opened), account, audit.Against{}, io.Discard); err != nil {
		s.fail("the audit log: %v", err)
	}
	findings, err := e.Reconcile(ctx, account)
	if err != nil || len(findings) > 0 {
		s.fail("the books do not agree: %v %+v", err, findings[:min(3, len(findings))])
	}
}

// report: the numbers for people are those of the model.
func (s *season) report(e *instance, told, fired int) {
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
		case desk.Approved:
			want.Approved++
		case desk.Rejected:
			want.Rejected++
		case desk.Responded:
			want.Answered++
		case desk.Lapsed:
			want.Expired++
		case desk.Escaped:
			want.Escaped++
		case desk.Dropped:
			want.Withdrawn++
		}
		want.Asked += min(a.backs, 1)
		words += a.words
	}
	got := report.All
	if got.Paged < told || got.Paged > fired {
		s.fail("the report has %d that somebody was paged for, not %d to %d", got.Paged, told, fired)
	}
	want.Paged = got.Paged
	said := 0
	for _, v := range report.People {
		said += v.Words
	}
	got.Edited, got.ToView, got.ToDecide, got.Waited, got.OldestOpen = 0, analytics.Times{}, analytics.Times{}, 0, 0
	if got != want || said != words {
		s.fail("the report has %+v and %d words, not %+v and %d", got, said, want, words)
	}
	down := time.Duration(0)
	for _, d := range s.service.downs {
		down += d.to.Sub(d.from)
	}
	s.t.Logf("seed %d: %d runs, %d requests: %d approved, %d rejected, %d answered, %d expired, %d escaped, %d withdrawn; %d words; %d notices, %d paged; %d starts of executors, down for %s; answers to words: %v",
		s.seed, len(s.runs), want.Requests, want.Approved, want.Rejected, want.Answered, want.Expired, want.Escaped, want.Withdrawn, words, len(s.told), got.Paged,
		s.service.events, down.Round(time.Minute), s.tally)
}
