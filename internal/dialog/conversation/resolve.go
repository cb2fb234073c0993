package conversation

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

// answer applies an answer that was recognized: it may need a read-back, more fields, or the
// description of another person.
func (m *Machine) answer(c *Conversation, a *Asking, answer Answer, msg Message, known Known, r *Result) {
	switch a.Status {
	case Confirming:
		m.readBack(c, a, answer, msg, r)
		return
	case Collecting:
		m.collect(c, a, answer, msg, known, r)
		return
	case Comparing:
		if answer.Yes {
			same := *a.Candidate
			same.Actor, same.Modality, same.Method, same.Text = msg.Actor, c.Modality, ByName, ""
			m.accept(c, a, same, msg.At, r)
			return
		}
		a.Candidate, a.Status = nil, Drafted
		r.say(m.show(c, a, m.words().ask(c, a)))
		return
	case Drafted:
		m.create(c, a, answer, msg, r)
		return
	case Queued, Asked, HandedOver, Answered, Escaped, Expired, Lapsed, Withdrawn:
	}
	switch a.Question.Kind {
	case Confirmation:
		m.confirm(c, a, answer, msg, r)
	case Form:
		m.fill(c, a, answer, msg, r)
	case Clarification, Disambiguation:
		m.choose(c, a, answer, msg, r)
	}
}

// confirm accepts a yes or no. A spoken yes is read back if the speech recognition is not sure, or
// if the action is risky. A spoken yes to a critical action only moves the question to the screen.
func (m *Machine) confirm(c *Conversation, a *Asking, answer Answer, msg Message, r *Result) {
	if !answer.Yes || c.Modality != Voice {
		a.Screen = a.Screen && c.Modality == Voice
		m.accept(c, a, answer, msg.At, r)
		return
	}
	switch {
	case a.Question.Risk >= RiskCritical:
		a.Screen = true
		a.ReAsks++
		r.say(m.show(c, a, m.words().ask(c, a)))
	case a.Question.Risk >= RiskHigh, !m.understood(msg):
		a.Status, a.Candidate = Confirming, &answer
		r.say(m.show(c, a, m.words().ask(c, a)))
	default:
		m.accept(c, a, answer, msg.At, r)
	}
}

// readBack applies the reply to a read-back. No means that the answer was misunderstood, except for
// a confirmation, where it is the answer.
func (m *Machine) readBack(c *Conversation, a *Asking, answer Answer, msg Message, r *Result) {
	switch {
	case answer.Yes:
		confirmed := *a.Candidate
		confirmed.Method, confirmed.At = ByReadBack, msg.At
		a.Status = Asked
		if confirmed.Option == ChoiceOther {
			m.startCollecting(c, a, r)
			return
		}
		m.accept(c, a, confirmed, msg.At, r)
	case a.Question.Kind == Confirmation:
		m.accept(c, a, answer, msg.At, r)
	default:
		a.Status, a.Candidate = Asked, nil
		r.say(m.repeat(c, a, "then_which"))
	}
}

// choose accepts an option or a text. A guess is read back if it is spoken or has a risk, and so is
// an option in doubt ("Anna Meier?") and everything that the speech recognition is not sure about.
func (m *Machine) choose(c *Conversation, a *Asking, answer Answer, msg Message, r *Result) {
	guessed := answer.Method == BySemantics && (a.Question.Risk >= RiskLow || c.Modality == Voice)
	doubted := answer.Option != "" && answer.Option != ChoiceOther && msg.Text != "" && !certain(a.Question.Options, msg.Text)
	if guessed || doubted || answer.Method != ByButton && !m.understood(msg) {
		if answer.Option == "" {
			answer.Text = raw(msg)
		}
		a.Status, a.Candidate = Confirming, &answer
		r.say(m.show(c, a, m.words().ask(c, a)))
		return
	}
	if answer.Option == ChoiceOther {
		m.startCollecting(c, a, r)
		return
	}
	m.accept(c, a, answer, msg.At, r)
}

func (m *Machine) startCollecting(c *Conversation, a *Asking, r *Result) {
	a.Status, a.Candidate = Collecting, nil
	c.Focus = a.ID
	r.say(m.show(c, a, m.words().ask(c, a)))
}

// fill stores fields of a form and accepts it when it is complete.
func (m *Machine) fill(c *Conversation, a *Asking, answer Answer, msg Message, r *Result) {
	if a.Filled == nil {
		a.Filled = make(map[string]string)
	}
	for name, value := range answer.Fields {
		a.Filled[name] = value
	}
	if len(missing(a)) > 0 {
		r.say(m.show(c, a, m.words().ask(c, a)))
		return
	}
	answer.Fields = a.Filled
	m.accept(c, a, answer, msg.At, r)
}

// collect makes the draft of a new entity from a description, and compares it with known ones.
func (m *Machine) collect(c *Conversation, a *Asking, answer Answer, msg Message, known Known, r *Result) {
	draft := parseEntity(answer.Text)
	if j := msg.Judgement; j != nil && j.Entity != nil && strings.TrimSpace(j.Entity.Name) != "" {
		draft = *j.Entity
	}
	if draft.Name == "" {
		m.unclear(c, a, unclear("unclear"), r)
		return
	}
	draft.ID = entityID(c, a)
	a.Draft, a.Status = &draft, Drafted
	if similar, ok := nearDuplicate(draft, known.Entities); ok {
		a.Status = Comparing
		a.Candidate = &Answer{Option: similar.ID, Text: describeEntity(&similar), Raw: raw(msg)}
	}
	r.say(m.show(c, a, m.words().ask(c, a)))
}

// create stores the new entity after the user has confirmed or edited its form.
func (m *Machine) create(c *Conversation, a *Asking, answer Answer, msg Message, r *Result) {
	if !answer.Yes {
		a.Draft = nil
		m.startCollecting(c, a, r)
		return
	}
	entity := *a.Draft
	if answer.Fields != nil {
		entity.Name, entity.Role, entity.Context = strings.TrimSpace(answer.Fields["name"]), answer.Fields["role"], answer.Fields["context"]
	}
	a.Draft = &entity
	r.add(SaveEntity{entity})
	m.accept(c, a, Answer{
		Option: entity.ID, Text: entity.Name, Raw: raw(msg), Method: ByCreation, Score: 1, Actor: msg.Actor, Modality: c.Modality,
	}, msg.At, r)
}

// parseEntity reads "name, role, context". It needs the name only.
func parseEntity(text string) Entity {
	parts := strings.SplitN(text, ",", 3)
	for i := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(parts[i]), ".!?")
	}
	e := Entity{Name: parts[0]}
	if len(parts) > 1 {
		e.Role = parts[1]
	}
	if len(parts) > 2 {
		e.Context = parts[2]
	}
	return e
}

// nearDuplicate returns a known entity whose name or alias is the same, contains the other, or
// differs by a typing mistake.
func nearDuplicate(draft Entity, known []Entity) (Entity, bool) {
	name := fold.Text(draft.Name)
	similar := func(other string) bool {
		other = fold.Text(other)
		if other == "" || name == "" {
			return false
		}
		if len(name) >= 5 && fold.Distance(name, other) <= 1+len(name)/10 {
			return true
		}
		own, theirs := strings.Fields(name), strings.Fields(other)
		within := func(a, b []string) bool {
			return !slices.ContainsFunc(a, func(word string) bool { return !slices.Contains(b, word) })
		}
		return within(own, theirs) || len(theirs) > 1 && within(theirs, own)
	}
	for _, e := range known {
		if e.ID != draft.ID && (similar(e.Name) || slices.ContainsFunc(e.Aliases, similar)) {
			return e, true
		}
	}
	return Entity{}, false
}

// The default lifetimes of remembered answers.
const (
	rememberInConversation = 24 * time.Hour
	rememberForUser        = 90 * 24 * time.Hour
)

// recall returns the remembered answer to a question, and records that the question depends on it.
func recall(c *Conversation, q Question, known Known, now time.Time, id string) (Answer, bool) {
	if q.Remember == nil {
		return Answer{}, false
	}
	valid := func(r Remembered) bool {
		return r.Key == q.Remember.Key && now.Before(r.ExpiresAt) &&
			(r.Answer.Option == "" || slices.ContainsFunc(q.Options, func(o Option) bool { return o.ID == r.Answer.Option }))
	}
	if at := slices.IndexFunc(c.Memory, valid); at >= 0 {
		c.Memory[at].Dependents = append(c.Memory[at].Dependents, id)
		return c.Memory[at].Answer, true
	}
	if at := slices.IndexFunc(known.Memory, valid); at >= 0 {
		copied := known.Memory[at]
		copied.Dependents = []string{id} // of this conversation
		c.Memory = append(c.Memory, copied)
		return copied.Answer, true
	}
	return Answer{}, false
}

// remember stores an answer for later questions with the same key.
func remember(c *Conversation, a *Asking, answer Answer, now time.Time, r *Result) {
	want := a.Question.Remember
	if want == nil || answer.Fields != nil {
		return
	}
	lifetime := want.For
	if lifetime <= 0 {
		lifetime = rememberInConversation
		if want.Scope == ScopeUser {
			lifetime = rememberForUser
		}
	}
	entry := Remembered{Key: want.Key, Scope: want.Scope, Answer: answer, Question: a.ID, ExpiresAt: now.Add(lifetime)}
	c.Memory = slices.DeleteFunc(c.Memory, func(r Remembered) bool { return r.Key == want.Key })
	c.Memory = append(c.Memory, entry)
	if want.Scope == ScopeUser {
		r.add(SaveMemory{entry})
	}
}
