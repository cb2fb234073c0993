package calendarsim

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// timers compares the delivered notices with the routes: each step of each epoch once, on time, to
// the right targets. It returns the number of paged requests, and the number for which a page may
// have been in progress at the end.
func (s *simulation) timers() (paged, fired int) {
	byKey := make(map[string][]deliveredNotice)
	byAsk := make(map[string][]deliveredNotice)
	for _, n := range s.told {
		byKey[n.Key] = append(byKey[n.Key], n)
		byAsk[n.Request] = append(byAsk[n.Request], n)
	}
	for key, all := range byKey {
		if len(all) > 1 && !s.killedNear(all) {
			s.fail("%s was delivered %d times: %s and %s", key, len(all), all[0].at, all[1].at)
		}
	}
	for _, a := range s.order {
		for n := range a.epochs {
			s.checkEpoch(a, n+1, byAsk[a.id])
		}
		if s.checkResolveNotices(a, byAsk[a.id]) {
			paged++
		}
		if s.mayPage(a) {
			fired++
		}
	}
	return paged, fired
}

// mayPage reports whether a page was due before a request was closed, or was escalated.
func (s *simulation) mayPage(a *modelRequest) bool {
	return slices.ContainsFunc(a.epochs, func(e epoch) bool {
		for i, step := range a.plan.steps {
			if due, _ := s.window(a, e, i); step.kind == desk.NoticePage && (e.loose || !due.After(e.until)) {
				return true
			}
		}
		return false
	})
}

// killedNear reports whether a process was killed while a notice was sent. Then it is sent again.
func (s *simulation) killedNear(all []deliveredNotice) bool {
	return slices.ContainsFunc(s.service.kills, func(kill time.Time) bool { return kill.Sub(all[0].at).Abs() <= time.Minute })
}

// checkEpoch checks the steps of one epoch.
func (s *simulation) checkEpoch(a *modelRequest, number int, notices []deliveredNotice) {
	e := a.epochs[number-1]
	for i := range a.plan.steps {
		var at []deliveredNotice
		for _, n := range notices {
			if n.Cause == desk.EventRouteStep && n.Epoch == number && n.Step == i+1 {
				at = append(at, n)
			}
		}
		what := fmt.Sprintf("step %d of epoch %d", i+1, number)
		due, last := s.window(a, e, i)
		switch {
		case len(at) == 0 && s.needed(a, e, i, due, last):
			s.failRequest(a, "%s was due at %s but never delivered; the epoch lasted until %s", what, due, e.until)
		case len(at) > 0 && e.known && a.plan.steps[i].at == 0 && !e.loose:
			s.failRequest(a, "%s was delivered, but must be skipped", what)
		case len(at) > 0:
			s.checkStep(a, e, i, at[0], what, due, last)
		}
	}
}

// window returns the earliest and latest time of a step.
func (s *simulation) window(a *modelRequest, e epoch, step int) (due, last time.Time) {
	due = a.plan.due(step, e)
	if due.Before(e.from) {
		due = e.from
	}
	last = s.service.late(due, 1)
	if a.plan.steps[step].region { // it may have moved to a region that is open by then
		_, when := pick(a.plan.follow, last)
		last = s.service.late(when, 1)
	}
	return due, last
}

// needed reports whether a step must have been delivered.
func (s *simulation) needed(a *modelRequest, e epoch, step int, due, last time.Time) bool {
	plan := a.plan.steps[step]
	switch {
	case !s.service.late(last, 4).Before(e.until), !s.service.late(last, 4).Before(a.ended), e.loose, e.known && plan.at == 0:
		// A step may need several polls: a conflicting change at the first one, then the step
		// itself, and a retry if the channel was down.
		return false
	case plan.kind != desk.NoticeRemind:
		return true
	case s.service.wasDown(due, last):
		return false // a later step may have been due too
	case plan.unseen && slices.ContainsFunc(a.looks, func(l viewRecord) bool { return l.at.Before(last) }):
		return false
	}
	for other := range a.plan.steps {
		if from, to := s.window(a, e, other); other != step && !from.After(last) && !to.Before(due) {
			return false // together with a stronger notice
		}
	}
	return true
}

// checkStep checks a delivered step.
func (s *simulation) checkStep(a *modelRequest, e epoch, step int, n deliveredNotice, what string, due, last time.Time) {
	plan := a.plan.steps[step]
	if n.Kind != plan.kind {
		s.failRequest(a, "%s is a %s, not a %s", what, n.Kind, plan.kind)
	}
	if e.loose { // it was escalated
		return
	}
	if n.at.Before(due) {
		s.failRequest(a, "%s was delivered at %s, but is due at %s", what, n.at, due)
	}
	if late := s.service.late(last, 4); n.at.After(late) {
		s.failRequest(a, "%s was delivered at %s, but was due at %s", what, n.at, due)
	}
	if !e.until.IsZero() && due.After(e.until) {
		s.failRequest(a, "%s was delivered, due at %s, but was void from %s on", what, due, e.until)
	}
	if plan.unseen && slices.ContainsFunc(a.looks, func(l viewRecord) bool { return s.viewStillCounts(a, l) && l.at.After(e.base) && l.at.Before(due) }) {
		s.failRequest(a, "%s was delivered at %s, although it was viewed: %v in %+v", what, n.at, a.looks, e)
	}
	if !plan.region {
		if len(n.Targets) != 1 || !slices.Contains(plan.targets, n.Targets[0]) {
			s.failRequest(a, "%s was delivered to %v, want %v", what, n.Targets, plan.targets)
		}
		return
	}
	if len(n.Targets) != 1 || !slices.Contains(plan.targets, n.Targets[0]) && !s.regionWasOpen(a, n, due) {
		s.failRequest(a, "%s was delivered at %s to %v, which is closed", what, n.at, n.Targets)
	}
}

// viewStillCounts reports whether a view certainly suppresses a reminder: the viewer was eligible
// all the time.
func (s *simulation) viewStillCounts(a *modelRequest, l viewRecord) bool {
	return l.may && !s.staff.hasMoved(l.by) && !a.excluded(l.by, requirement.VerbApprove)
}

// regionWasOpen reports whether the notified region was the right one at some time since the step
// was due.
func (s *simulation) regionWasOpen(a *modelRequest, n deliveredNotice, due time.Time) bool {
	wakes := func(t time.Time) bool {
		channel, when := pick(a.plan.follow, t)
		return (when.Equal(t) || !when.Before(a.deadline)) && channel == n.Targets[0]
	}
	for t := due; t.Before(n.at); t = t.Add(time.Minute) {
		if wakes(t) {
			return true
		}
	}
	return wakes(n.at)
}

// checkResolveNotices checks that the requester is notified once of the decision, and paged targets
// once that it is resolved, after the page.
func (s *simulation) checkResolveNotices(a *modelRequest, notices []deliveredNotice) (paged bool) {
	decided, lastPage, resolve := 0, -1, -1
	resolved := make(map[string]int) // by the page in progress; "" for all
	keys := make(map[string]bool)
	for i, n := range notices {
		if keys[n.Key] {
			continue // delivered again after a crash
		}
		keys[n.Key] = true
		switch {
		case n.Kind == desk.NoticePage:
			paged, lastPage = true, i
		case n.Kind == desk.NoticeResolve:
			resolved[noticeKeyPrefix(n.Key)]++
			resolve = i
		case n.Kind == desk.NoticeRequester && n.Cause == desk.EventDecided:
			decided++
			if late := s.service.late(a.ended, 5); a.outcome == desk.OutcomeExpired && !a.either && (n.at.Before(a.deadline) || n.at.After(late)) {
				s.failRequest(a, "its requester was notified at %s that it expired at %s", n.at, a.deadline)
			}
		}
	}
	// A page in progress at the decision may have come after the resolve notice, or its sender
	// died. Then there is one more.
	for page, times := range resolved {
		if times > 1 {
			s.failRequest(a, "%d resolve notices of %q", times, page)
		}
	}
	if paged && len(resolved) == 0 {
		s.failRequest(a, "it was paged, but there is no resolve notice")
	}
	if paged && resolve >= 0 && resolve < lastPage {
		s.failRequest(a, "the resolve notice was delivered at %s, before the page at %s", notices[resolve].at, notices[lastPage].at)
	}
	if decided != 1 {
		s.failRequest(a, "its requester was notified %d times of the decision", decided)
	}
	return paged
}

// afterPage matches the end of the key of a resolve notice that follows a late page: the attempt
// and the revision.
var afterPage = regexp.MustCompile(`/resolve(-\d+)?@\d+$`)

// noticeKeyPrefix returns the page that a resolve notice follows, or "" for the one with the
// decision.
func noticeKeyPrefix(key string) string {
	if page := afterPage.ReplaceAllString(key, ""); page != key {
		return page
	}
	return ""
}
