package calendarsim

import (
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// slack is how long before the execution an action may have been evaluated, if a process died in
// between.
const slack = time.Hour

// modelRequirement returns what the rules require for an action at a time. If it depends on an
// unknown time, the stored request decides.
func (s *simulation) modelRequirement(r *run, o order, now time.Time, need requirement.Requirement) modelRequirement {
	d := requirementOf(o)
	if o.Action != "mail" {
		return d
	}
	surely, perhaps := 0, 0
	for _, a := range s.order {
		if a.run.requester != r.requester || a.asked.Action != "mail" || a.outcome != desk.OutcomeApproved || a.asked.ID == o.ID {
			continue
		}
		age := now.Sub(a.ended)
		if age >= time.Minute && age <= mailWindow-time.Minute {
			surely++
		}
		// counters have a resolution of one minute, and count from when a process continued
		if age >= -time.Minute && age <= mailWindow+slack {
			perhaps++
		}
	}
	if surely >= mailMost || perhaps >= mailMost && people(need) > d.people() {
		return d.often()
	}
	return d
}

// people returns the number of required people.
func people(need requirement.Requirement) (n int) {
	for _, g := range need.Groups {
		n += max(1, g.Count)
	}
	return n
}

func (d modelRequirement) people() (n int) {
	for _, p := range d.parties {
		n += p.count
	}
	return n
}

// spending is a small amount that was executed, or may have been.
type spending struct {
	at    time.Time
	cents int64
}

func sum(all []spending, from, to time.Time) (cents int64) {
	for _, one := range all {
		if one.at.After(from) && !one.at.After(to) {
			cents += one.cents
		}
	}
	return cents
}

// checkSpending checks that allowed actions stay within their limit in any window, including
// approved ones, and that no request is made within the limit.
func (s *simulation) checkSpending() {
	var free, approved, perhaps []spending
	asked := make(map[string]*modelRequest)
	for _, a := range s.order {
		asked[a.asked.ID] = a
		if a.need.perhapsBySpends && a.outcome == desk.OutcomeApproved {
			approved = append(approved, spending{a.ended, a.asked.Cents})
		}
	}
	for _, r := range s.runs {
		for _, t := range r.tasks {
			if !requirementOf(t.Order).perhapsBySpends || asked[t.Order.ID] != nil {
				continue
			}
			if done := s.sink.deeds[t.Order.ID]; len(done) > 0 {
				free = append(free, spending{done[0].at, t.Order.Cents})
			} else if !r.started.IsZero() { // it was cancelled, perhaps just after it was allowed
				perhaps = append(perhaps, spending{r.started, t.Order.Cents})
			}
		}
	}
	for _, one := range free {
		from := one.at.Add(-smallWindow + slack)
		if cents := sum(free, from, one.at) + sum(approved, from, one.at.Add(-slack)); cents > smallMost {
			s.fail("%d were spent within a day before %s, without a request", cents, one.at)
		}
	}
	all := slices.Concat(free, approved, perhaps)
	for _, a := range s.order {
		if !a.need.perhapsBySpends {
			continue
		}
		if cents := sum(all, a.created.Add(-smallWindow-slack), a.created.Add(slack)); cents+a.asked.Cents <= smallMost {
			s.failRequest(a, "there is a request, but only %d were spent within a day", cents)
		}
	}
}

// checkPosts checks that no one posts more often than allowed, and that no one is refused earlier.
func (s *simulation) checkPosts() {
	for _, r := range s.runs {
		for _, t := range r.tasks {
			if t.Order.Action != "post" {
				continue
			}
			if done := s.sink.deeds[t.Order.ID]; len(done) > 0 {
				if n := s.countPosts(r.requester, done[0].at.Add(-postWindow+slack), done[0].at); n > postMost {
					s.fail("run %s: %s is post number %[4]d of %[3]s within a day", r.key, t.Order.ID, r.requester, n)
				}
			}
			if at, refused := s.sink.refused[t.Order.ID]; refused {
				if n := s.countPosts(r.requester, at.Add(-postWindow-slack), at); n < postMost {
					s.fail("run %s: %s was refused, but %s had %d posts within a day", r.key, t.Order.ID, r.requester, n)
				}
			}
		}
	}
}

// countPosts returns the number of posts of a person.
func (s *simulation) countPosts(who string, from, to time.Time) (n int) {
	for id, done := range s.sink.deeds {
		if done[0].args.Action == "post" && s.tasks[id].requester == who && done[0].at.After(from) && !done[0].at.After(to) {
			n++
		}
	}
	return n
}
