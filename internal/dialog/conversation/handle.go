package conversation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxText is the maximum length of a message in bytes.
const MaxText = 16 << 10

// Handle applies a message of the user. It returns ErrUnknownQuestion, ErrClosed or ErrInvalidReply
// for a message that does not fit; then nothing was changed.
//
// A message that answers no question starts a run ([StartRun]). The caller stores and delivers the
// effects, and calls [Machine.Next] when its runs have answered or wait.
func (m *Machine) Handle(c *Conversation, msg Message, known Known) (Result, error) {
	if err := m.check(c, msg); err != nil {
		return Result{}, err
	}
	c.Modality = Modality(orElse(string(msg.Modality), string(Text)))
	c.Channel = orElse(msg.Channel, c.Channel)
	c.Language = Language(orElse(string(msg.Language), string(c.Language)))
	if !counts(msg.Judgement) {
		msg.Judgement = nil
	}
	var r Result
	turns := make(map[string]int)
	for _, a := range c.Questions {
		turns[a.ID] = len(a.Turns)
	}
	if len(msg.Replies) > 0 {
		for _, id := range slices.Sorted(maps.Keys(msg.Replies)) {
			reply, part := msg.Replies[id], msg
			part.Replies, part.Question, part.Text, part.Choice, part.Fields = nil, id, reply.Text, reply.Choice, reply.Fields
			m.handleOne(c, c.Find(id), part, known, &r)
		}
	} else {
		m.handleMessage(c, msg, known, &r)
	}
	m.lapse(c, msg, turns, &r)
	return r, nil
}

// check returns the error for explicit parts of a message that do not fit their question.
func (m *Machine) check(c *Conversation, msg Message) error {
	one := func(id string, part Message) error {
		a := c.Find(id)
		switch {
		case a == nil:
			return fmt.Errorf("%w: %q", ErrUnknownQuestion, id)
		case isCorrection(a, part):
			return nil
		case !a.Status.Open():
			return fmt.Errorf("%w: %s is %s", ErrClosed, id, a.Status)
		case isYesNo(a) && a.AskedAt.IsZero():
			return fmt.Errorf("%w: %s was not asked yet", ErrInvalidReply, id)
		}
		if r := m.readExactly(c, a, part); r.verdict == "" {
			return fmt.Errorf("%w: %s has no such option or field", ErrInvalidReply, id)
		}
		return nil
	}
	for id, reply := range msg.Replies {
		if err := one(id, Message{Text: reply.Text, Choice: reply.Choice, Fields: reply.Fields, Modality: msg.Modality, At: msg.At}); err != nil {
			return err
		}
	}
	switch {
	case len(msg.Text) > MaxText:
		return fmt.Errorf("%w: the text has %d bytes, %d are allowed", ErrInvalidReply, len(msg.Text), MaxText)
	case msg.Question != "":
		return one(msg.Question, msg)
	case len(msg.Replies) == 0 && (msg.Choice != "" || msg.Fields != nil):
		return fmt.Errorf("%w: a button or form needs the id of its question", ErrInvalidReply)
	}
	return nil
}

// A destination is the question that a message belongs to, or the reason why there is none.
type destination struct {
	question *Asking
	several  []*Asking // the message fits each of these
	all      bool      // "cancel everything"
}

func (m *Machine) route(c *Conversation, msg Message) destination {
	if msg.Question != "" {
		return destination{question: c.Find(msg.Question)}
	}
	waiting := waiting(c)
	if len(waiting) == 1 && m.concerns(c, waiting[0], msg) {
		return destination{question: waiting[0]}
	}
	if len(waiting) < 2 {
		return destination{}
	}
	p := phrasesOf(languageOf(c, msg))
	if p.has(msg.Text, escapeAllPhrases) && m.understood(msg) {
		return destination{all: true}
	}
	if a := c.Find(c.Focus); a != nil && waits(a.Status) {
		return destination{question: a}
	}
	bare := msg
	bare.Judgement = nil
	var exact, free []*Asking
	for _, a := range waiting {
		switch r := m.read(c, a, bare); {
		case r.verdict == IsEscape && a.Question.Relevance == NonBlocking: // it may be ignored
		case r.exact, r.verdict == IsUnclear && r.doubt == "not_sure" && !r.consult:
			exact = append(exact, a)
		case r.verdict == IsAnswer && a.Question.Relevance != NonBlocking:
			free = append(free, a)
		}
	}
	blocking := slices.DeleteFunc(slices.Clone(waiting), func(a *Asking) bool { return a.Question.Relevance == NonBlocking })
	switch {
	case len(exact) == 1:
		return destination{question: exact[0]}
	case len(exact) > 1:
		return destination{several: exact}
	case len(free) == 1:
		return destination{question: free[0]}
	case len(blocking) == 1:
		return destination{question: blocking[0]}
	case len(free) > 1:
		return destination{several: free}
	}
	return destination{several: waiting}
}

// concerns reports whether a message belongs to the only question that waits. The user may ignore a
// non-blocking question, so a message belongs to it only if it fits.
func (m *Machine) concerns(c *Conversation, a *Asking, msg Message) bool {
	if a.Question.Relevance != NonBlocking || a.Status != Asked {
		return true
	}
	r := m.read(c, a, msg)
	j := msg.Judgement
	return r.exact || r.verdict == IsCounterQuestion || r.verdict == IsUnclear && !r.consult ||
		j != nil && j.Verdict == IsAnswer && j.Score >= m.minScore() && r.verdict == IsAnswer
}

// Consult returns the question that a model should judge the message for, and false if exact rules
// suffice. The caller sets Message.Judgement and passes the message to [Machine.Handle].
func (m *Machine) Consult(c *Conversation, msg Message) (Asking, bool) {
	if msg.Text == "" || len(msg.Replies) > 0 || c.Which != nil || m.check(c, msg) != nil {
		return Asking{}, false
	}
	to := m.route(c, msg)
	a := to.question
	if a == nil && len(to.several) > 0 {
		a = to.several[0]
	} else if waiting := waiting(c); a == nil && !to.all && len(waiting) > 0 {
		a = waiting[0]
	}
	if a == nil || !a.Status.Open() {
		return Asking{}, false
	}
	msg.Judgement = nil
	if to.question != nil && !m.readExactly(c, a, msg).consult {
		return Asking{}, false
	}
	return *a, true
}

func (m *Machine) handleMessage(c *Conversation, msg Message, known Known, r *Result) {
	if c.Which != nil && msg.Question == "" && m.handleWhich(c, msg, known, r) {
		return
	}
	to := m.route(c, msg)
	switch {
	case to.all:
		for _, a := range waiting(c) {
			m.escape(c, a, msg, r)
		}
		m.remark(c, "escaped", r)
	case to.question != nil:
		m.handleOne(c, to.question, msg, known, r)
	case len(to.several) == 0:
		r.add(StartRun{Text: msg.Text})
	case msg.Judgement != nil && msg.Judgement.Verdict == IsNewIntent && msg.Judgement.Score >= m.minScore():
		m.newIntent(c, nil, msg, r)
	default:
		m.askWhich(c, msg, to.several, r)
	}
}

// askWhich asks which of several questions a reply belongs to.
func (m *Machine) askWhich(c *Conversation, msg Message, several []*Asking, r *Result) {
	which := &Which{Text: msg.Text}
	choices := make([]Choice, 0, len(several))
	for i, a := range several {
		which.Candidates = append(which.Candidates, a.ID)
		choices = append(choices, Choice{ID: a.ID, Label: a.Question.Text, Number: i + 1})
	}
	c.Which = which
	text, template := m.words().say(c, "which", "options", m.words().readOut(c, choices))
	r.say(Prompt{Text: text, Template: template, Choices: choices, Modality: c.Modality})
}

// handleWhich applies the reply to "which one do you mean?". It reports false if the message is not
// such a reply. A confirmation is asked again, because the earlier yes could belong to another
// question.
func (m *Machine) handleWhich(c *Conversation, msg Message, known Known, r *Result) bool {
	which := *c.Which
	c.Which = nil
	p := phrasesOf(languageOf(c, msg))
	options := make([]Option, 0, len(which.Candidates))
	for _, id := range which.Candidates {
		options = append(options, Option{ID: id, Label: c.Find(id).Question.Text})
	}
	reply, ok := readOption(p, &Asking{Question: Question{Options: options}}, msg.Text)
	if !ok || reply.verdict != IsAnswer {
		return false
	}
	a := c.Find(reply.answer.Option)
	c.Focus = a.ID
	earlier := msg
	earlier.Text = which.Text
	read := m.readExactly(c, a, earlier)
	if isYesNo(a) && read.verdict != IsEscape || read.verdict == IsUnclear {
		a.ReAsks++
		r.say(m.show(c, a, m.words().ask(c, a)))
		return true
	}
	m.handleOne(c, a, earlier, known, r)
	return true
}

// handleOne applies a message to a question.
func (m *Machine) handleOne(c *Conversation, a *Asking, msg Message, known Known, r *Result) {
	if isCorrection(a, msg) {
		m.correct(c, a, msg, known, r)
		return
	}
	if !a.Status.Open() { // an earlier part of the same form ended it
		return
	}
	if a.Status == Queued {
		a.Status = Asked
	}
	reading := m.read(c, a, msg)
	a.Turns = append(a.Turns, Turn{
		Question: orElse(a.Shown, a.Question.Text), Template: a.Template, Reply: raw(msg), Verdict: reading.verdict,
		Modality: c.Modality, Actor: msg.Actor, AskedAt: a.AskedAt, At: msg.At,
	})
	switch reading.verdict {
	case IsEscape:
		m.escape(c, a, msg, r)
		m.remark(c, "escaped", r)
	case IsNewIntent:
		m.newIntent(c, a, msg, r)
	case IsCounterQuestion:
		m.explain(c, a, reading, r)
	case IsUnclear:
		m.unclear(c, a, reading, r)
	case IsAnswer:
		answer := *reading.answer
		answer.Raw, answer.Actor, answer.Modality = raw(msg), msg.Actor, c.Modality
		if answer.Score == 0 {
			answer.Score = positiveOr(msg.Recognition, 1)
		}
		m.answer(c, a, answer, msg, known, r)
	}
}

// raw returns the reply as text.
func raw(msg Message) string {
	switch {
	case msg.Choice != "":
		return msg.Choice
	case msg.Digits != "":
		return msg.Digits
	case msg.Fields != nil:
		parts := make([]string, 0, len(msg.Fields))
		for _, name := range slices.Sorted(maps.Keys(msg.Fields)) {
			parts = append(parts, name+": "+msg.Fields[name])
		}
		return strings.Join(parts, ", ")
	case len(msg.Replies) > 0:
		parts := make([]string, 0, len(msg.Replies))
		for _, id := range slices.Sorted(maps.Keys(msg.Replies)) {
			reply := msg.Replies[id]
			parts = append(parts, raw(Message{Text: reply.Text, Choice: reply.Choice, Fields: reply.Fields}))
		}
		return strings.Join(parts, "; ")
	}
	return msg.Text
}

func (m *Machine) remark(c *Conversation, name string, r *Result, args ...string) {
	text, template := m.words().say(c, name, args...)
	r.say(Prompt{Text: text, Template: template, Modality: c.Modality})
}

func (m *Machine) escape(c *Conversation, a *Asking, msg Message, r *Result) {
	m.end(c, a, Escaped, Answer{Escaped: true, Raw: raw(msg), Actor: msg.Actor, Modality: c.Modality, Method: ByPhrase}, msg.At, r)
}

// newIntent starts a run for the message. The questions that waited are asked again afterwards, or
// dropped.
func (m *Machine) newIntent(c *Conversation, a *Asking, msg Message, r *Result) {
	r.add(StartRun{Text: msg.Text})
	for _, waiting := range waiting(c) {
		switch {
		case m.AfterNewIntent == Drop && (a == nil || waiting == a):
			m.end(c, waiting, Escaped, Answer{Escaped: true, Raw: raw(msg), Actor: msg.Actor, Modality: c.Modality}, msg.At, r)
		case waiting.Question.Relevance != NonBlocking:
			waiting.Parked = true
		}
	}
	c.Focus = ""
}

func (m *Machine) explain(c *Conversation, a *Asking, reading reading, r *Result) {
	if reading.more {
		if a.Page+1 >= pages(a) {
			a.Page = 0
			r.say(m.repeat(c, a, "no_more"))
			return
		}
		a.Page++
		r.say(m.show(c, a, m.words().ask(c, a)))
		return
	}
	why := orElse(a.Question.Why, reading.detail)
	if why == "" {
		why, _ = m.words().say(inLanguageOf(a, c), "no_reason")
	}
	r.say(m.repeat(c, a, "explain", "why", why))
}

// unclear asks again. After several unclear replies it shows the choices, or a person answers.
func (m *Machine) unclear(c *Conversation, a *Asking, reading reading, r *Result) {
	a.Unclear++
	switch limit := m.maxUnclear(); {
	case m.HandOver && a.Unclear >= limit:
		a.Status, a.Candidate = HandedOver, nil
		forget(c, a.ID)
		m.remark(c, "hand_over", r)
		r.add(AskPerson{a.ID})
	case a.Unclear >= limit && len(m.words().ask(c, a).Choices) > 0:
		r.say(m.repeat(c, a, "choose"))
	default:
		r.say(m.repeat(c, a, reading.doubt, "a", reading.detail))
	}
}

// lapse counts a turn for the non-blocking questions that the message was not about: those with as
// many turns as before. A run that waits for one goes on with the default.
func (m *Machine) lapse(c *Conversation, msg Message, turns map[string]int, r *Result) {
	for _, a := range waiting(c) {
		if a.Question.Relevance != NonBlocking || a.Status != Asked || len(a.Turns) > turns[a.ID] {
			continue
		}
		if a.Passed++; a.Passed >= lapseAfter {
			m.end(c, a, Lapsed, Answer{Option: a.Question.Default, Method: ByDefault}, msg.At, r)
		}
	}
}
