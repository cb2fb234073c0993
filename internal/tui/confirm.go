package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// confirmScreen shows exactly what will be sent, and sends it:
//
//	asking ──y──▶ sending ──▶ (recorded or rejected: the screen closes)
//	                 ▲  │
//	                 y  ▼ no response
//	               unknown
type confirmScreen struct {
	d      *detailScreen
	form   *formScreen // the form it came from; nil if there was none
	action action
	decide api.Decide
	state  confirmState
	scroll scroller
	// typed is the name of the object as the person types it; mistyped reports that it differs.
	typed    string
	mistyped bool
}

type confirmState uint8

const (
	confirmAsking confirmState = iota
	confirmSending
	confirmUnknown // it is unknown whether it arrived; a retry with the same id is applied once
)

// confirmKey confirms. No verb uses it, so a key that is held down or pressed twice does not
// decide.
const confirmKey = "y"

func (m *model) confirm(d *detailScreen, form *formScreen, o action, reply json.RawMessage) *confirmScreen {
	return &confirmScreen{d: d, form: form, action: o, decide: api.Decide{ResumeID: m.config.NewID(), Answer: reply, Shown: d.r.Shown, Rendering: d.recordedHash()}}
}

func (c *confirmScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if c.typing() && c.typeKey(m, k) {
		if c.state == confirmSending {
			return c.send(m)
		}
		return nil
	}
	switch name := k.String(); {
	case c.scroll.key(name):
	case name == confirmKey && c.state != confirmSending && (c.d.frozen == "" || c.state == confirmUnknown):
		c.state = confirmSending
		return c.send(m)
	case (name == "esc" || name == "n") && c.state != confirmSending:
		m.pop()
	}
	return nil
}

// mustType returns what the person types to approve; "" if nothing has to be typed.
func (c *confirmScreen) mustType() string {
	a := c.d.r.Activity
	if a == nil || c.action.act != "" || c.action.verb != verbApprove && c.action.verb != verbApproveEdited {
		return ""
	}
	return a.Confirm
}

// typing reports whether keys are part of the name.
func (c *confirmScreen) typing() bool {
	return c.mustType() != "" && c.state == confirmAsking && c.d.frozen == ""
}

// typeKey handles a key of the name; it returns false for a key that scrolls or leaves.
func (c *confirmScreen) typeKey(_ *model, k tea.KeyPressMsg) bool {
	switch name := k.String(); name {
	case "enter":
		typed := strings.TrimSpace(c.typed)
		// the server knows the edited values
		if c.mistyped = typed == "" || c.action.verb == verbApprove && typed != c.mustType(); !c.mistyped {
			c.decide.Confirm, c.state = typed, confirmSending
		}
	case "backspace":
		if runes := []rune(c.typed); len(runes) > 0 {
			c.typed = string(runes[:len(runes)-1])
		}
	default:
		if k.Text == "" {
			return false
		}
		c.typed += k.Text
	}
	return true
}

func (c *confirmScreen) send(m *model) tea.Cmd {
	if c.action.act == "" {
		return m.calls.send(c.d.r.ID, c.decide)
	}
	var body api.RequestAction
	if err := json.Unmarshal(c.decide.Answer, &body); err != nil { // it was encoded here
		return nil
	}
	return m.calls.act(c.d.r.ID, c.action.act, body, c.decide.ResumeID)
}

func (c *confirmScreen) paste(_ *model, text string) {
	if c.typing() {
		c.typed += text
	}
}

func (c *confirmScreen) title(*model) []cell {
	return append(ownText(verbs[c.action.verb].title+"? ", styleStrong), cells(Summary(c.d.r), modeLine, styleNormal)...)
}

func (c *confirmScreen) hints(*model) []hint {
	back := hint{"esc", "no, back"}
	switch {
	case c.state == confirmSending:
		return []hint{{"…", "sending"}}
	case c.state == confirmUnknown:
		return []hint{{confirmKey, "send again, applied once"}, back}
	case c.d.frozen != "":
		return []hint{back}
	}
	hints := []hint{{confirmKey, "yes, " + verbs[c.action.verb].label}, back}
	if c.typing() {
		hints = []hint{{"↵", verbs[c.action.verb].label}, {"esc", "back"}}
	}
	if n := c.scroll.more(); n > 0 {
		hints = append(hints, hint{"j", countOf(n, "more line")})
	}
	return hints
}

func (c *confirmScreen) body(m *model, width, height int) []string {
	s := &renderer{width: width, expanded: true}
	for _, text := range c.warnings() {
		s.add(ownText("! ", styleStrong), spaces(2), ownText(text, styleStrong))
	}
	if len(s.lines) > 0 {
		s.blank()
	}
	c.addTyped(s)
	c.addApproval(s)
	c.addChanges(s)
	s.heading("This will be sent")
	s.json(c.decide.Answer)
	s.blank()
	if m.me != "" {
		s.row("as", m.me)
	}
	s.row("request", c.d.r.ID)
	s.row("run", c.d.r.StateKey)
	if c.action.act == "" { // an action does not depend on what is shown
		s.row("digest", c.decide.Shown)
		s.row("decision", c.decide.ResumeID)
	}
	return c.scroll.show(s.lines, height)
}

// addTyped asks for the name of the object.
func (c *confirmScreen) addTyped(s *renderer) {
	if c.mustType() == "" {
		return
	}
	if fields := c.d.r.Activity.ConfirmFields; c.action.verb == verbApproveEdited && len(fields) > 0 {
		s.row("type", "the new value of "+strings.Join(fields, ", "))
	} else {
		s.row("type", c.mustType())
	}
	s.row("typed", c.typed+"_")
	if c.mistyped {
		s.add(ownText("! ", styleStrong), spaces(2), ownText("This is not the name of the object.", styleStrong))
	}
	s.blank()
}

// warnings returns what the person should know before confirming.
func (c *confirmScreen) warnings() (texts []string) {
	if c.d.frozen != "" {
		texts = append(texts, c.d.frozen)
	}
	if c.state == confirmUnknown {
		texts = append(texts, "The server did not respond. It is unknown whether the decision was recorded. Sending it again is safe.")
	}
	if !c.d.isSeen() {
		texts = append(texts, "You have not seen all of the request: some of it was not on the screen yet.")
	}
	if c.d.foldedCount() > 0 {
		texts = append(texts, fmt.Sprintf("You have not seen all of the request: %s folded (o unfolds).", countOf(c.d.foldedCount(), "value")))
	}
	if n := len(c.d.r.Masked); n > 0 {
		texts = append(texts, fmt.Sprintf("You have not seen all of the request: %s masked (v reveals).", countOf(n, "value")))
	}
	if approval, ok := approvalOf(c.d.r); ok && len(c.d.r.Masked) == 0 && !digestMatches(approval) {
		texts = append(texts, "The action's digest does not match the arguments.")
	}
	return texts
}

// addApproval repeats what an approval would execute.
func (c *confirmScreen) addApproval(s *renderer) {
	if c.action.verb == verbApprove && IsHold(c.d.r) {
		s.sentence("The run continues with this state, unchanged.")
		s.json(c.d.r.Data)
		s.blank()
	}
	if c.action.verb == verbReject && c.action.reason != "" && IsHold(c.d.r) {
		s.sentence("The run does not continue here: it ends or goes back.")
		s.blank()
	}
	switch c.action.verb {
	case verbHappened:
		s.sentence(happenedText)
		s.blank()
	case verbNotHappened:
		doubt, _ := InDoubtOf(c.d.r)
		s.add(nil, nil, append(ownText("It did not happen: this is performed now: ", styleNormal), cells(doubt.Action, modeLine, styleStrong)...))
		s.json(doubt.Args)
		s.blank()
	default:
	}
	approval, ok := approvalOf(c.d.r)
	if !ok || c.action.verb != verbApprove {
		return
	}
	s.add(nil, nil, append(ownText("If you approve, this is executed: ", styleNormal), cells(approval.Action, modeLine, styleStrong)...))
	if args := argsOf(c.d.r); args != nil {
		s.expanded = c.d.expanded
		s.json(args)
		s.expanded = true
	}
	s.blank()
}

// addChanges lists the edited arguments.
func (c *confirmScreen) addChanges(s *renderer) {
	if c.action.verb != verbApproveEdited || c.form == nil {
		return
	}
	s.heading("Edited")
	for _, f := range c.form.fields {
		if f == c.form.code || !f.Touched() {
			continue
		}
		value, err := f.Value()
		s.add(spaces(2), spaces(2), append(cells(f.label, modeLine, styleStrong), ownText(":", styleNormal)...))
		s.addChange("was", f.Original())
		if err == nil {
			s.addChange("is", value)
		}
	}
	approval, _ := approvalOf(c.d.r)
	var decision fermata.Decision
	if json.Unmarshal(c.decide.Answer, &decision) == nil {
		if digest, err := approval.ApprovedDigest(decision); err == nil {
			s.row("action", digest)
		}
	}
	s.blank()
}

func (s *renderer) addChange(label string, value json.RawMessage) {
	front := ownText(fmt.Sprintf("    %-5s", label), styleFaint)
	if value == nil {
		s.add(front, nil, ownText("missing", styleFaint))
		return
	}
	n, err := parse(value)
	if err != nil {
		n = node{kind: nodeText, text: string(value)}
	}
	s.value(front, spaces(9), n)
}

// handleSent processes the result of a decision.
func (m *model) handleSent(result sendResult) tea.Cmd {
	i := slices.IndexFunc(m.stack, func(s screen) bool {
		c, ok := s.(*confirmScreen)
		return ok && c.decide.ResumeID == result.resumeID && c.state == confirmSending
	})
	if i < 0 {
		return nil
	}
	c := m.stack[i].(*confirmScreen)
	if c.action.act != "" {
		return m.handleActResult(i, c, result.err)
	}
	if result.err == nil || errors.Is(result.err, client.ErrPending) {
		m.dropDrafts(c.d.r.ID)
		m.stack = nil
		r := c.d.r
		if result.r != nil {
			r = *result.r
		}
		text, closed := outcomeText(result.outcome, r, c.action.verb)
		if pending, ok := errors.AsType[*client.PendingError](result.err); ok && pending.EffectiveAt != nil {
			text, closed = "It takes effect "+clockOf(*pending.EffectiveAt, m.now)+". Until then you can undo it in the request.", false
		}
		m.notice = notice{text: verbs[c.action.verb].done + ". " + text}
		if closed {
			m.list.markClosed(c.d.r.ID, m.now)
		}
		return m.poll()
	}
	refusal, final := explain(result.err, m.now)
	if !final {
		c.state = confirmUnknown
		return m.poll()
	}
	m.stack = m.stack[:i] // back to the form or the request
	if c.form != nil && !refusal.freezes {
		c.form.err = refusal.text
		return m.poll()
	}
	m.notice = notice{text: refusal.text, bad: true}
	if refusal.freezes {
		c.d.frozen = refusal.text
	}
	return m.poll()
}

// handleActResult processes the result of an action. The request stays open, and typed text is
// kept.
func (m *model) handleActResult(i int, c *confirmScreen, err error) tea.Cmd {
	m.stack = m.stack[:i]
	refusal, final := explain(err, m.now)
	switch {
	case err == nil:
		if c.form != nil {
			maps.DeleteFunc(m.drafts, func(_ draftKey, form *formScreen) bool { return form == c.form })
			m.stack = m.stack[:i-1]
		}
		m.notice = notice{text: c.action.doneText()}
	case final:
		m.notice = notice{text: refusal.text, bad: true}
	default:
		m.notice = notice{text: "The server did not respond. It is unknown whether it was done: check the request before you repeat it.", bad: true}
	}
	return m.poll()
}

// dropDrafts discards typed text of a decided request.
func (m *model) dropDrafts(id string) {
	for key := range m.drafts {
		if key.id == id {
			delete(m.drafts, key)
		}
	}
}

// outcomeText describes the outcome, and reports whether the request is closed: other votes may be
// required.
func outcomeText(outcome fermata.Outcome, r api.Request, v verb) (text string, closed bool) {
	switch o := outcome.(type) {
	case fermata.Completed:
		return r.StateKey + " completed: " + firstNonEmpty(o.Content, string(o.Output)), true
	case fermata.Failed:
		if o.Code == "rejected" && v == verbReject { // as the person wanted it
			return r.StateKey + " ended because it was rejected.", true
		}
		return r.StateKey + " failed: " + o.Code + ": " + o.Message, true
	case fermata.NeedsInput:
		if slices.ContainsFunc(o.Interrupts, func(i fermata.OpenInterrupt) bool { return i.ID == r.ID }) {
			return VoteText(r.Activity) + ". " + r.StateKey + " still waits.", false
		}
		return r.StateKey + " continued, and waits for " + countOf(len(o.Interrupts), "answer") + ".", true
	}
	return "Recorded; " + r.StateKey + " is in progress.", true
}

// VoteText says how the votes on a request stand: "1 of 2 approvals, needs 1 × finops".
func VoteText(activity *api.Activity) string {
	if activity == nil || activity.Progress == "" {
		return "Your vote is recorded; more votes are needed"
	}
	count, rest, more := strings.Cut(activity.Progress, ", ")
	text := count + " approvals"
	if more {
		text += ", " + rest
	}
	return text
}
