package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Limits of Slack, in characters, and of a message.
const (
	maxHeader      = 150
	maxSection     = 3000
	maxField       = 2000
	maxFields      = 10
	maxButton      = 75
	maxButtonValue = 2000
	maxOptionValue = 150
	maxNotify      = 1000
	// a fact of more characters has its own block
	maxShortFact = 150
	// facts and texts beyond these are only in the inbox
	maxFacts  = 30
	maxLong   = 12
	maxQuotes = 4
)

// Ids of our blocks and actions.
const (
	blockActions = "fermata_actions"
	metadataType = "fermata_request"

	actApprove  = "approve"
	actDeny     = "deny"
	actEdit     = "edit"
	actRespond  = "respond"
	actAsk      = "ask"
	actEscalate = "escalate"
	actMenu     = "more"
	actOpen     = "open"
)

// shown identifies what a copy shows. It is the value of the buttons and comes back with a click.
type shown struct {
	Request  string `json:"r"`
	Revision int64  `json:"v"`
	Digest   string `json:"d"`
}

// rendered is a card as Slack blocks.
type rendered struct {
	text   string
	blocks []slack.Block
	// complete says that nothing of what an approval approves was clipped.
	complete bool
}

// plainText returns a plain_text object: no links, mentions, formatting or emoji codes.
func plainText(text string, limit int) *slack.TextBlockObject {
	if text == "" {
		text = " "
	}
	return slack.NewTextBlockObject(slack.PlainTextType, clip(text, limit), false, false)
}

// clip shortens a text to a number of characters.
func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// escape escapes Slack's markup.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// render converts a card to a message.
func render(c channel.Card) rendered {
	r := rendered{text: clip(c.Title, maxNotify), complete: utf8.RuneCountInString(c.Title) <= maxHeader}
	if !c.Open() {
		r.text = clip(fmt.Sprintf("%s: %s", outcome(c), c.Title), maxNotify)
	}
	r.add(slack.NewHeaderBlock(plainText(c.Title, maxHeader)))
	if c.Sentence != "" {
		r.add(slack.NewSectionBlock(plainText(c.Sentence, maxSection), nil, nil))
	}
	r.addFacts(c.Facts)
	r.addQuotes(c.Said)
	r.addContext(c)
	if !c.Open() {
		r.add(slack.NewSectionBlock(plainText(outcome(c), maxSection), nil, nil))
		if c.Link != "" {
			r.add(slack.NewActionBlock(blockActions, linkButton(c.Link, "Open in inbox")))
		}
		return r
	}
	r.addButtons(c)
	return r
}

func (r *rendered) add(b slack.Block) { r.blocks = append(r.blocks, b) }

// addFacts adds short facts as fields, and long ones as preformatted text.
func (r *rendered) addFacts(facts []api.Fact) {
	var fields []*slack.TextBlockObject
	flush := func() {
		if len(fields) > 0 {
			r.add(slack.NewSectionBlock(nil, fields, nil))
			fields = nil
		}
	}
	long := 0
	for i, f := range facts {
		if i == maxFacts {
			r.complete = false
			flush()
			r.add(slack.NewContextBlock("", plainText(fmt.Sprintf("%d more values are only in the inbox.", len(facts)-maxFacts), maxSection)))
			return
		}
		label, value := factLabel(f), f.Value
		if f.Was != "" {
			value += "\n(was: " + f.Was + ")"
		}
		if utf8.RuneCountInString(label)+utf8.RuneCountInString(value) <= maxShortFact {
			fields = append(fields, plainText(label+"\n"+value, maxField))
			if len(fields) == maxFields {
				flush()
			}
			continue
		}
		flush()
		if long++; long > maxLong {
			r.complete = false
			continue
		}
		r.complete = r.complete && utf8.RuneCountInString(value) <= maxSection
		r.addPreformatted(label, value)
	}
	flush()
}

func factLabel(f api.Fact) string {
	switch {
	case f.Flagged:
		return f.Label + " (⚠ has unusual characters, shown as codes)"
	case f.Masked:
		return f.Label + " (hidden)"
	}
	return f.Label
}

// addPreformatted adds a label and a text exactly as it is.
func (r *rendered) addPreformatted(label, text string) {
	if text == "" {
		text = " "
	}
	r.add(slack.NewContextBlock("", plainText(label, maxSection)))
	pre := &slack.RichTextPreformatted{
		Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(clip(text, maxSection), nil)},
	}
	r.add(slack.NewRichTextBlock("", pre))
}

// addQuotes adds texts of agents. They are labelled, and not part of what is approved.
func (r *rendered) addQuotes(said []api.Quote) {
	for _, q := range said[:min(len(said), maxQuotes)] {
		r.addPreformatted("Written by "+q.By+", not verified:", q.Text)
	}
}

// addContext adds the rule, the people who decide, the votes and the time left.
func (r *rendered) addContext(c channel.Card) {
	var lines []string
	add := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	if c.Environment != "" {
		add("Environment: %s", c.Environment)
	}
	if len(c.Rules) > 0 {
		add("Rule: %s", strings.Join(c.Rules, ", "))
	}
	if c.Reason != "" {
		add("Because: %s", c.Reason)
	}
	if c.Open() && len(c.Deciders) > 0 {
		add("Decided by: %s", strings.Join(c.Deciders, ", "))
	}
	if c.Progress != "" {
		add("Votes: %s", c.Progress)
	}
	if c.Open() && needsStepUp(c) {
		add("Needs a stronger sign-in (%s): approve in the inbox", c.MinAuth)
	}
	var elements []slack.MixedElement
	for _, line := range lines {
		elements = append(elements, plainText(line, maxSection))
	}
	if c.Open() && !c.Deadline.IsZero() {
		// the only markup: a time that Slack shows in the time zone of the reader
		stamp := c.Deadline.UTC().Format("2006-01-02 15:04 UTC")
		text := fmt.Sprintf("Expires <!date^%d^{date_short_pretty} {time}|%s> (%s left)", c.Deadline.Unix(), stamp, timeLeft(c.Deadline.Sub(c.At)))
		elements = append(elements, slack.NewTextBlockObject(slack.MarkdownType, text, false, true))
	}
	if len(elements) > 0 {
		r.add(slack.NewContextBlock("", elements...))
	}
}

// timeLeft words a duration: "2 h 5 min".
func timeLeft(d time.Duration) string {
	if d < time.Minute {
		return "less than 1 min"
	}
	hours, minutes := int(d.Hours()), int(d.Minutes())%60
	switch {
	case hours >= 48:
		return fmt.Sprintf("%d days", hours/24)
	case hours > 0 && minutes > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%d h", hours)
	}
	return fmt.Sprintf("%d min", minutes)
}

// outcome words how a request ended.
func outcome(c channel.Card) string {
	mark := "■"
	switch {
	case strings.HasPrefix(c.Outcome, "approved"), strings.HasPrefix(c.Outcome, "answered"):
		mark = "✔"
	case strings.HasPrefix(c.Outcome, "rejected"):
		mark = "✘"
	}
	text := mark + " " + c.Outcome
	if !c.DecidedAt.IsZero() {
		text += " at " + c.DecidedAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	return text
}

// needsStepUp reports whether a vote needs a stronger authentication than a linked Slack account.
func needsStepUp(c channel.Card) bool { return !requirement.AuthLinked.AtLeast(c.MinAuth) }

// addButtons adds at most five elements: what decides, the inbox, and a menu with the rest.
func (r *rendered) addButtons(c channel.Card) {
	value := shown{Request: c.Request, Revision: c.Revision, Digest: c.Digest}.value()
	if len(value) > maxButtonValue {
		value = "" // an id of this size cannot come back
	}
	var elements []slack.BlockElement
	button := func(verb, act, label string, style slack.Style) {
		if value != "" && c.Allows(verb) && !needsStepUp(c) {
			b := slack.NewButtonBlockElement(act, value, plainText(label, maxButton))
			elements = append(elements, b.WithStyle(style))
		}
	}
	if r.complete && !c.Typed {
		button("approve", actApprove, "Approve", slack.StylePrimary)
		confirmRisk(elements, c)
	}
	button("reject", actDeny, "Reject…", slack.StyleDanger)
	if r.complete && !c.Typed {
		button("edit", actEdit, "Edit…", slack.StyleDefault)
	}
	if r.complete {
		button("respond", actRespond, "Answer…", slack.StylePrimary)
	}
	if c.Link != "" {
		label := "Open in inbox"
		if needsStepUp(c) && c.Allows("approve") {
			label = "Sign in to approve"
		} else if c.Typed && c.Allows("approve") {
			label = "Approve in the inbox"
		}
		elements = append(elements, linkButton(c.Link, label))
	}
	if menu := menu(c); menu != nil {
		elements = append(elements, menu)
	}
	if !r.complete {
		r.add(slack.NewContextBlock("", plainText("This request is too long for Slack. Open it in the inbox to approve it.", maxSection)))
	}
	if len(elements) > 0 {
		r.add(slack.NewActionBlock(blockActions, elements...))
	}
}

// confirmRisk makes Slack ask again before it sends an approval of a risky action.
func confirmRisk(elements []slack.BlockElement, c channel.Card) {
	if c.Risk < 2 || len(elements) == 0 {
		return
	}
	elements[0].(*slack.ButtonBlockElement).Confirm = slack.NewConfirmationBlockObject(
		plainText("Approve?", 100), plainText(c.Title, 300), plainText("Approve", 30), plainText("Cancel", 30))
}

// menu returns the actions that do not decide; nil if there are none.
func menu(c channel.Card) slack.BlockElement {
	var options []*slack.OptionBlockObject
	for _, o := range []struct {
		verb, act, label string
	}{{"ask", actAsk, "Ask the agent…"}, {"escalate", actEscalate, "Escalate"}} {
		value := o.act + " " + c.Request
		if c.Allows(o.verb) && len(value) <= maxOptionValue {
			options = append(options, slack.NewOptionBlockObject(value, plainText(o.label, maxButton), nil))
		}
	}
	if len(options) == 0 {
		return nil
	}
	return slack.NewOverflowBlockElement(actMenu, options...)
}

func linkButton(link, label string) slack.BlockElement {
	b := slack.NewButtonBlockElement(actOpen, "", plainText(label, maxButton))
	b.URL = link
	return b
}

func (s shown) value() string {
	text, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(text)
}
