package season

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// talk is everything that people do with a request and that decides nothing.
func (s *season) talk(p *person, a *ask, what int) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	from := s.from(p)
	nothing := func(time.Time) {}
	switch what {
	case 0, 1: // claims it, and forgets it
		s.act(e, a, desk.Claim{From: from}, func(now time.Time) { a.looks = append(a.looks, look{at: now}) })
	case 2:
		s.act(e, a, desk.AskBack{From: from, Question: "why " + a.asked.ID + "?"}, func(time.Time) {
			a.backs++
			number := a.backs
			s.at(time.Now().Add(patience(s.rng, 10*time.Minute, 1)), func() { s.answerBack(a, number) })
		})
	case 3:
		until := time.Now().Add(time.Duration(1+s.rng.IntN(20)) * time.Hour)
		s.act(e, a, desk.Snooze{From: from, Until: until}, func(now time.Time) { a.begin(until, now) })
	case 4:
		to := slices.Sorted(keys(s.people))[s.rng.IntN(len(s.people))]
		s.act(e, a, desk.Delegate{From: from, To: to, Reason: "ask them"}, nothing)
	case 5:
		s.spare(a)
		until := a.deadline.Add(time.Duration(1+s.rng.IntN(60)) * time.Hour)
		s.act(e, a, desk.Extend{From: from, Until: until}, func(now time.Time) {
			most := a.plan.extension
			if a.need.limit > 0 {
				most = min(most, a.need.limit)
			}
			if until.After(a.created.Add(most)) {
				s.bad(a, "extended to %s, and was made %s", until, a.created)
			}
			a.deadline = until
			told := s.announced(a, now)
			a.begin(now, now)
			a.epoch().known, a.epoch().loose = told == surely, told == perhaps
		})
	case 6:
		s.act(e, a, desk.Escalate{From: from, Reason: "now"}, func(time.Time) { a.epoch().loose = true })
	case 7:
		s.act(e, a, desk.Release{From: from}, nothing)
	default:
		s.act(e, a, desk.Comment{From: from, Text: "hm"}, nothing)
	}
}

func (s *season) answerBack(a *ask, number int) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	agent := desk.From{Actor: desk.Actor{ID: "agent", Kind: desk.Agent}, Via: "season"}
	s.act(e, a, desk.AnswerBack{From: agent, Question: number, Answer: "because"}, func(time.Time) {})
}

// escape gives up the task that a question is part of, and with it everything else that the run wants.
func (s *season) escape(p *person, a *ask) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	s.spare(a)
	over := a.overAt(time.Now())
	err := e.Escape(context.Background(), account, a.id, desk.Escape{From: s.from(p), Reason: "never mind"})
	switch {
	case err == nil && over:
		s.bad(a, "%s escapes what is over", p.name)
	case err == nil:
		a.end(desk.Escaped, time.Now(), p.name)
		s.dropped(a.run)
	case over && (errors.Is(err, executor.ErrOver) || desk.Code(err) != ""), gone(err), errors.Is(err, store.ErrStale):
	default:
		s.bad(a, "%s cannot escape: %v", p.name, err)
	}
}

// cancel ends a run.
func (s *season) cancel(r *run) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	defer e.calls.Done()
	switch err := e.Cancel(context.Background(), account, r.key, desk.From{Actor: desk.Person(r.requester, "")}); {
	case err == nil:
		s.dropped(r)
	case !errors.Is(err, executor.ErrOver) && !gone(err):
		s.fail("run %s cannot be cancelled: %v", r.key, err)
	}
}

// dropped takes back everything that a run still asks.
func (s *season) dropped(r *run) {
	for _, a := range r.asks {
		s.spare(a)
		a.either = a.either || a.outcome == "" && !time.Now().Before(a.deadline)
		a.end(desk.Dropped, time.Now())
	}
	r.over = true
}

// lastHeard is for how long before an outage nobody may have been heard of: the last look may be that long ago, and may have found the heartbeat
// fresh enough.
const lastHeard = poll + poll/2 + time.Minute

// spare moves the deadline of a request that would have expired while all were down. Whether one is moved that ends shortly before or after
// depends on who looked at the clock when; then the request says it.
func (s *season) spare(a *ask) {
	for _, d := range s.service.outages(a.spared) {
		a.spared++
		until := d.to.Add(a.plan.grace)
		switch near := d.isOutage() && a.plan.grace > 0 && a.outcome == "" && !a.run.over && a.created.Before(d.to); {
		case near && !a.deadline.Before(d.from) && a.deadline.Before(d.to):
			a.deadline = until
		case near && !a.deadline.Before(d.from.Add(-lastHeard)) && a.deadline.Before(until):
			a.perhaps = until
		}
	}
	if a.perhaps.IsZero() {
		return
	}
	e := s.anybody()
	defer e.calls.Done()
	doc, err := e.Request(context.Background(), account, a.id)
	if err != nil {
		s.bad(a, "%v", err)
		return
	}
	if doc.Deadline.Equal(a.perhaps) {
		a.deadline = a.perhaps
	}
	if doc.State != desk.Open || time.Now().After(a.perhaps) {
		a.perhaps = time.Time{}
	}
}

// surety is how sure it is that people were told of the beginning of a route.
type surety int

const (
	never surety = iota
	perhaps
	surely
)

// announced is how sure it is by now. It is left open after a snooze, when what was told before may still be known, and where somebody did not want to wait.
func (s *season) announced(a *ask, now time.Time) surety {
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
