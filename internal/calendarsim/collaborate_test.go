package calendarsim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// collaborate runs commands that do not decide.
func (s *simulation) collaborate(p *person, a *modelRequest, what int) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	from := s.from(p)
	nothing := func(time.Time) {}
	switch what {
	case 0, 1: // claims it and forgets it
		s.applyCommand(e, a, desk.Claim{From: from}, func(now time.Time) { a.looks = append(a.looks, viewRecord{at: now}) })
	case 2:
		s.applyCommand(e, a, desk.AskClarification{From: from, Question: "why " + a.asked.ID + "?"}, func(time.Time) {
			a.backs++
			number := a.backs
			s.at(time.Now().Add(patience(s.rng, 10*time.Minute, 1)), func() { s.answerClarification(a, number) })
		})
	case 3:
		until := time.Now().Add(time.Duration(1+s.rng.IntN(20)) * time.Hour)
		s.applyCommand(e, a, desk.Snooze{From: from, Until: until}, func(now time.Time) { a.begin(until, now) })
	case 4:
		to := slices.Sorted(keys(s.people))[s.rng.IntN(len(s.people))]
		s.applyCommand(e, a, desk.Delegate{From: from, To: to, Reason: "ask them"}, nothing)
	case 5:
		s.ignoreRace(a)
		until := a.deadline.Add(time.Duration(1+s.rng.IntN(60)) * time.Hour)
		s.applyCommand(e, a, desk.Extend{From: from, Until: until}, func(now time.Time) {
			most := a.plan.extension
			if a.need.limit > 0 {
				most = min(most, a.need.limit)
			}
			if until.After(a.created.Add(most)) {
				s.failRequest(a, "extended to %s, but created %s", until, a.created)
			}
			a.deadline = until
			told := s.announced(a, now)
			a.begin(now, now)
			a.epoch().known, a.epoch().loose = told == surely, told == perhaps
		})
	case 6:
		s.applyCommand(e, a, desk.Escalate{From: from, Reason: "now"}, func(time.Time) { a.epoch().loose = true })
	case 7:
		s.applyCommand(e, a, desk.Release{From: from}, nothing)
	default:
		s.applyCommand(e, a, desk.Comment{From: from, Text: "hm"}, nothing)
	}
}

func (s *simulation) answerClarification(a *modelRequest, number int) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	agent := desk.From{Actor: desk.Actor{ID: "agent", Kind: desk.ActorAgent}, Via: "calendarsim"}
	s.applyCommand(e, a, desk.AnswerClarification{From: agent, Number: number, Answer: "because"}, func(time.Time) {})
}

// abandon gives up the task of a request, and with it everything else that the run wants.
func (s *simulation) abandon(p *person, a *modelRequest) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	s.ignoreRace(a)
	over := a.overAt(time.Now())
	err := e.Abandon(context.Background(), account, a.id, desk.Abandon{From: s.from(p), Reason: "never mind"})
	switch {
	case err == nil && over:
		s.failRequest(a, "%s abandons a closed request", p.name)
	case err == nil:
		a.end(desk.OutcomeAbandoned, time.Now(), p.name)
		s.markWithdrawn(a.run)
	case over && (errors.Is(err, executor.ErrRunEnded) || desk.Code(err) != ""), isClosedError(err), errors.Is(err, store.ErrStale):
	default:
		s.failRequest(a, "%s cannot abandon it: %v", p.name, err)
	}
}

// cancel ends a run.
func (s *simulation) cancel(r *run) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	switch err := e.Cancel(context.Background(), account, r.key, desk.From{Actor: desk.PersonActor(r.requester, "")}); {
	case err == nil:
		s.markWithdrawn(r)
	case !errors.Is(err, executor.ErrRunEnded) && !isClosedError(err):
		s.fail("run %s cannot be cancelled: %v", r.key, err)
	}
}

// markWithdrawn withdraws everything that a run still asks.
func (s *simulation) markWithdrawn(r *run) {
	for _, a := range r.asks {
		s.ignoreRace(a)
		a.either = a.either || a.outcome == "" && !time.Now().Before(a.deadline)
		a.end(desk.OutcomeWithdrawn, time.Now())
	}
	r.over = true
}

// maxNoticeDelay is how long before an outage the last poll may have been. The heartbeat may have
// been fresh then.
const maxNoticeDelay = poll + poll/2 + time.Minute

// ignoreRace moves the deadline of a request that would have expired during an outage. Near the
// limits it depends on the timing whether it is moved; then the stored request decides.
func (s *simulation) ignoreRace(a *modelRequest) {
	for _, d := range s.service.outages(a.spared) {
		a.spared++
		until := d.to.Add(a.plan.grace)
		switch near := d.isOutage() && a.plan.grace > 0 && a.outcome == "" && !a.run.over && a.created.Before(d.to); {
		case near && !a.deadline.Before(d.from) && a.deadline.Before(d.to):
			a.deadline = until
		case near && !a.deadline.Before(d.from.Add(-maxNoticeDelay)) && a.deadline.Before(until):
			a.perhaps = until
		}
	}
	if a.perhaps.IsZero() {
		return
	}
	e := s.anyInstance()
	defer e.calls.Done()
	doc, err := e.RequestDocument(context.Background(), account, a.id)
	if err != nil {
		s.failRequest(a, "%v", err)
		return
	}
	if doc.Deadline.Equal(a.perhaps) {
		a.deadline = a.perhaps
	}
	if doc.State != desk.StateOpen || time.Now().After(a.perhaps) {
		a.perhaps = time.Time{}
	}
}

// certainty is how certain it is that people were notified at the start of a route.
type certainty int

const (
	never certainty = iota
	perhaps
	surely
)

// announced returns the current certainty. It is unknown after a snooze, when an earlier notice may
// count, and after an escalation.
func (s *simulation) announced(a *modelRequest, now time.Time) certainty {
	last := a.epochs[len(a.epochs)-1]
	if !last.loose && s.service.late(a.plan.due(0, last), 2).Before(now) {
		return surely
	}
	for _, e := range a.epochs {
		if e.loose || !a.plan.due(0, e).After(now) {
			return perhaps
		}
	}
	return never
}
