//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// populateDesk lets people request payments. It returns a function like that of populate.
func (w *world) populateDesk(people int) (wait func()) {
	var working sync.WaitGroup
	for n := range people {
		p := &person{world: w, name: fmt.Sprintf("%s%d", requesters, n+1), rng: w.random(uint64(n + 1))}
		working.Go(p.workAtDesk)
	}
	return working.Wait
}

// workAtDesk requests one payment after the other, and lets others decide on it against the clock.
func (p *person) workAtDesk() {
	for {
		e, todo := p.board.take(p.rng)
		switch todo {
		case toBegin:
			p.stage(e)
			p.board.begun(e)
		case toAttend:
			p.finishTask(e)
		case toWait:
		case toLeave:
			return
		}
		select {
		case <-p.over.Done():
			return
		case <-time.After(time.Duration(p.rng.IntN(200)) * time.Millisecond):
		}
	}
}

// deskVisit is a payment request with its people.
type deskVisit struct {
	*person // the requester
	e       *task
	id      string       // the id of the interrupt
	args    action       // as requested
	doc     desk.Request // at the last view
}

// lookAtDesk views the request; false if there is nothing to decide.
func (p *person) lookAtDesk(e *task) (s *deskVisit, status store.Status) {
	reply := p.askUntilAnswered(p.rng, doLook, request{Account: e.account, Key: e.key, Actor: p.name}, nil)
	if reply.View == nil {
		return nil, ""
	}
	for _, q := range reply.View.Questions {
		var asked fermata.ApprovalRequest
		s = &deskVisit{person: p, e: e, id: q.ID, doc: reply.View.Requests[q.ID]}
		if json.Unmarshal(q.Data, &asked) != nil || json.Unmarshal(asked.Args, &s.args) != nil {
			p.fault("invalid question %s: %s", q.ID, q.Data)
			return nil, ""
		}
	}
	return s, reply.View.Status
}

// pace returns how slow the machine is: twice the duration of a decision should pass before a step.
func (h *history) pace() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pace := range paces - 1 {
		if h.usual < (40*time.Millisecond)<<(2*pace) {
			return pace
		}
	}
	return paces - 1
}

// stage starts a payment and lets people act on it, at times when timers fire too.
func (p *person) stage(e *task) {
	r := request{Account: e.account, Key: e.key, Amount: e.amount + p.history.pace()*million, Actor: p.name}
	p.twice(20, func(p *person) { p.askUntilAnswered(p.rng, doStart, r, nil) })
	for {
		s, status := p.lookAtDesk(e)
		if s != nil {
			s.run()
			return
		}
		if !status.Active() || p.over.Err() != nil {
			return
		}
		p.pause(20 * time.Millisecond)
	}
}

// pause waits, unless the test has ended.
func (p *person) pause(d time.Duration) {
	select {
	case <-p.over.Done():
	case <-time.After(d):
	}
}

// run runs some rounds in which people act at the same time.
func (s *deskVisit) run() {
	if s.percent(25) {
		s.visitor()
	}
	for range 1 + s.rng.IntN(3) {
		s.pause(time.Until(s.arrivalTime()))
		var crowd sync.WaitGroup
		for range 1 + s.rng.IntN(3) {
			voter := s.another(s.voter())
			said, ok := s.newDecision(voter)
			if ok {
				crowd.Go(func() {
					voter.twice(25, func(p *person) { p.askUntilAnswered(p.rng, doDecide, said.request, said.aims) })
				})
			}
		}
		for range s.rng.IntN(3) {
			actor := s.another(s.voter())
			r := s.newCommand(actor)
			crowd.Go(func() { actor.ask(actor.rng, doAct, r, nil) })
		}
		if s.percent(4) {
			quitter := s.another(s.name)
			r := request{Account: s.e.account, Key: s.e.key, Actor: s.name}
			crowd.Go(func() { quitter.askUntilAnswered(quitter.rng, doCancel, r, nil) })
		}
		crowd.Wait()
		now, status := s.lookAtDesk(s.e)
		if now == nil || !status.Active() || now.doc.State != desk.StateOpen {
			return
		}
		s.doc = now.doc
	}
}

// arrivalTime returns when people act: at once, or about when a route step is due, most often at
// the deadline.
func (s *deskVisit) arrivalTime() time.Time {
	s.deadlines([]question{{Deadline: s.doc.Deadline}})
	early := time.Duration(s.rng.IntN(80)-20) * time.Millisecond // their requests take some time
	switch dice := s.rng.IntN(100); {
	case dice < 40:
		return time.Now()
	case dice < 65:
		step := s.doc.Route.Steps[s.rng.IntN(len(s.doc.Route.Steps))]
		at := s.doc.RouteProgress.Base.Add(time.Duration(step.At))
		s.deadlines([]question{{Deadline: at}})
		return at.Add(-early)
	}
	return s.doc.Deadline.Add(-early)
}

// visitor is a payer who approves and leaves the group a moment later. Often another person votes
// just then, whose vote would have been sufficient.
func (s *deskVisit) visitor() {
	leaves := time.Now().Add(time.Duration(80+s.rng.IntN(200)) * time.Millisecond << s.history.pace())
	temp := s.another(tempUntil(leaves))
	said, ok := s.newDecision(temp)
	if !ok {
		return
	}
	temp.askUntilAnswered(temp.rng, doDecide, said.request, said.aims)
	if s.percent(70) {
		s.pause(time.Until(leaves))
		second := s.another(permanent[s.rng.IntN(len(permanent))])
		if said, ok := s.newDecision(second); ok {
			second.askUntilAnswered(second.rng, doDecide, said.request, said.aims)
		}
	}
}

// voter returns a person, mostly an eligible one.
func (s *deskVisit) voter() string {
	switch dice := s.rng.IntN(100); {
	case dice < 4:
		return s.name // the requester
	case dice < 8:
		return outsider
	}
	return permanent[s.rng.IntN(len(permanent))]
}

// newDecision returns a voter's decision on what they saw, and its meaning.
func (s *deskVisit) newDecision(voter *person) (decision, bool) {
	d := decision{request: request{Account: s.e.account, Key: s.e.key, Actor: voter.name, ResumeID: voter.nextID(), Shown: s.doc.Digest()}}
	args := s.args
	if s.doc.Edit != nil && json.Unmarshal(s.doc.Edit.Args, &args) != nil {
		s.fault("invalid edit of %s: %s", s.id, s.doc.Edit.Args)
		return d, false
	}
	if voter.percent(30) { // a decision without a digest means the original request
		d.Shown, args = "", s.args
	}
	meant, value := intendedVote{Interrupt: s.id, Kind: fermata.Approval.Name(), Gate: pay}, ""
	switch dice := voter.rng.IntN(100); {
	case dice < 3:
		list := nonsense[fermata.Approval.Name()]
		meant.Nonsense, value = true, list[voter.rng.IntN(len(list))]
	case dice < 18:
		meant.Word, value = "reject", `{"verb":"reject","reason":"no"}`
	case dice < 28:
		args.Amount += 3 * (1 + voter.rng.IntN(100))
		meant.Edited = true
		value = fmt.Sprintf(`{"verb":"approve","args":{"order":%q,"gate":%q,"amount":%d}}`, args.Order, args.Gate, args.Amount)
		meant.Approve = &args
	default:
		meant.Approve, value = &args, `{"verb":"approve"}`
	}
	d.Targets = map[string]json.RawMessage{s.id: json.RawMessage(value)}
	d.aims = []intendedVote{meant}
	s.e.remember(d)
	return d, true
}

// newCommand returns a command that does not decide.
func (s *deskVisit) newCommand(actor *person) request {
	a := &commandBody{Request: s.id, Name: []desk.CommandName{
		desk.CommandClaim, desk.CommandRelease, desk.CommandView, desk.CommandComment, desk.CommandComment, desk.CommandDelegate, desk.CommandSnooze, desk.CommandExtend, desk.CommandEscalate,
	}[actor.rng.IntN(9)]}
	switch a.Name {
	case desk.CommandComment:
		a.Text = actor.nextID()
	case desk.CommandDelegate:
		a.To = permanent[actor.rng.IntN(len(permanent))]
	case desk.CommandSnooze:
		a.Until = time.Now().Add(time.Duration(20+actor.rng.IntN(300)) * time.Millisecond)
	case desk.CommandExtend:
		a.Until = s.doc.Deadline.Add(time.Duration(actor.rng.IntN(500)) * time.Millisecond)
	}
	return request{Account: s.e.account, Key: s.e.key, Actor: actor.name, Act: a}
}

// finishTask checks whether a payment has ended. Sometimes a person repeats an earlier decision, or
// is too late.
func (p *person) finishTask(e *task) {
	s, status := p.lookAtDesk(e)
	if status == "" {
		return
	}
	if d, ok := e.old(p.rng); ok && p.percent(30) {
		p.askUntilAnswered(p.rng, doDecide, d.request, d.aims)
	}
	if s != nil && p.percent(15) {
		late := p.another(s.voter())
		if d, ok := s.newDecision(late); ok {
			late.askUntilAnswered(late.rng, doDecide, d.request, d.aims)
		}
	}
	switch {
	case !status.Active():
		if p.board.finished(e) && s != nil && s.doc.Decision != nil {
			p.board.saw(s.doc.Decision.Outcome)
			if len(s.doc.VoteProgress.Uncounted) > 0 {
				p.board.saw(outcomeHadLeft)
			}
		}
	case status == store.StatusParked:
		p.askUntilAnswered(p.rng, doRetry, request{Account: e.account, Key: e.key, Actor: p.name}, nil)
	}
}
