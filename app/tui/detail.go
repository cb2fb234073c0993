package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/drawing"
)

// detailScreen is one request, with everything that somebody needs to decide.
type detailScreen struct {
	r      api.Request // what the person looks at: it never changes by itself
	known  bool        // the server was asked for it; until then it is what the list knows
	told   string      // of what the server knows that they look at it
	latest *api.Request
	// frozen says why nothing can be decided on what is shown; "" if something can.
	frozen string

	updated time.Time // when something beside the question changed
	scroll  scroller
	unfold  bool
	asked   *sheet // what is asked, as it was drawn last: it may be long
}

// learn takes news about the request.
func (d *detailScreen) learn(news polled, now time.Time) {
	latest := news.open
	switch {
	case news.openErr != nil:
		d.frozen = "The server no longer knows this request."
	case latest == nil || latest.ID != d.r.ID: // it was opened after the server was asked
	case !d.known:
		d.r, d.known, d.asked = *latest, true, nil
	case isSame(*latest, d.r):
		// The deadline may have been moved, and others may have said something: that is no part of what is decided.
		if revision(*latest) != revision(d.r) {
			d.updated = now
		}
		d.r.Deadline, d.r.Life = latest.Deadline, latest.Life
		d.latest, d.frozen = nil, ""
	default:
		d.latest, d.frozen = latest, became(*latest, now)
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
		return m.leave()
	case "?":
		m.push(&helpScreen{})
		return nil
	case "o":
		d.unfold = !d.unfold
		return nil
	case "u":
		d.renew()
		return nil
	}
	for _, o := range d.offers(m) {
		if verbs[o.verb].key == name {
			m.begin(d, o)
		}
	}
	return nil
}

// isSeen reports whether every line of what is asked was on the screen.
func (d *detailScreen) isSeen() bool { return d.asked != nil && d.scroll.hasShown(len(d.asked.lines)) }

// folded is how many values are not shown whole.
func (d *detailScreen) folded() int {
	if d.asked == nil {
		return 0
	}
	return d.asked.folded
}

// renew shows what the server says now.
func (d *detailScreen) renew() {
	if d.latest == nil {
		return
	}
	d.r, d.latest, d.frozen = *d.latest, nil, ""
	d.asked = nil
}

// offers are the verbs that can be used now.
func (d *detailScreen) offers(m *model) []offer {
	if d.frozen != "" || !d.known {
		return nil
	}
	return offersOf(d.r, m.now)
}

func (d *detailScreen) paste(*model, string) {}

func (d *detailScreen) title(m *model) []cell {
	title := append(own("‹ ", faint), cells(d.r.Kind, oneLine, strong)...)
	if !d.updated.IsZero() {
		title = append(title, own(" · updated "+d.updated.Format(time.TimeOnly), strong)...)
	}
	rest, soon := left(d.r.Deadline, m.now)
	if rest == "" || d.r.State != statePending {
		return title
	}
	look := normal
	if soon {
		rest, look = "! "+rest, strong
	}
	return append(append(title, own(" · ", faint)...), own(rest, look)...)
}

func (d *detailScreen) hints(m *model) []hint {
	var hints []hint
	if !d.known {
		hints = append(hints, hint{"…", "asking the server"})
	}
	if d.latest != nil {
		hints = append(hints, hint{"u", "show as it is now"})
	}
	for _, o := range d.offers(m) {
		hints = append(hints, hint{verbs[o.verb].key, verbs[o.verb].label})
	}
	switch {
	case d.folded() > 0:
		hints = append(hints, hint{"o", "unfold"})
	case d.unfold:
		hints = append(hints, hint{"o", "fold"})
	}
	if n := d.scroll.more(); n > 0 {
		hints = append(hints, hint{"j", count(n, "more line")})
	}
	return append(hints, hint{"?", "help"}, hint{"esc", "back"})
}

func (d *detailScreen) body(m *model, width, height int) []string {
	var banner []string
	if text := d.warning(); text != "" {
		for _, line := range fold(own(text, normal), width-2) {
			banner = append(banner, warnStyle.Render("! "+plain(line)))
		}
		banner = append(banner, "")
	}
	s := d.describe(m, width)
	return append(banner, d.scroll.show(s.lines, height-len(banner))...)
}

// warning says why there is nothing to decide.
func (d *detailScreen) warning() string {
	switch {
	case d.frozen != "":
		return d.frozen + " You cannot decide on what is shown here."
	case d.r.State == statePending && d.r.Life != nil && d.r.Life.MayNot != "":
		return "Your word on this would not count: " + d.r.Life.MayNot + "."
	}
	return ""
}

// describe writes everything down: first what is asked, then where it comes from.
func (d *detailScreen) describe(m *model, width int) *sheet {
	if d.asked == nil || d.asked.width != width || d.asked.unfold != d.unfold {
		d.asked = &sheet{width: width, unfold: d.unfold}
		d.question(d.asked)
		d.scroll.seen = nil
	}
	s := &sheet{width: width, lines: slices.Clip(d.asked.lines)}
	s.blank()
	d.decision(s, m.now)
	s.row("run", d.r.StateKey+"  ("+d.r.GraphID+")")
	s.row("place", d.r.Address)
	if len(d.r.Next) > 0 {
		s.row("then", drawing.Then(d.r.Next))
	}
	d.life(s, m.now)
	s.row("asked", clockOf(d.r.CreatedAt, m.now)+", "+ago(d.r.CreatedAt, m.now))
	if d.r.Deadline != nil && d.r.State == statePending {
		rest, _ := left(d.r.Deadline, m.now)
		s.row("until", clockOf(*d.r.Deadline, m.now)+", "+rest)
	}
	s.row("digest", d.r.Shown)
	s.row("request", d.r.ID)
	return s
}

// question is what is asked.
func (d *detailScreen) question(s *sheet) {
	asked, ok := approvalOf(d.r)
	if !ok {
		s.heading("What is asked")
		s.json(d.r.Data)
		return
	}
	s.rowOf("action", cells(asked.Action, oneLine, strong))
	edited := d.r.Life != nil && d.r.Life.Edit != nil
	if asked.Summary != "" && !edited {
		s.row("says", asked.Summary)
	}
	if asked.Rule != "" || asked.Reason != "" {
		s.row("why", why(asked))
	}
	s.blank()
	heading := "Arguments, exactly as asked for"
	if asked.Fixed {
		heading += " (they cannot be edited)"
	}
	if edited {
		heading = "Arguments as asked for"
		s.add(nil, nil, append(append(own("Arguments as ", strong), cells(d.r.Life.Edit.By, oneLine, strong)...), own(" edited them: these will be used", strong)...))
		s.json(d.r.Life.Edit.Args)
		s.blank()
	}
	s.heading(heading)
	if asked.Summary != "" && edited { // it is about these
		s.row("says", asked.Summary)
	}
	if asked.Args == nil {
		s.say("  none")
	} else {
		s.json(asked.Args)
	}
	d.others(s)
	if !isNamedRight(asked) {
		s.add(own("! ", strong), spaces(2), own("The action's digest is not that of these arguments. Do not approve this.", strong))
	}
}

// shownMembers are what an approval's question has a place for.
var shownMembers = []string{"action", "summary", "args", "argsSchema", "fixed", "digest", "rule", "reason"}

// others shows what else the asker put into the question.
func (d *detailScreen) others(s *sheet) {
	members, _ := rawMembers(d.r.Data)
	members = slices.DeleteFunc(members, func(m rawMember) bool { return slices.Contains(shownMembers, m.name) })
	if len(members) == 0 {
		return
	}
	s.blank()
	s.heading("Also said")
	s.json(writeObject(members))
}

func why(asked fermata.ApprovalRequest) string {
	switch {
	case asked.Rule == "":
		return asked.Reason
	case asked.Reason == "":
		return "rule " + asked.Rule
	}
	return "rule " + asked.Rule + ": " + asked.Reason
}

// life is what people did with it so far.
func (d *detailScreen) life(s *sheet, now time.Time) {
	life := d.r.Life
	if life == nil {
		return
	}
	said := func(label string, by api.Mark, text string) { s.row(label, by.By+" "+clockOf(by.At, now)+": "+text) }
	for _, fact := range []struct{ label, text string }{
		{"from", life.Requester}, {"rules", strings.Join(life.Rules, ", ")}, {"because", life.Reason}, {"sign-in", life.MinAuth}, {"agreed", life.Progress},
	} {
		if fact.text != "" {
			s.row(fact.label, fact.text)
		}
	}
	if life.Risk > 0 {
		s.row("risk", fmt.Sprint(life.Risk))
	}
	if life.Claim != nil {
		s.row("claimed", life.Claim.By+" "+clockOf(life.Claim.At, now))
	}
	for _, v := range life.Votes {
		said("vote", v.Mark, v.Verb+" "+v.Reason)
	}
	for _, c := range life.Comments {
		said("comment", c.Mark, c.Text)
	}
	for _, q := range life.Questions {
		said("question", q.Mark, q.Text)
		if q.Answer != nil {
			said("reply", q.Answer.Mark, q.Answer.Text)
		}
	}
}

func revision(r api.Request) int64 {
	if r.Life == nil {
		return 0
	}
	return r.Life.Revision
}

// decision is what was decided, if anything was.
func (d *detailScreen) decision(s *sheet, now time.Time) {
	decision := d.r.Decision
	if decision == nil {
		return
	}
	s.heading("What was decided")
	s.row("verdict", decision.Verdict)
	s.row("by", first(decision.By, decision.Source))
	if decision.Via != "" {
		s.row("via", decision.Via)
	}
	s.row("at", clockOf(decision.At, now)[len("at "):])
	if decision.Answer != nil {
		s.json(decision.Answer)
	}
	s.blank()
}
