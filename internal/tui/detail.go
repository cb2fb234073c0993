package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/drawing"
	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// detailScreen is one request, with everything needed to decide.
type detailScreen struct {
	r     api.Request // the displayed version: it never changes by itself
	known bool        // loaded from the server; until then it is the version from the list
	// reported is what the server was told about the screen, and recorded what it has confirmed.
	reported, recorded viewReport
	latest             *api.Request
	// frozen says why the displayed version cannot be decided; "" if it can.
	frozen string

	revealed bool      // the masked values are displayed
	updated  time.Time // when something other than the question changed
	scroll   scroller
	expanded bool
	question *renderer // the question as last rendered: it may be long
}

// applyPoll processes news about the request.
func (d *detailScreen) applyPoll(result pollResult, now time.Time) {
	latest := result.open
	switch {
	case result.openErr != nil:
		d.frozen = "The server no longer knows this request."
	case latest == nil || latest.ID != d.r.ID: // it was opened after the poll was sent
	case !d.known:
		d.r, d.known, d.question = *latest, true, nil
	case isSameQuestion(*latest, d.r):
		// The deadline and the activity may change: they are not part of the decision.
		if revision(*latest) != revision(d.r) {
			d.updated = now
		}
		if d.revealed && d.r.Activity != nil && latest.Activity != nil {
			latest.Activity.Edit = d.r.Activity.Edit // the same edit, not masked
		}
		d.r.Deadline, d.r.Activity = latest.Deadline, latest.Activity
		d.latest, d.frozen = nil, ""
	default:
		d.latest, d.frozen = latest, resolutionText(*latest, now)
	}
}

func (d *detailScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if d.scroll.key(name) {
		return nil
	}
	switch name {
	case "esc", "left", "h":
		m.pop()
		return nil
	case "q":
		return m.quit()
	case "?":
		m.push(&helpScreen{})
		return nil
	case "o":
		d.expanded = !d.expanded
		return nil
	case "u":
		d.refresh()
		return nil
	case revealKey:
		if len(d.r.Masked) > 0 && d.known {
			return m.calls.reveal(d.r.ID)
		}
		return nil
	}
	for _, o := range d.actions(m) {
		if verbs[o.verb].key == name {
			report := m.reportView() // what was read since the last poll
			m.openAction(d, o)
			return report
		}
	}
	return nil
}

// revealKey shows the masked values of a request.
const revealKey = "v"

// inboxTemplate is the version of the rendering of a request. Count it up if the same request is
// rendered differently.
const inboxTemplate = "inbox@2"

// rendering is the question as it is on the screen: all of its lines, also those that a person has
// to scroll to. Revealed values are not kept.
func (d *detailScreen) rendering() api.Rendering {
	r := api.NewRendering(ansi.Strip(strings.Join(d.question.lines, "\n")), "terminal", inboxTemplate)
	r.Visible = "part"
	if d.isSeen() && d.foldedCount() == 0 {
		r.Visible = "all"
	}
	if d.revealed {
		r.Text = ""
	}
	return r
}

// recordedHash returns the hash of the recorded rendering of the displayed version, or "".
func (d *detailScreen) recordedHash() string {
	if d.recorded.shown != d.r.Shown {
		return ""
	}
	return d.recorded.rendering.Hash
}

// isSeen reports whether every line of the question was on the screen.
func (d *detailScreen) isSeen() bool {
	return d.question != nil && d.scroll.hasShown(len(d.question.lines))
}

// foldedCount returns how many values are folded.
func (d *detailScreen) foldedCount() int {
	if d.question == nil {
		return 0
	}
	return d.question.folded
}

// refresh shows the latest version.
func (d *detailScreen) refresh() {
	if d.latest == nil {
		return
	}
	d.r, d.latest, d.frozen = *d.latest, nil, ""
	d.question, d.revealed = nil, false
}

// actions returns the actions that are available now.
func (d *detailScreen) actions(m *model) []action {
	if d.frozen != "" || !d.known {
		return nil
	}
	return actionsOf(d.r, m.principal, m.now)
}

func (d *detailScreen) paste(*model, string) {}

func (d *detailScreen) title(m *model) []cell {
	title := append(ownText("‹ ", styleFaint), cells(d.r.Kind, modeLine, styleStrong)...)
	for _, part := range standing(d.r.Activity, m.principal, m.now) {
		title = append(title, cells(" · "+part, modeLine, styleStrong)...)
	}
	if !d.updated.IsZero() {
		title = append(title, ownText(" · updated "+d.updated.Format(time.TimeOnly), styleStrong)...)
	}
	rest, urgent := timeLeft(d.r.Deadline, m.now)
	if rest == "" || d.r.State != statePending {
		return title
	}
	style := styleNormal
	if urgent {
		rest, style = "! "+rest, styleStrong
	}
	return append(append(title, ownText(" · ", styleFaint)...), ownText(rest, style)...)
}

func (d *detailScreen) hints(m *model) []hint {
	var hints []hint
	if !d.known {
		hints = append(hints, hint{"…", "loading"})
	}
	if d.latest != nil {
		hints = append(hints, hint{"u", "show the current version"})
	}
	if len(d.r.Masked) > 0 {
		hints = append(hints, hint{revealKey, "reveal masked values"})
	}
	for _, o := range d.actions(m) {
		hints = append(hints, hint{verbs[o.verb].key, verbs[o.verb].label})
	}
	switch {
	case d.foldedCount() > 0:
		hints = append(hints, hint{"o", "unfold"})
	case d.expanded:
		hints = append(hints, hint{"o", "fold"})
	}
	if n := d.scroll.more(); n > 0 {
		hints = append(hints, hint{"j", countOf(n, "more line")})
	}
	return append(hints, hint{"?", "help"}, hint{"esc", "back"})
}

func (d *detailScreen) body(m *model, width, height int) []string {
	var banner []string
	for _, text := range d.warnings() {
		for _, line := range wrap(ownText(text, styleNormal), width-2) {
			banner = append(banner, warnStyle.Render("! "+plain(line)))
		}
	}
	if len(banner) > 0 {
		banner = append(banner, "")
	}
	s := d.describe(m, width)
	return append(banner, d.scroll.show(s.lines, height-len(banner))...)
}

// warnings returns what the approver must know before the decision.
func (d *detailScreen) warnings() []string {
	var texts []string
	if text := d.warning(); text != "" {
		texts = append(texts, text)
	}
	if d.r.Supersedes != "" {
		text := "This replaces an earlier request: what it showed has changed."
		if len(d.r.Changed) > 0 {
			text += " Changed: " + strings.Join(d.r.Changed, ", ") + "."
		}
		texts = append(texts, text)
	}
	if d.r.Refused != "" {
		texts = append(texts, "The program did not accept the last answer: "+d.r.Refused)
	}
	return texts
}

// warning says why the request cannot be decided.
func (d *detailScreen) warning() string {
	switch {
	case d.frozen != "":
		return d.frozen + " You cannot decide this version."
	case d.r.State == statePending && d.r.Activity != nil && d.r.Activity.Pending != nil:
		return "A decision is pending: " + d.r.Activity.Summary + "."
	case d.r.State == statePending && d.r.Activity != nil && d.r.Activity.IneligibleReason != "":
		return refusal.Sentence(d.r.Activity.IneligibleReason, "")
	}
	return ""
}

// describe renders everything: first the question, then its origin.
func (d *detailScreen) describe(m *model, width int) *renderer {
	if d.question == nil || d.question.width != width || d.question.expanded != d.expanded {
		d.question = &renderer{width: width, expanded: d.expanded}
		d.addQuestion(d.question)
		d.scroll.seen = nil
	}
	s := &renderer{width: width, lines: slices.Clip(d.question.lines)}
	s.blank()
	d.addDecision(s, m.now)
	s.row("run", d.r.StateKey+"  ("+d.r.GraphID+")")
	s.row("address", d.r.Address)
	if len(d.r.Next) > 0 {
		s.row("next", drawing.FormatNext(d.r.Next))
	}
	d.addActivity(s, m.now)
	s.row("created", clockOf(d.r.CreatedAt, m.now)+", "+ago(d.r.CreatedAt, m.now))
	if d.r.Deadline != nil && d.r.State == statePending {
		rest, _ := timeLeft(d.r.Deadline, m.now)
		s.row("deadline", clockOf(*d.r.Deadline, m.now)+", "+rest)
	}
	s.row("digest", d.r.Shown)
	s.row("request", d.r.ID)
	return s
}

// addQuestion renders the question.
func (d *detailScreen) addQuestion(s *renderer) {
	if doubt, ok := InDoubtOf(d.r); ok {
		d.addDoubt(s, doubt)
		return
	}
	if d.r.Presentation != nil {
		s.add(nil, nil, cells(d.r.Presentation.Sentence, modeLine, styleStrong))
		s.blank()
	}
	approval, ok := approvalOf(d.r)
	if !ok {
		s.heading("Question")
		s.json(d.r.Data)
		return
	}
	s.rowOf("action", cells(approval.Action, modeLine, styleStrong))
	edited := d.r.Activity != nil && d.r.Activity.Edit != nil
	if approval.Summary != "" && !edited {
		s.row("summary", approval.Summary)
	}
	if approval.Rule != "" || approval.Reason != "" {
		s.row("reason", reasonText(approval))
	}
	s.blank()
	heading := "Arguments, exactly as requested"
	if approval.Fixed {
		heading += " (they cannot be edited)"
	}
	if edited {
		heading = "Arguments as requested"
		s.add(nil, nil, append(append(ownText("Arguments as edited by ", styleStrong), cells(d.r.Activity.Edit.By, modeLine, styleStrong)...), ownText(": these will be used", styleStrong)...))
		s.json(d.r.Activity.Edit.Args)
		s.blank()
	}
	s.heading(heading)
	if approval.Summary != "" && edited { // the summary is about these
		s.row("summary", approval.Summary)
	}
	if approval.Args == nil {
		s.sentence("  none")
	} else {
		s.json(approval.Args)
	}
	d.addOtherMembers(s, shownMembers)
	if len(d.r.Masked) == 0 && !digestMatches(approval) {
		s.add(ownText("! ", styleStrong), spaces(2), ownText("The action's digest does not match these arguments. Do not approve this.", styleStrong))
	}
}

// shownMembers are the members of an approval question that are rendered separately.
var shownMembers = []string{"action", "summary", "args", "argsSchema", "fixed", "digest", "rule", "reason"}

// addOtherMembers renders the members of the question that are not rendered separately.
func (d *detailScreen) addOtherMembers(s *renderer, shown []string) {
	members, _ := schemaform.ParseObject(d.r.Data)
	members = slices.DeleteFunc(members, func(m schemaform.Member) bool { return slices.Contains(shown, m.Name) })
	if len(members) == 0 {
		return
	}
	s.blank()
	s.heading("Other data")
	s.json(members.JSON())
}

func reasonText(approval fermata.ApprovalRequest) string {
	switch {
	case approval.Rule == "":
		return approval.Reason
	case approval.Reason == "":
		return "rule " + approval.Rule
	}
	return "rule " + approval.Rule + ": " + approval.Reason
}

// stated marks a text that the server cannot check.
func stated(text string) string {
	if text == "" {
		return ""
	}
	return text + " (stated by the agent)"
}

// addActivity renders what people did with the request.
func (d *detailScreen) addActivity(s *renderer, now time.Time) {
	activity := d.r.Activity
	if activity == nil {
		return
	}
	texts := func(label string, by api.Stamp, text string) { s.row(label, by.By+" "+clockOf(by.At, now)+": "+text) }
	for _, fact := range []struct{ label, text string }{
		{"from", activity.Requester}, {"for", stated(activity.StatedRequester)}, {"env", stated(activity.StatedEnvironment)}, {"rules", strings.Join(activity.Rules, ", ")}, {"reason", activity.Reason}, {"sign-in", activity.MinAuth}, {"progress", activity.Progress},
	} {
		if fact.text != "" {
			s.row(fact.label, fact.text)
		}
	}
	if activity.Risk > 0 {
		s.row("risk", fmt.Sprint(activity.Risk))
	}
	if activity.Claim != nil {
		s.row("claimed", activity.Claim.By+" "+clockOf(activity.Claim.At, now))
	}
	if until := activity.SnoozedUntil; until != nil && now.Before(*until) {
		s.row("snoozed", "until "+strings.TrimPrefix(strings.TrimPrefix(clockOf(*until, now), "at "), "on "))
	}
	for _, h := range activity.History {
		if h.Event == "escalated" {
			texts("route", h.Stamp, h.Text)
		}
	}
	for _, v := range activity.Votes {
		texts("vote", v.Stamp, v.Verb+" "+v.Reason)
		if v.Conditions != nil {
			texts("valid", v.Stamp, v.Conditions.String())
		}
	}
	if text := failedNotice(activity); text != "" {
		s.row("notice", text)
	}
	for _, c := range activity.Comments {
		texts("comment", c.Stamp, c.Text)
	}
	for _, q := range activity.Clarifications {
		texts("question", q.Stamp, q.Text)
		if q.Reply != nil {
			texts("reply", q.Reply.Stamp, q.Reply.Text)
		}
	}
}

// failedNotice returns the last notice that could not be delivered, or "".
func failedNotice(activity *api.Activity) string {
	for _, h := range slices.Backward(activity.History) {
		if h.Event == "notice_failed" {
			return h.Text
		}
	}
	return ""
}

func revision(r api.Request) int64 {
	if r.Activity == nil {
		return 0
	}
	return r.Activity.Revision
}

// addDecision renders the decision, if there is one.
func (d *detailScreen) addDecision(s *renderer, now time.Time) {
	decision := d.r.Decision
	if decision == nil {
		return
	}
	s.heading("Decision")
	s.row("verdict", decision.Verdict)
	s.row("by", firstNonEmpty(decision.By, decision.Source))
	if decision.Via != "" {
		s.row("via", decision.Via)
	}
	s.row("at", clockOf(decision.At, now)[len("at "):])
	if decision.Answer != nil {
		s.json(decision.Answer)
	}
	s.blank()
}
