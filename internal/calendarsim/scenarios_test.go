package calendarsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/testtier"
)

// Scenarios are situations that are too rare by chance in a short simulation. They have assigned
// people; others see the request later.

// scenarioDuration is how long other people stay away.
const scenarioDuration = 6 * time.Hour

func (a *modelRequest) scenarioActive(now time.Time) bool {
	return a.run.scene != nil && now.Before(a.created.Add(scenarioDuration))
}

// The goals of the scenarios.
const (
	pointLeft   = "an approval became invalid before the last one"
	pointNo     = "a rejection became invalid before the last one"
	pointSpent  = "the spending limit was reached"
	pointMailed = "the limit on approved actions was reached"
	pointPosted = "the rate limit was reached"
)

// scheduleScenarios schedules them.
func (s *simulation) scheduleScenarios(while time.Duration) {
	for range 4 { // some fail to reach their goal by chance
		s.leavingVoterScenario(s.someTime(while))
		s.leavingRejecterScenario(s.someTime(while))
		s.spendingLimitScenario(s.someTime(while))
		s.mailLimitScenario(s.someTime(while))
		s.postLimitScenario(s.someTime(while))
	}
}

func (s *simulation) someTime(while time.Duration) time.Time {
	return time.Now().Add(time.Duration(s.rng.Int64N(int64(while))))
}

// scheduleScenario schedules a run with some tasks, one after the other.
func (s *simulation) scheduleScenario(at time.Time, scene func(*modelRequest), orders ...order) *run {
	r := &run{key: fmt.Sprintf("scene-%d", len(s.runs)), requester: "robot", scene: scene}
	for n, o := range orders {
		o.ID, o.To, o.Note = fmt.Sprintf("%s-%d", r.key, n), "shop", "please"
		r.tasks = append(r.tasks, task{o})
		s.tasks[o.ID] = r
	}
	s.runs[r.key] = r
	s.at(at, func() { s.start(r, taskList{Left: slices.Clone(r.tasks)}) })
	return r
}

// enter lets a member of a group vote who has not voted and is not excluded by not. It returns ""
// if there is none.
func (s *simulation) enter(a *modelRequest, verb requirement.Verb, group string, not ...string) (name string) {
	for _, name := range s.staff.members(group) {
		if slices.Contains(not, name) || slices.ContainsFunc(a.votes, func(v vote) bool { return v.by == name }) || a.excluded(name, verb) {
			continue
		}
		e := s.anyInstance()
		seen, ok := s.viewRequest(e, s.people[name], a)
		e.calls.Done()
		if ok {
			s.submit(s.people[name], a, seen, submission{verb: verb})
		}
		return name
	}
	return ""
}

// leavingVoterScenario: the first of several approvers leaves the group before the last vote. One
// more is required.
func (s *simulation) leavingVoterScenario(at time.Time) {
	s.scheduleScenario(at, func(a *modelRequest) {
		var first, second string
		payer := func() string {
			return s.enter(a, requirement.VerbApprove, "group:payers", s.staff.members("group:finops")...)
		}
		s.after(20, func() { first = payer() })
		s.after(40, func() { s.leaves("group:payers", first) })
		s.after(60, func() { second = payer() })
		s.after(80, func() {
			third := s.enter(a, requirement.VerbApprove, "group:finops", s.staff.members("group:payers")...)
			if a.outcome == "" && a.hasVoted(requirement.VerbApprove, first, second, third) {
				s.played[pointLeft]++
			}
		})
		s.after(100, func() { payer() })
	}, order{Action: "pay", Cents: 200_000})
}

// leavingRejecterScenario: the first of two rejecters leaves the group before the second vote.
func (s *simulation) leavingRejecterScenario(at time.Time) {
	s.scheduleScenario(at, func(a *modelRequest) {
		var first string
		no := func() string { return s.enter(a, requirement.VerbReject, "group:dba", s.staff.members("group:ops")...) }
		s.after(20, func() { first = no() })
		s.after(40, func() { s.leaves("group:dba", first) })
		s.after(60, func() {
			if second := no(); a.outcome == "" && a.hasVoted(requirement.VerbReject, first, second) {
				s.played[pointNo]++
			}
		})
		s.after(80, func() { no() })
	}, order{Action: "drop"})
}

func (s *simulation) after(minutes int, do func()) {
	s.at(time.Now().Add(time.Duration(minutes)*time.Minute), do)
}

// leaves lets a person leave a group and return the next day.
func (s *simulation) leaves(group, name string) {
	if !slices.Contains(s.staff.members(group), name) {
		return
	}
	s.staff.leave(group, name)
	s.after(20*60, func() { s.staff.join(group, name) })
}

// hasVoted reports whether all of these have voted so, and not changed it since.
func (a *modelRequest) hasVoted(verb requirement.Verb, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(a.votes, vote{name, verb}) })
}

// spendingLimitScenario: three amounts that together exceed the limit.
func (s *simulation) spendingLimitScenario(at time.Time) {
	for n := range 3 {
		s.scheduleScenario(at.Add(time.Duration(n)*10*time.Minute), func(*modelRequest) { s.played[pointSpent]++ }, order{Action: "pay", Cents: 1200})
	}
}

// mailLimitScenario: a mail that is approved, and then another that requires more.
func (s *simulation) mailLimitScenario(at time.Time) {
	soon := func(a *modelRequest) {
		s.at(time.Now().Add(20*time.Minute), func() { s.enter(a, requirement.VerbApprove, "group:ops") })
	}
	s.scheduleScenario(at, soon, order{Action: "mail"})
	s.scheduleScenario(at.Add(2*time.Hour), func(a *modelRequest) {
		if soon(a); a.need.rule == "mails" {
			s.played[pointMailed]++
		}
	}, order{Action: "mail"})
}

// postLimitScenario: three posts of one run, the last of which is denied.
func (s *simulation) postLimitScenario(at time.Time) {
	s.scheduleScenario(at, func(*modelRequest) {}, order{Action: "post"}, order{Action: "post"}, order{Action: "post"})
}

// checkScenarios checks that each scenario has reached its goal at least once. Otherwise a
// simulation would not detect, for example, a limit that is never charged. In a soak, single
// simulations may miss a goal.
func (s *simulation) checkScenarios() {
	s.played[pointPosted] = len(slices.Collect(s.refusedPosts()))
	for _, point := range []string{pointLeft, pointNo, pointSpent, pointMailed, pointPosted} {
		if s.played[point] == 0 && !testtier.IsSoak() {
			s.fail("never: %s; the simulation does not test it", point)
		}
	}
}

func (s *simulation) refusedPosts() func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range s.sink.refused {
			if i := slices.IndexFunc(s.tasks[id].tasks, func(t task) bool { return t.Order.ID == id }); s.tasks[id].tasks[i].Order.Action == "post" && !yield(id) {
				return
			}
		}
	}
}
