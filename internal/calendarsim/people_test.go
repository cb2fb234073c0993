package calendarsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// person is an approver.
type person struct {
	name string
	home *office
	away []span // holidays, illness
}

// free returns the first time from t on at which the person works.
func (p *person) free(t time.Time) time.Time {
	for range 50 {
		before := t
		t = p.home.openUntil(t)
		for _, a := range p.away {
			if !t.Before(a.from) && t.Before(a.to) {
				t = a.to
			}
		}
		if t.Equal(before) {
			break
		}
	}
	return t
}

// staff creates the people and their groups.
func staff(rng *rand.Rand, homes []*office, from, to time.Time) ([]*person, *directory) {
	var all []*person
	d := &directory{groups: make(map[string][]string)}
	in := func(group string, who ...string) { d.groups[group] = append(d.groups[group], who...) }
	for _, home := range homes {
		for n := range 5 {
			p := &person{name: fmt.Sprintf("%s-%d", home.name, n), home: home}
			for range 1 + rng.IntN(3) {
				sick := from.Add(time.Duration(rng.Int64N(int64(to.Sub(from)))))
				p.away = append(p.away, span{sick, sick.Add(time.Duration(1+rng.IntN(9)) * 24 * time.Hour)})
			}
			all = append(all, p)
			in(home.channel, p.name)
			in("inbox", p.name)
			if n < 3 {
				in("group:payers", p.name)
			}
			if n >= 2 {
				in("group:ops", p.name)
			}
			if n == 0 || n == 4 {
				in("group:finops", p.name)
			}
			if n == 1 || n == 3 {
				in("group:dba", p.name)
			}
			if n == 4 {
				in("group:managers", p.name)
			}
		}
	}
	for _, duty := range []string{"ops", "payers", "dba"} {
		in("oncall:"+duty, d.groups["group:"+duty]...)
	}
	return all, d
}

// patience returns how long a person takes: most are quick, some are very slow.
func patience(rng *rand.Rand, median time.Duration, sigma float64) time.Duration {
	return min(time.Duration(float64(median)*math.Exp(sigma*rng.NormFloat64())), 20*24*time.Hour)
}

// onNotice lets people know of a notice and schedules their reaction.
func (s *simulation) onNotice(a *modelRequest, n desk.Notice) {
	if n.Kind != desk.NoticeNotify && n.Kind != desk.NoticeRemind && n.Kind != desk.NoticePage || a.scenarioActive(time.Now()) {
		return
	}
	var who []string
	for _, target := range n.Targets {
		if name, isUser := cut(target, "user:"); isUser {
			who = append(who, name)
		} else {
			who = append(who, s.staff.members(target)...)
		}
	}
	if len(who) == 0 || s.rng.IntN(100) < 22 {
		return // some wait for another person
	}
	for range 1 + s.rng.IntN(2+len(a.need.parties)) {
		p := s.people[who[s.rng.IntN(len(who))]]
		now := time.Now()
		at := p.free(now.Add(patience(s.rng, 40*time.Minute, 1.3)))
		if n.Kind == desk.NoticePage {
			at = now.Add(patience(s.rng, 12*time.Minute, 0.8)) // also at night
		}
		s.at(at, func() { s.scheduleView(p, a, 0) })
	}
}

func cut(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

// scheduleView lets a person open a request.
func (s *simulation) scheduleView(p *person, a *modelRequest, tries int) {
	if a.outcome != "" && s.rng.IntN(5) > 0 {
		return // most notice that it is closed
	}
	e := s.service.take(s.rng)
	if e == nil {
		if tries < 8 { // no reply: retry later
			s.at(p.free(time.Now().Add(patience(s.rng, time.Hour, 0.7))), func() { s.scheduleView(p, a, tries+1) })
		}
		return
	}
	seen, ok := s.viewRequest(e, p, a)
	e.calls.Done()
	if !ok {
		return
	}
	s.react(p, a, seen)
}

// react is a person's reaction to a request.
func (s *simulation) react(p *person, a *modelRequest, seen requestView) {
	if a.question {
		s.reply(p, a, seen)
		return
	}
	later := func(median time.Duration, do func()) { s.at(p.free(time.Now().Add(patience(s.rng, median, 0.8))), do) }
	switch roll := s.rng.IntN(100); {
	case roll < 44:
		s.submit(p, a, seen, submission{verb: requirement.VerbApprove})
	case roll < 51:
		s.submit(p, a, seen, submission{verb: requirement.VerbReject})
	case roll < 60:
		s.submit(p, a, seen, submission{verb: requirement.VerbEdit, args: s.edit(a, seen)})
	case roll < 65: // twice at the same time
		s.clickTwice(p, a, seen)
	case roll < 72: // with a page that was open for hours
		later(2*time.Hour, func() { s.submit(p, a, seen, submission{verb: requirement.VerbApprove}) })
	case roll < 75: // then changes their mind
		s.submit(p, a, seen, submission{verb: requirement.VerbApprove})
		later(time.Hour, func() { s.submit(p, a, seen, submission{verb: requirement.VerbReject}) })
	case roll < 78: // in the last second, or exactly too late
		at := a.deadline.Add(-time.Duration(s.rng.IntN(2)) * time.Second)
		s.at(at, func() { s.viewThenDecide(p, a, submission{verb: requirement.VerbApprove}) })
	case roll < 80: // together with another person
		s.submitTogether(p, a, seen)
	case roll < 98:
		s.collaborate(p, a, s.rng.IntN(9))
	}
	if roll := s.rng.IntN(100); roll < 4 { // an ineligible person
		names := slices.Sorted(keys(s.people))
		stranger := s.people[names[s.rng.IntN(len(names))]]
		later(time.Hour, func() { s.viewThenDecide(stranger, a, submission{verb: requirement.VerbApprove}) })
	}
}

// reply is a person's answer to a question.
func (s *simulation) reply(p *person, a *modelRequest, seen requestView) {
	switch roll := s.rng.IntN(100); {
	case roll < 70:
		s.submit(p, a, seen, submission{verb: requirement.VerbRespond, text: "as " + p.name + " says"})
	case roll < 75:
		s.abandon(p, a)
	case roll < 80:
		s.submit(p, a, seen, submission{verb: requirement.VerbApprove}) // an invalid answer
	default:
		s.collaborate(p, a, s.rng.IntN(9))
	}
}

// edit returns other arguments: more, less, a note, or a forbidden change.
func (s *simulation) edit(a *modelRequest, seen requestView) order {
	o := seen.args
	switch s.rng.IntN(6) {
	case 0:
		o.To = "elsewhere"
	case 1:
		o.Cents = 150000 + int64(s.rng.IntN(1000)) // requires more people
	case 2:
		o.Note = fmt.Sprintf("seen %d", s.rng.IntN(1000))
	default:
		o.Cents = max(2001, o.Cents-int64(1+s.rng.IntN(500)))
	}
	return o
}
