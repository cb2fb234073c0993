package conversation

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/ident"
)

// Machine is the state machine of conversations. It performs no I/O and holds no state: all methods
// are safe for concurrent use on different conversations. Each method changes the conversation and
// returns what the caller has to say, store and deliver.
//
//	queued ──▶ asked ── answer ─────────────────────────────▶ answered ──▶ Deliver
//	            ├─ semantic match with risk, or voice ──▶ confirming ── yes ──▶ answered
//	            ├─ "someone else" ──▶ collecting ──▶ comparing ──▶ drafted ── yes ──▶ answered
//	            ├─ counter-question: explained, stays asked
//	            ├─ unclear: asked again; three times: choices, or handed over
//	            │     handed over ── no person answers ──▶ queued
//	            ├─ new intent: queued again, or withdrawn
//	            ├─ escape ──▶ escaped ──▶ Deliver
//	            ├─ deadline ──▶ expired ──▶ Deliver
//	            └─ non-blocking, two other turns ──▶ lapsed
type Machine dialog.Machine

func (m *Machine) words() wording          { return wording(m.Wording) }
func (m *Machine) minScore() float64       { return positiveOr(m.MinScore, 0.8) }
func (m *Machine) minMargin() float64      { return positiveOr(m.MinMargin, 0.15) }
func (m *Machine) minRecognition() float64 { return positiveOr(m.MinRecognition, 0.75) }

func (m *Machine) maxUnclear() int {
	if m.MaxUnclear > 0 {
		return m.MaxUnclear
	}
	return 3
}

func positiveOr(x, otherwise float64) float64 {
	if x > 0 {
		return x
	}
	return otherwise
}

// lapseAfter is the number of turns after which a non-blocking question lapses.
const lapseAfter = 2

// Known is the data outside of the conversation that a step needs.
type Known struct {
	Entities []Entity
	Memory   []Remembered // of the user
	// Runs are the runs of the conversation, by state key, for a correction.
	Runs map[string]PastRun
	// Again is the run that the asking run does again; "" for none.
	Again string
}

// PastRun is a run that has used an answer.
type PastRun struct {
	Request string // what the user wanted
	Said    string // what it told the user at its end
	Ended   bool
}

// Result is what a step of the machine has to say and to do.
type Result struct {
	Say     []Prompt
	Effects []Effect
}

func (r *Result) say(p ...Prompt) { r.Say = append(r.Say, p...) }
func (r *Result) add(e ...Effect) { r.Effects = append(r.Effects, e...) }
func next(c *Conversation) string { c.Seq++; return fmt.Sprintf("q%d", c.Seq) }

// Effect is something that a caller of the machine has to store or deliver: [Deliver], [StartRun],
// [AskPerson], [SaveEntity], [SaveFacts] or [SaveMemory].
//
//sumtype:decl
type Effect interface{ isEffect() }

// Deliver resumes the run that asked, with the answer.
type Deliver struct {
	Question string
	Target   Target
	Answer   Answer
}

// StartRun starts a run with a new intent of the user, or with that of an earlier run.
type StartRun struct {
	Text  string
	Again string // the earlier run, instead of Text
}

// AskPerson asks a person to answer for the user.
type AskPerson struct{ Question string }

// SaveEntity stores a new entity.
type SaveEntity struct{ Entity Entity }

// SaveFacts stores the facts of a question with an entity. Instead is the entity that the facts
// were stored with before; "" for none.
type SaveFacts struct {
	Question, Entity, Instead string
	Facts                     []Fact
}

// SaveMemory stores a remembered answer of the user, in place of one with the same key.
type SaveMemory struct{ Remembered Remembered }

func (Deliver) isEffect()    {}
func (StartRun) isEffect()   {}
func (AskPerson) isEffect()  {}
func (SaveEntity) isEffect() {}
func (SaveFacts) isEffect()  {}
func (SaveMemory) isEffect() {}

// Add adds a question to a conversation. It is asked by the next call of [Machine.Next], unless an
// earlier answer is remembered. id is unique in the conversation; "" makes one. A question that the
// conversation has is not added again.
func (m *Machine) Add(c *Conversation, id string, target Target, q Question, known Known, now time.Time) (Result, error) {
	if err := q.Validate(); err != nil {
		return Result{}, err
	}
	if id == "" {
		id = next(c)
	} else if c.Find(id) != nil {
		return Result{}, nil
	}
	if q.Relevance == "" {
		q.Relevance = Blocking
	}
	a := &Asking{ID: id, Question: q, Target: target, Status: Queued, CreatedAt: now}
	if q.ExpiresAfter > 0 {
		a.ExpiresAt = now.Add(q.ExpiresAfter)
	}
	c.Questions = append(c.Questions, a)
	var r Result
	if q.Say != "" {
		r.say(Prompt{Text: q.Say, Template: "say", Modality: c.Modality})
	}
	found, ok := recall(c, q, known, now, a.ID)
	if !ok {
		found, ok = answeredBefore(c, q, known.Again)
	}
	if ok {
		found.Method, found.At = ByMemory, now
		m.accept(c, a, found, now, &r)
		return r, nil
	}
	if q.Relevance == NonBlocking && len(q.Facts) > 0 && q.Default != "" {
		r.add(SaveFacts{Question: a.ID, Entity: q.Default, Facts: q.Facts})
	}
	return r, nil
}

// waits reports whether a question of this status waits for a message of the user.
func waits(s Status) bool { return s.Open() && s != Queued && s != HandedOver }

// waiting returns the open questions that wait for a message of the user.
func waiting(c *Conversation) []*Asking {
	return slices.DeleteFunc(c.Open(), func(a *Asking) bool { return !waits(a.Status) })
}

// Next asks the questions whose turn it is: on a screen all blocking ones, on voice one after the
// other; a non-blocking one when no blocking one is open. It asks questions again that were put
// aside for a new intent. The caller calls it when its runs have answered, and says their answers
// first.
func (m *Machine) Next(c *Conversation, now time.Time) Result {
	var r Result
	waiting := waiting(c)
	blocked := slices.ContainsFunc(waiting, func(a *Asking) bool { return a.Question.Relevance != NonBlocking })
	busy := len(waiting) > 0
	for _, a := range c.Open() {
		if waits(a.Status) && a.Parked {
			a.Parked = false
			a.ReAsks++
			r.say(m.show(c, a, m.words().ask(c, a)))
			continue
		}
		if a.Status != Queued {
			continue
		}
		aside := a.Question.Relevance == NonBlocking
		if busy && (c.Modality == Voice || aside) || aside && blocked {
			break
		}
		a.Status, a.AskedAt = Asked, now
		r.say(m.show(c, a, m.words().ask(c, a)))
		busy, blocked = true, blocked || !aside
	}
	return r
}

// show records the wording that the user sees.
func (m *Machine) show(c *Conversation, a *Asking, p Prompt) Prompt {
	a.Shown, a.Template, a.Modality = p.Text, p.Template, c.Modality
	return p
}

// repeat asks a question again, after a remark. {again} in the remark is the question.
func (m *Machine) repeat(c *Conversation, a *Asking, remark string, args ...string) Prompt {
	a.ReAsks++
	p := m.words().ask(c, a)
	text, template := m.words().say(inLanguageOf(a, c), remark, append(args, "again", p.Text)...)
	p.Text, p.Template = text, p.Template+"+"+template
	return m.show(c, a, p)
}

// Expire ends the questions whose deadline has passed. Their runs continue with an expired answer.
func (m *Machine) Expire(c *Conversation, now time.Time) Result {
	var r Result
	for _, a := range c.Open() {
		if a.ExpiresAt.IsZero() || now.Before(a.ExpiresAt) {
			continue
		}
		if waits(a.Status) {
			text, template := m.words().say(inLanguageOf(a, c), "expired", "q", a.Question.Text)
			r.say(Prompt{Text: text, Template: template, Modality: c.Modality})
		}
		m.end(c, a, Expired, Answer{Expired: true, Method: ByDeadline}, now, &r)
	}
	return r
}

// Withdraw ends a question that its run does not ask any more.
func (m *Machine) Withdraw(c *Conversation, id string, now time.Time) {
	if a := c.Find(id); a != nil && a.Status.Open() {
		a.Status, a.EndedAt, a.Candidate = Withdrawn, now, nil
		forget(c, id)
	}
}

// AnswerByPerson applies the answer of the person that a question was handed over to. It does
// nothing if the question was answered in the meantime.
func (m *Machine) AnswerByPerson(c *Conversation, id string, answer Answer, now time.Time) Result {
	var r Result
	if a := c.Find(id); a != nil && a.Status.Open() {
		answer.Method = ByPerson
		m.accept(c, a, answer, now, &r)
	}
	return r
}

// HandBack asks the user again for the answer to a question that no person has answered for them.
func (m *Machine) HandBack(c *Conversation, id string) {
	if a := c.Find(id); a != nil && a.Status == HandedOver {
		a.Status, a.Unclear = Queued, 0
		a.ReAsks++
	}
}

// forget removes a closed question from the focus and from the candidates of a reply.
func forget(c *Conversation, id string) {
	if c.Focus == id {
		c.Focus = ""
	}
	if c.Which != nil && slices.Contains(c.Which.Candidates, id) {
		c.Which = nil
	}
}

// end closes a question without a value.
func (m *Machine) end(c *Conversation, a *Asking, status Status, answer Answer, now time.Time, r *Result) {
	answer.At = now
	a.Status, a.Answer, a.EndedAt, a.Candidate = status, &answer, now, nil
	forget(c, a.ID)
	if a.Target != (Target{}) {
		r.add(Deliver{a.ID, a.Target, answer})
	}
}

// accept closes a question with its answer, and has facts stored in the same step.
func (m *Machine) accept(c *Conversation, a *Asking, answer Answer, now time.Time, r *Result) {
	if len(a.Question.Facts) > 0 && answer.Option != "" {
		instead := ""
		if a.Question.Relevance == NonBlocking {
			instead = a.Question.Default
		}
		if answer.Option != instead {
			r.add(SaveFacts{Question: a.ID, Entity: answer.Option, Instead: instead, Facts: a.Question.Facts})
		}
	}
	if answer.Method != ByMemory {
		remember(c, a, answer, now, r)
	}
	m.end(c, a, Answered, answer, now, r)
	switch {
	case a.Again != "" && answer.Yes:
		m.startAgain(c, a.Again, answer, now, r)
	case a.Again != "":
		m.remark(c, "escaped", r)
	}
}

// entityID returns the id of the entity that a question creates. It is the same if the step is
// repeated.
func entityID(c *Conversation, a *Asking) string {
	return ident.Derive("ent", c.ID, a.ID, a.Target.Run)
}
