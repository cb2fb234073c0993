package season

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/fermata-go/fermata/desk"
)

// Scenes are what chance alone would make too rarely in a short season. They are played by people who know their part, and whoever else is told
// of it comes later.

// sceneLasts is how long others stay away.
const sceneLasts = 6 * time.Hour

func (a *ask) played(now time.Time) bool {
	return a.run.scene != nil && now.Before(a.created.Add(sceneLasts))
}

// The points that scenes come to.
const (
	pointLeft   = "a yes lapsed before the last one"
	pointNo     = "a no lapsed before the last one"
	pointSpent  = "the spending limit was reached"
	pointMailed = "the limit of what people approve was reached"
	pointPosted = "the rate limit was reached"
)

// scenes plans them.
func (s *season) scenes(while time.Duration) {
	for range 4 { // chance may keep one of them from its point
		s.leaver(s.someTime(while))
		s.naysayer(s.someTime(while))
		s.spender(s.someTime(while))
		s.mailer(s.someTime(while))
		s.poster(s.someTime(while))
	}
}

func (s *season) someTime(while time.Duration) time.Time {
	return time.Now().Add(time.Duration(s.rng.Int64N(int64(while))))
}

// stage plans a run that wants some things, one after the other.
func (s *season) stage(at time.Time, scene func(*ask), orders ...order) *run {
	r := &run{key: fmt.Sprintf("scene-%d", len(s.runs)), requester: "robot", scene: scene}
	for n, o := range orders {
		o.ID, o.To, o.Note = fmt.Sprintf("%s-%d", r.key, n), "shop", "please"
		r.tasks = append(r.tasks, task{o})
		s.tasks[o.ID] = r
	}
	s.runs[r.key] = r
	s.at(at, func() { s.start(r, errand{Left: slices.Clone(r.tasks)}) })
	return r
}

// enter lets one of a group say something who has not yet, and is not among others; it returns "" if there is nobody.
func (s *season) enter(a *ask, verb desk.Verb, group string, not ...string) (name string) {
	for _, name := range s.staff.members(group) {
		if slices.Contains(not, name) || slices.ContainsFunc(a.votes, func(v vote) bool { return v.by == name }) || a.excluded(name, verb) {
			continue
		}
		e := s.anybody()
		seen, ok := s.look(e, s.people[name], a)
		e.calls.Done()
		if ok {
			s.say(s.people[name], a, seen, word{verb: verb})
		}
		return name
	}
	return ""
}

// leaver: of those who have to agree the first leaves the group before the last has come. One more has to.
func (s *season) leaver(at time.Time) {
	s.stage(at, func(a *ask) {
		var first, second string
		payer := func() string { return s.enter(a, desk.VerbApprove, "group:payers", s.staff.members("group:finops")...) }
		s.later(20, func() { first = payer() })
		s.later(40, func() { s.leaves("group:payers", first) })
		s.later(60, func() { second = payer() })
		s.later(80, func() {
			third := s.enter(a, desk.VerbApprove, "group:finops", s.staff.members("group:payers")...)
			if a.outcome == "" && a.said(desk.VerbApprove, first, second, third) {
				s.played[pointLeft]++
			}
		})
		s.later(100, func() { payer() })
	}, order{Action: "pay", Cents: 200_000})
}

// naysayer: of two who say no the first leaves the group before the second has come.
func (s *season) naysayer(at time.Time) {
	s.stage(at, func(a *ask) {
		var first string
		no := func() string { return s.enter(a, desk.VerbReject, "group:dba", s.staff.members("group:ops")...) }
		s.later(20, func() { first = no() })
		s.later(40, func() { s.leaves("group:dba", first) })
		s.later(60, func() {
			if second := no(); a.outcome == "" && a.said(desk.VerbReject, first, second) {
				s.played[pointNo]++
			}
		})
		s.later(80, func() { no() })
	}, order{Action: "drop"})
}

func (s *season) later(minutes int, do func()) {
	s.at(time.Now().Add(time.Duration(minutes)*time.Minute), do)
}

// leaves lets somebody leave a group, and come back on the next day.
func (s *season) leaves(group, name string) {
	if !slices.Contains(s.staff.members(group), name) {
		return
	}
	s.staff.leave(group, name)
	s.later(20*60, func() { s.staff.join(group, name) })
}

// said reports whether all of these have said something, and nothing else since.
func (a *ask) said(verb desk.Verb, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(a.votes, vote{name, verb}) })
}

// spender: three amounts that together are too much.
func (s *season) spender(at time.Time) {
	for n := range 3 {
		s.stage(at.Add(time.Duration(n)*10*time.Minute), func(*ask) { s.played[pointSpent]++ }, order{Action: "pay", Cents: 1200})
	}
}

// mailer: a mail that somebody approves, and then another, for which that is not enough any more.
func (s *season) mailer(at time.Time) {
	soon := func(a *ask) {
		s.at(time.Now().Add(20*time.Minute), func() { s.enter(a, desk.VerbApprove, "group:ops") })
	}
	s.stage(at, soon, order{Action: "mail"})
	s.stage(at.Add(2*time.Hour), func(a *ask) {
		if soon(a); a.need.rule == "mails" {
			s.played[pointMailed]++
		}
	}, order{Action: "mail"})
}

// poster: three posts of one run, of which the last is one too many.
func (s *season) poster(at time.Time) {
	s.stage(at, func(*ask) {}, order{Action: "post"}, order{Action: "post"}, order{Action: "post"})
}

// points: each scene has come to its point, at least once. A season in which none has would find nothing wrong with a limit that is never charged. Of the
// hundreds of a soak one may.
func (s *season) points() {
	s.played[pointPosted] = len(slices.Collect(s.refusedPosts()))
	for _, point := range []string{pointLeft, pointNo, pointSpent, pointMailed, pointPosted} {
		if s.played[point] == 0 && os.Getenv("FERMATA_SOAK") == "" {
			s.fail("never: %s; the season proves nothing of it", point)
		}
	}
}

func (s *season) refusedPosts() func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range s.sink.refused {
			if i := slices.IndexFunc(s.tasks[id].tasks, func(t task) bool { return t.Order.ID == id }); s.tasks[id].tasks[i].Order.Action == "post" && !yield(id) {
				return
			}
		}
	}
}
