package conversation

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// isCorrection reports whether a message gives another option to a question that was answered.
func isCorrection(a *Asking, msg Message) bool {
	return a.Status == Answered && slices.ContainsFunc(a.Question.Options, func(o Option) bool { return o.ID == msg.Choice })
}

// correct replaces an answer that was accepted and moves the facts that were stored with it. It
// says what the runs that have used the answer have done, and offers to start them again. If none
// has, it lists what depended on the answer.
func (m *Machine) correct(c *Conversation, a *Asking, msg Message, known Known, r *Result) {
	before := *a.Answer
	if before.Option == msg.Choice {
		m.remark(c, "corrected_alone", r)
		return
	}
	a.Turns = append(a.Turns, Turn{
		Question: a.Shown, Template: a.Template, Reply: raw(msg), Verdict: IsAnswer,
		Modality: c.Modality, Actor: msg.Actor, AskedAt: a.AskedAt, At: msg.At,
	})
	after := Answer{Option: msg.Choice, Raw: raw(msg), Method: ByCorrection, Score: 1, Actor: msg.Actor, Modality: c.Modality, At: msg.At}
	a.Answer, a.CorrectedFrom = &after, orElseMethod(a.CorrectedFrom, before)
	affected := []*Asking{a}
	for i := range c.Memory {
		if c.Memory[i].Question != a.ID && !slices.Contains(c.Memory[i].Dependents, a.ID) {
			continue
		}
		c.Memory[i].Answer = after
		if c.Memory[i].Scope == ScopeUser {
			r.add(SaveMemory{c.Memory[i]})
		}
		for _, id := range append([]string{c.Memory[i].Question}, c.Memory[i].Dependents...) {
			if d := c.Find(id); d != nil && d != a {
				copied := after
				d.Answer = &copied
				affected = append(affected, d)
			}
		}
	}
	for _, d := range affected {
		if len(d.Question.Facts) > 0 {
			r.add(SaveFacts{Question: d.ID, Entity: msg.Choice, Instead: before.Option, Facts: d.Question.Facts})
		}
	}
	if !m.sayDone(c, a, before, affected, known, msg.At, r) {
		m.sayDependents(c, a, affected, r)
	}
}

// sayDependents lists what depended on a corrected answer.
func (m *Machine) sayDependents(c *Conversation, a *Asking, affected []*Asking, r *Result) {
	var names []string
	for _, d := range affected {
		if d != a {
			names = append(names, d.Question.Text)
		}
		for _, fact := range d.Question.Facts {
			names = append(names, fact.Name+": "+fact.Value)
		}
	}
	if len(names) == 0 {
		m.remark(c, "corrected_alone", r)
		return
	}
	m.remark(c, "corrected", r, "a", strings.Join(names, "; "))
}

// sayDone says what the runs have done that used an answer before its correction, and asks whether
// to start them again. It returns false if there are none.
func (m *Machine) sayDone(c *Conversation, a *Asking, before Answer, affected []*Asking, known Known, now time.Time, r *Result) bool {
	var runs []string
	for _, d := range affected {
		if _, ok := known.Runs[d.Target.Run]; ok && !slices.Contains(runs, d.Target.Run) {
			runs = append(runs, d.Target.Run)
		}
	}
	is, was := labelOf(&a.Question, *a.Answer), labelOf(&a.Question, before)
	for _, run := range runs {
		past := known.Runs[run]
		name := "corrected_running"
		switch {
		case past.Ended && past.Said != "":
			name = "corrected_done"
		case past.Ended:
			name = "corrected_ended"
		}
		m.remark(c, name, r, "a", is, "before", was, "done", past.Said)
		m.offerAgain(c, run, is, past.Request, now)
	}
	return len(runs) > 0
}

// labelOf returns the label of the option of an answer, or the name of the entity that it created.
func labelOf(q *Question, answer Answer) string {
	if at := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == answer.Option }); at >= 0 {
		return describe(q.Options[at])
	}
	return answer.Text
}

// offerAgain asks whether to start a run again. The user may ignore it. It replaces an earlier
// offer for the run. It needs a clear yes: the conversation does not know which effects the run
// had, and the new run may repeat them.
func (m *Machine) offerAgain(c *Conversation, run, label, request string, now time.Time) {
	for _, o := range c.Open() {
		if o.Again == run {
			m.Withdraw(c, o.ID, now)
		}
	}
	text, _ := m.words().say(c, "again", "a", label, "request", request)
	c.Questions = append(c.Questions, &Asking{
		ID: next(c), Question: Question{Kind: Confirmation, Text: text, Relevance: NonBlocking, Risk: RiskHigh}, Status: Queued, CreatedAt: now, Again: run,
	})
}

// startAgain abandons what a run still asks, and starts it again.
func (m *Machine) startAgain(c *Conversation, run string, yes Answer, now time.Time, r *Result) {
	for _, o := range c.Open() {
		if o.Target.Run == run {
			m.end(c, o, Escaped, Answer{Escaped: true, Raw: yes.Raw, Actor: yes.Actor, Modality: yes.Modality}, now, r)
		}
	}
	r.add(StartRun{Again: run})
}

// answeredBefore returns the answer to the same question of the run that is done again. Actions and
// questions of high risk need a new answer.
func answeredBefore(c *Conversation, q Question, run string) (Answer, bool) {
	if run == "" || q.Kind == Confirmation || q.Risk >= RiskHigh {
		return Answer{}, false
	}
	for _, a := range slices.Backward(c.Questions) {
		same := a.Target.Run == run && a.Status == Answered && a.Question.Kind == q.Kind && a.Question.Text == q.Text
		if same && meansTheSame(a.Answer.Option, &a.Question, &q) {
			return *a.Answer, true
		}
	}
	return Answer{}, false
}

// meansTheSame reports whether the option of an answer has the same label and facts in both
// questions. An option that the earlier question did not have is an entity that the user created.
func meansTheSame(option string, before, now *Question) bool {
	in := func(q *Question) int {
		return slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == option })
	}
	i, j := in(before), in(now)
	switch {
	case option == "":
		return true
	case i < 0 && j < 0:
		return now.AllowOther
	case i < 0 || j < 0:
		return false
	}
	was, is := &before.Options[i], &now.Options[j]
	return was.Label == is.Label && maps.Equal(was.Facts, is.Facts)
}
