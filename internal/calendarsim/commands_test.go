package calendarsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

func keys[V any](m map[string]V) func(func(string) bool) { return maps.Keys(m) }

// requestView is what a person has seen of a request.
type requestView struct {
	digest string
	args   order // the current action
	first  bool  // it was not edited
}

// viewedState maps people to what they have seen.
type viewedState struct {
	by *person
	requestView
}

// viewRequest opens a request, and compares what is shown with the original action and its edits.
func (s *simulation) viewRequest(e *instance, p *person, a *modelRequest) (requestView, bool) {
	ctx := context.Background()
	q, err := e.GetRequest(ctx, account, a.id)
	if err != nil {
		s.failRequest(a, "%s cannot see it: %v", p.name, err)
		return requestView{}, false
	}
	doc, err := e.RequestDocument(ctx, account, a.id)
	if err != nil {
		s.failRequest(a, "%s cannot see its request: %v", p.name, err)
		return requestView{}, false
	}
	seen := requestView{digest: doc.Digest(), args: a.asked, first: doc.Edit == nil}
	if !a.question {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil || json.Unmarshal(asked.Args, &seen.args) != nil || seen.args != a.asked {
			s.failRequest(a, "%s is shown %s, want %+v", p.name, q.Data, a.asked)
		}
	}
	if doc.Edit != nil {
		if err := json.Unmarshal(doc.Edit.Args, &seen.args); err != nil {
			s.failRequest(a, "an edit: %v", err)
		}
	}
	if a.outcome == "" && (seen.args != a.now || seen.first != (a.editor == "")) {
		s.failRequest(a, "%s is shown %+v, want %+v", p.name, seen.args, a.now)
	}
	a.saw = append(a.saw, viewedState{p, seen})
	if s.rng.IntN(3) > 0 {
		s.applyCommand(e, a, desk.View{From: s.from(p)}, func(now time.Time) {
			a.looks = append(a.looks, viewRecord{now, p.name, a.member(p.name, s.staff) && !a.excluded(p.name, requirement.VerbApprove)})
		})
	}
	return seen, true
}

func (s *simulation) from(p *person) desk.From {
	return desk.From{Actor: desk.PersonActor(p.name, requirement.AuthSSO), Via: "calendarsim"}
}

// applyCommand sends a command that does not decide. If it is accepted, the model applies it too. A
// closed request accepts nothing.
func (s *simulation) applyCommand(e *instance, a *modelRequest, act desk.Command, taken func(now time.Time)) {
	s.ignoreRace(a)
	over := a.overAt(time.Now())
	doc, err := e.Act(context.Background(), account, a.id, act)
	switch {
	case err != nil && desk.Code(err) == "" && !isClosedError(err):
		s.failRequest(a, "%T: %v", act, err)
	case err == nil && !over && doc.State == desk.StateOpen:
		taken(time.Now())
	case err == nil && over:
		if _, looked := act.(desk.View); !looked {
			s.failRequest(a, "%T was accepted by a closed request", act)
		}
	}
}

// isClosedError reports whether an error means that the process was stopped, so that the result is
// unknown.
func isClosedError(err error) bool {
	return errors.Is(err, executor.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, executor.ErrPending)
}

// viewThenDecide is a person who views a request and decides at once.
func (s *simulation) viewThenDecide(p *person, a *modelRequest, w submission) {
	e := s.service.take(s.rng)
	if e == nil {
		return
	}
	seen, ok := s.viewRequest(e, p, a)
	e.calls.Done()
	if ok {
		s.submit(p, a, seen, w)
	}
}

// completeSubmission adds the person and what they saw.
func completeSubmission(w submission, p *person, seen requestView) submission {
	w.who, w.seen, w.sawOld = p.name, seen.args, seen.first
	return w
}

// request returns a submission as an executor accepts it.
func (s *simulation) request(a *modelRequest, seen requestView, w submission) executor.RunRequest {
	var value any
	switch w.verb {
	case requirement.VerbApprove:
		value = fermata.Decision{Verb: fermata.VerbApprove}
	case requirement.VerbReject:
		value = fermata.Decision{Verb: fermata.VerbReject, Reason: "no, says " + w.who}
	case requirement.VerbEdit:
		args, _ := json.Marshal(w.args)
		value = fermata.Decision{Verb: fermata.VerbApprove, Args: args}
	case requirement.VerbRespond:
		value = reply{ID: a.asked.ID, Text: w.text}
	}
	body, _ := json.Marshal(value)
	s.clicks++
	return executor.RunRequest{
		Account: account, StateKey: a.run.key, ResumeID: fmt.Sprintf("click-%d", s.clicks), Actor: w.who, Via: "calendarsim", Auth: requirement.AuthSSO,
		Targets: map[string]executor.Answer{a.id: {Value: body, Shown: seen.digest}},
	}
}

// predict reports whether a submission counts now.
func (s *simulation) predict(a *modelRequest, w submission) string {
	s.ignoreRace(a)
	return a.predict(w, s.staff, time.Now())
}

// submit sends a submission through any executor. If that one stops, it sends it through another
// with the same resume id.
func (s *simulation) submit(p *person, a *modelRequest, seen requestView, w submission) {
	w = completeSubmission(w, p, seen)
	request := s.request(a, seen, w)
	want := s.predict(a, w)
	got, outcome, at := s.send(a, request)
	s.recordResult(a, w, want, got, at)
	if w.verb == requirement.VerbEdit && got == itCounts { // some still have the old page open
		for _, old := range a.saw {
			if old.by != p && s.rng.IntN(2) == 0 {
				s.at(time.Now().Add(patience(s.rng, 20*time.Minute, 0.8)), func() { s.submit(old.by, a, old.requestView, submission{verb: requirement.VerbApprove}) })
			}
		}
	}
	s.onOutcome(a.run, outcome)
}

// send sends a submission until there is a reply. at is the time of the last attempt.
func (s *simulation) send(a *modelRequest, request executor.RunRequest) (got string, outcome fermata.Outcome, at time.Time) {
	for try := 0; ; try++ {
		e := s.service.take(s.rng)
		if e == nil {
			if try > 200 {
				return isUndecided, nil, time.Now()
			}
			time.Sleep(10 * time.Minute) // all are down
			continue
		}
		at = time.Now()
		outcome, err := e.Run(context.Background(), request)
		e.calls.Done()
		got := refusalCode(err)
		if got != isUndecided || try > 200 {
			if got == isUndecided {
				s.failRequest(a, "%s got no reply: %v", request.Actor, err)
			}
			return got, outcome, at
		}
		time.Sleep(time.Minute)
	}
}

// refusalCode returns the model's code for an error.
func refusalCode(err error) string {
	var bad *fermata.AnswerError
	refused, ok := errors.AsType[*executor.RefusedError](err)
	switch {
	case err == nil:
		return itCounts
	case errors.As(err, &bad):
		return badEdit
	case !ok:
		return isUndecided
	}
	switch code := desk.Code(err); {
	case code == "already_decided" || code == "expired" || code == "withdrawn":
		return isOver
	case code != "":
		return code
	case refused.Result == store.ResultAlreadyDecided || refused.Result == store.ResultExpired || refused.Result == store.ResultWithdrawn:
		return isOver
	case refused.Result == store.ResultDigestMismatch:
		return hasChanged
	}
	return string(refused.Result)
}

// recordResult compares the reply with the prediction, and applies a submission that counts.
func (s *simulation) recordResult(a *modelRequest, w submission, want, got string, at time.Time) {
	s.ignoreRace(a) // all may have been down before the reply
	if a.question && (want == notAllowed || want == isOver && w.verb != requirement.VerbRespond && got == badEdit) {
		want = badEdit // it is invalid, even if it would also be too late
	}
	if want != badEdit && got == isOver && (!at.Before(a.deadline) || s.hasExpiredRequest(a.run, at)) {
		return // the reply came too late, or the run has ended and no one was notified yet
	}
	s.tally[got]++
	if want != got {
		s.failRequest(a, "%s submits %s and gets %q, want %q", w.who, w.verb, got, want)
	}
	if got == itCounts {
		a.count(w, s.staff, at)
	}
}

// hasExpiredRequest ends a run with an expired request. Without an answer it cannot continue.
func (s *simulation) hasExpiredRequest(r *run, now time.Time) bool {
	for _, a := range r.asks {
		s.ignoreRace(a)
		if a.question && a.outcome == "" && !now.Before(a.deadline) {
			a.end(desk.OutcomeExpired, a.deadline)
			s.markWithdrawn(r)
			return true
		}
	}
	return false
}

// clickTwice sends the same submission to two executors at once: with one id or with two.
func (s *simulation) clickTwice(p *person, a *modelRequest, seen requestView) {
	w := completeSubmission(submission{verb: requirement.VerbApprove}, p, seen)
	one := s.request(a, seen, w)
	other := one
	if s.rng.IntN(2) == 0 {
		other = s.request(a, seen, w)
	}
	want := s.predict(a, w)
	got := s.submitBoth(a, one, other)
	if want != itCounts || got[0].why != itCounts && got[1].why != itCounts {
		s.recordResult(a, w, want, got[0].why, got[0].at)
		s.recordResult(a, w, want, got[1].why, got[1].at)
	} else { // one counts, and the other finds it counted or decided
		a.count(w, s.staff, got[0].at)
		for _, g := range got {
			s.tally[g.why]++
			if g.why != itCounts && (one.ResumeID == other.ResumeID || g.why != isOver || a.outcome == "") {
				s.failRequest(a, "%s clicks twice and gets %q and %q", p.name, got[0].why, got[1].why)
			}
		}
	}
	s.onOutcome(a.run, got[0].outcome)
	s.onOutcome(a.run, got[1].outcome)
}

type submitResult struct {
	why     string
	outcome fermata.Outcome
	at      time.Time
}

// submitBoth sends two submissions at once.
func (s *simulation) submitBoth(a *modelRequest, one, other executor.RunRequest) [2]submitResult {
	var got [2]submitResult
	var group sync.WaitGroup
	for n, request := range []executor.RunRequest{one, other} {
		e := s.service.take(s.rng)
		if e == nil {
			got[n].why, got[n].outcome, got[n].at = s.send(a, request)
			continue
		}
		group.Go(func() {
			defer e.calls.Done()
			outcome, err := e.Run(context.Background(), request)
			got[n] = submitResult{refusalCode(err), outcome, time.Now()}
		})
	}
	group.Wait()
	for n, request := range []executor.RunRequest{one, other} {
		if got[n].why == isUndecided { // stopped in the middle: retry with the same id
			got[n].why, got[n].outcome, got[n].at = s.send(a, request)
		}
	}
	return got
}

// before reports whose submission was applied first, of two that count. Only the desk knows, and it
// matters if one of them revokes an approval.
func (s *simulation) before(a *modelRequest, p, q *person) bool {
	e := s.anyInstance()
	defer e.calls.Done()
	doc, err := e.RequestDocument(context.Background(), account, a.id)
	if err != nil {
		s.failRequest(a, "it cannot be read: %v", err)
	}
	place := func(who *person) int64 {
		for _, vote := range doc.Votes {
			if vote.By == who.name {
				return vote.Rev
			}
		}
		return doc.Rev + 1
	}
	return place(p) < place(q)
}

// submitTogether sends an approval and another person's vote at the same time.
func (s *simulation) submitTogether(p *person, a *modelRequest, seen requestView) {
	names := s.staff.members(a.need.parties[len(a.need.parties)-1].from[0])
	q := s.people[names[s.rng.IntN(len(names))]]
	if q == p {
		return
	}
	words := [2]submission{completeSubmission(submission{verb: requirement.VerbApprove}, p, seen), completeSubmission(submission{verb: requirement.VerbApprove}, q, seen)}
	if s.rng.IntN(2) == 0 {
		words[1].verb = requirement.VerbReject
	}
	want := [2]string{s.predict(a, words[0]), s.predict(a, words[1])}
	got := s.submitBoth(a, s.request(a, seen, words[0]), s.request(a, seen, words[1]))
	order := []int{0, 1}
	if got[0].why == itCounts && got[1].why == itCounts && s.before(a, q, p) {
		order = []int{1, 0}
	}
	for _, n := range order {
		s.tally[got[n].why]++
		if got[n].why == itCounts {
			a.count(words[n], s.staff, got[n].at)
		}
	}
	for n, w := range words { // the second one may find the request closed
		if got[n].why != want[n] && (got[n].why != isOver || a.outcome == "" && !s.hasExpiredRequest(a.run, got[n].at)) {
			s.failRequest(a, "%s submits %s together with %s and gets %q, want %q", w.who, w.verb, words[1-n].who, got[n].why, want[n])
		}
	}
	s.onOutcome(a.run, got[0].outcome)
	s.onOutcome(a.run, got[1].outcome)
}
