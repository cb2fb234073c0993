//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// payday lets people pay, who have to ask others. What it returns is as of populate.
func (w *world) payday(people int) (wait func()) {
	var working sync.WaitGroup
	for n := range people {
		p := &person{world: w, name: fmt.Sprintf("%s%d", requesters, n+1), rng: w.dice(uint64(n + 1))}
		working.Go(p.workAtDesk)
	}
	return working.Wait
}

// workAtDesk wants one payment after the other, and has others decide on it against the clock.
func (p *person) workAtDesk() {
	for {
		e, todo := p.board.take(p.rng)
		switch todo {
		case toBegin:
			p.stage(e)
			p.board.begun(e)
		case toAttend:
			p.seeOut(e)
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

// scene is a payment that people are asked about.
type scene struct {
	*person // who wants it
	e       *errand
	id      string       // of the question
	args    action       // as asked
	doc     desk.Request // as it was when somebody looked last
}

// look sees how things stand; false if there is nothing to decide.
func (p *person) lookAtDesk(e *errand) (s *scene, status store.Status) {
	reply := p.insist(p.rng, doLook, request{Account: e.account, Key: e.key, Actor: p.name}, nil)
	if reply.View == nil {
		return nil, ""
	}
	for _, q := range reply.View.Questions {
		var asked fermata.ApprovalRequest
		s = &scene{person: p, e: e, id: q.ID, doc: reply.View.Requests[q.ID]}
		if json.Unmarshal(q.Data, &asked) != nil || json.Unmarshal(asked.Args, &s.args) != nil {
			p.fault("question %s cannot be read: %s", q.ID, q.Data)
			return nil, ""
		}
	}
	return s, reply.View.Status
}

// pace is how slow the machine is just now: what a word takes, twice over, should pass before anything happens.
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

// stage begins a payment and has people act on it, at moments when the clock does, too.
func (p *person) stage(e *errand) {
	r := request{Account: e.account, Key: e.key, Amount: e.amount + p.history.pace()*million, Actor: p.name}
	p.twice(20, func(p *person) { p.insist(p.rng, doStart, r, nil) })
	for {
		s, status := p.lookAtDesk(e)
		if s != nil {
			s.play()
			return
		}
		if !status.Alive() || p.over.Err() != nil {
			return
		}
		p.pause(20 * time.Millisecond)
	}
}

// pause waits, unless the world is over.
func (p *person) pause(d time.Duration) {
	select {
	case <-p.over.Done():
	case <-time.After(d):
	}
}

// play is some rounds in which people come at the same moment.
func (s *scene) play() {
	if s.percent(25) {
		s.visitor()
	}
	for range 1 + s.rng.IntN(3) {
		s.pause(time.Until(s.moment()))
		var crowd sync.WaitGroup
		for range 1 + s.rng.IntN(3) {
			voter := s.another(s.voter())
			said, ok := s.word(voter)
			if ok {
				crowd.Go(func() { voter.twice(25, func(p *person) { p.insist(p.rng, doDecide, said.request, said.aims) }) })
			}
		}
		for range s.rng.IntN(3) {
			actor := s.another(s.voter())
			r := s.deed(actor)
			crowd.Go(func() { actor.ask(actor.rng, doAct, r, nil) })
		}
		if s.percent(4) {
			quitter := s.another(s.name)
			r := request{Account: s.e.account, Key: s.e.key, Actor: s.name}
			crowd.Go(func() { quitter.insist(quitter.rng, doCancel, r, nil) })
		}
		crowd.Wait()
		now, status := s.lookAtDesk(s.e)
		if now == nil || !status.Alive() || now.doc.State != desk.Open {
			return
		}
		s.doc = now.doc
	}
}

// moment is when people come: at once, or about when the route does something, most of all when it ends.
func (s *scene) moment() time.Time {
	s.deadlines([]question{{Deadline: s.doc.Deadline}})
	early := time.Duration(s.rng.IntN(80)-20) * time.Millisecond // what they say needs a moment to get there
	switch dice := s.rng.IntN(100); {
	case dice < 40:
		return time.Now()
	case dice < 65:
		step := s.doc.Route.Steps[s.rng.IntN(len(s.doc.Route.Steps))]
		at := s.doc.Place.Base.Add(time.Duration(step.At))
		s.deadlines([]question{{Deadline: at}})
		return at.Add(-early)
	}
	return s.doc.Deadline.Add(-early)
}

// visitor is a payer who says yes and is none any more a moment later. Often somebody comes right then, whose yes would have been enough.
func (s *scene) visitor() {
	leaves := time.Now().Add(time.Duration(80+s.rng.IntN(200)) * time.Millisecond << s.history.pace())
	temp := s.another(tempUntil(leaves))
	said, ok := s.word(temp)
	if !ok {
		return
	}
	temp.insist(temp.rng, doDecide, said.request, said.aims)
	if s.percent(70) {
		s.pause(time.Until(leaves))
		second := s.another(permanent[s.rng.IntN(len(permanent))])
		if said, ok := s.word(second); ok {
			second.insist(second.rng, doDecide, said.request, said.aims)
		}
	}
}

// voter is mostly somebody who may decide.
func (s *scene) voter() string {
	switch dice := s.rng.IntN(100); {
	case dice < 4:
		return s.name // the requester
	case dice < 8:
		return outsider
	}
	return permanent[s.rng.IntN(len(permanent))]
}

// word is what a voter says to what they saw, and what they mean by it.
func (s *scene) word(voter *person) (decision, bool) {
	d := decision{request: request{Account: s.e.account, Key: s.e.key, Actor: voter.name, ResumeID: voter.nextID(), Shown: s.doc.Digest()}}
	args := s.args
	if s.doc.Edit != nil && json.Unmarshal(s.doc.Edit.Args, &args) != nil {
		s.fault("the edit of %s cannot be read: %s", s.id, s.doc.Edit.Args)
		return d, false
	}
	if voter.percent(30) { // whoever does not say what they saw means what was asked
		d.Shown, args = "", s.args
	}
	meant, value := aim{Interrupt: s.id, Kind: fermata.Approval.Name(), Gate: pay}, ""
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
	d.aims = []aim{meant}
	s.e.remember(d)
	return d, true
}

// deed is something that decides nothing.
func (s *scene) deed(actor *person) request {
	a := &acting{Request: s.id, Name: []desk.Name{
		desk.NameClaim, desk.NameRelease, desk.NameView, desk.NameComment, desk.NameComment, desk.NameDelegate, desk.NameSnooze, desk.NameExtend, desk.NameEscalate,
	}[actor.rng.IntN(9)]}
	switch a.Name {
	case desk.NameComment:
		a.Text = actor.nextID()
	case desk.NameDelegate:
		a.To = permanent[actor.rng.IntN(len(permanent))]
	case desk.NameSnooze:
		a.Until = time.Now().Add(time.Duration(20+actor.rng.IntN(300)) * time.Millisecond)
	case desk.NameExtend:
		a.Until = s.doc.Deadline.Add(time.Duration(actor.rng.IntN(500)) * time.Millisecond)
	}
	return request{Account: s.e.account, Key: s.e.key, Actor: actor.name, Act: a}
}

// seeOut looks whether a payment is over. Sometimes somebody says something again that was said before, or comes too late.
func (p *person) seeOut(e *errand) {
	s, status := p.lookAtDesk(e)
	if status == "" {
		return
	}
	if d, ok := e.old(p.rng); ok && p.percent(30) {
		p.insist(p.rng, doDecide, d.request, d.aims)
	}
	if s != nil && p.percent(15) {
		late := p.another(s.voter())
		if d, ok := s.word(late); ok {
			late.insist(late.rng, doDecide, d.request, d.aims)
		}
	}
	switch {
	case !status.Alive():
		if p.board.finished(e) && s != nil && s.doc.Final != nil {
			p.board.saw(s.doc.Final.Outcome)
			if len(s.doc.Progress.Lapsed) > 0 {
				p.board.saw(hadLeft)
			}
		}
	case status == store.Parked:
		p.insist(p.rng, doRetry, request{Account: e.account, Key: e.key, Actor: p.name}, nil)
	}
}
