package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	// facts, evidence and texts beyond these are only in the inbox
	maxFacts   = 30
	maxContent = 34 // blocks
	maxQuotes  = 4
	// maxElements is the number of buttons in one block
	maxElements = 5
)

// Ids of our blocks and actions.
const (
	blockActions = "fermata_actions"
	metadataType = "fermata_request"

	actApprove  = "approve"
	actEdit     = "edit"
	actReject   = "reject"
	actReturn   = "return"
	actAsk      = "ask"
	actEscalate = "escalate"
	actUndo     = "undo"
	actMenu     = "more"
	actOpen     = "open"
)

// shown identifies what a copy shows and what a button does. It is the value of the button and
// comes back with a click. Form says that the click opens a modal.
type shown struct {
	Request  string          `json:"r"`
	Revision int64           `json:"v,omitempty"`
	Digest   string          `json:"d,omitempty"`
	Action   string          `json:"a,omitempty"`
	Answer   json.RawMessage `json:"w,omitempty"`
	Form     bool            `json:"f,omitempty"`
}

// rendered is a card as Slack blocks.
type rendered struct {
	text   string
	blocks []slack.Block
	// complete says that nothing of what a decision is about was clipped.
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
	r := rendered{text: clip(c.Title, maxNotify)}
	if !c.Open() {
		r.text = clip(fmt.Sprintf("%s: %s", outcome(c), c.Title), maxNotify)
	}
	r.addPresentation(c.Presentation)
	r.addContext(c)
	switch {
	case !c.Open():
		r.addText(outcome(c))
		if c.Link != "" {
			r.add(slack.NewActionBlock(blockActions, linkButton(c.Link, "Open in inbox")))
		}
	case c.Pending != nil:
		r.addPending(c)
	default:
		r.addButtons(c)
	}
	return r
}

// addPresentation adds what a decision is about, and what the agent says.
func (r *rendered) addPresentation(p api.Presentation) {
	r.complete = utf8.RuneCountInString(p.Sentence) <= maxSection &&
		(utf8.RuneCountInString(p.Title) <= maxHeader || strings.Contains(strings.ToLower(p.Sentence), strings.ToLower(p.Title)))
	r.add(slack.NewHeaderBlock(plainText(p.Title, maxHeader)))
	if p.Sentence != "" {
		r.add(slack.NewSectionBlock(plainText(p.Sentence, maxSection), nil, nil))
	}
	r.addFacts(p.Facts)
	r.addEvidence(p.Evidence)
	r.addQuotes(p.Said)
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
		r.addContent(label, value)
	}
	flush()
}

// addEvidence adds what a decision can be based on, with the text at the last approval.
func (r *rendered) addEvidence(evidence []api.Evidence) {
	for _, e := range evidence {
		label := e.Title
		if e.Source != "" {
			label += " (source: " + e.Source + ")"
		}
		if e.URL != "" {
			label += " " + e.URL
		}
		if e.Was != "" {
			r.addContent(label+", at the last approval", e.Was)
			label += ", now"
		}
		r.addContent(label, e.Text)
	}
}

// addContent adds a text that a decision is about, if it fits.
func (r *rendered) addContent(label, text string) {
	if len(r.blocks)+2 > maxContent {
		r.complete = false
		return
	}
	r.complete = r.complete && utf8.RuneCountInString(label) <= maxSection && utf8.RuneCountInString(text) <= maxSection
	r.addPreformatted(label, text)
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
	if c.Risk > 0 && c.Risk < len(riskNames) {
		add("Risk: %s", riskNames[c.Risk])
	}
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
		add("Needs a stronger sign-in (%s): decide in the inbox", c.MinAuth)
	}
	var elements []slack.MixedElement
	for _, line := range lines {
		elements = append(elements, plainText(line, maxSection))
	}
	if c.Open() && !c.Deadline.IsZero() {
		stamp := c.Deadline.UTC().Format(utcLayout)
		elements = append(elements, dateText("Expires", c.Deadline, stamp, fmt.Sprintf("(%s left)", timeLeft(c.Deadline.Sub(c.At)))))
	}
	if len(elements) > 0 {
		r.add(slack.NewContextBlock("", elements...))
	}
}

// riskNames are the names of the levels of risk.
var riskNames = [...]string{"", "low", "medium", "high"}

// utcLayout is the layout of times in texts. addText shows them in the time zone of the reader.
const utcLayout = "2006-01-02 15:04 UTC"

var utcTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC`)

// dateText is the only markup: a time that Slack shows in the time zone of the reader. The texts
// around it are constants.
func dateText(before string, at time.Time, stamp, after string) *slack.TextBlockObject {
	format := "{date_short_pretty} {time}"
	if at.Second() != 0 {
		format = "{date_short_pretty} {time_secs}"
	}
	text := strings.TrimSpace(fmt.Sprintf("%s <!date^%d^%s|%s> %s", before, at.Unix(), format, stamp, after))
	return slack.NewTextBlockObject(slack.MarkdownType, text, false, true)
}

// addText adds a plain text. Its times are shown in the time zone of the reader.
func (r *rendered) addText(text string) {
	var elements []slack.MixedElement
	add := func(part string) {
		if part = strings.TrimSpace(part); part != "" && part != "." {
			elements = append(elements, plainText(part, maxSection))
		}
	}
	rest := 0
	for _, at := range utcTime.FindAllStringIndex(text, 4) {
		stamp := text[at[0]:at[1]]
		parsed, err := time.Parse("2006-01-02 15:04:05 UTC", stamp)
		if err != nil {
			parsed, err = time.Parse(utcLayout, stamp)
		}
		if err != nil {
			continue
		}
		add(text[rest:at[0]])
		elements = append(elements, dateText("", parsed, stamp, ""))
		rest = at[1]
	}
	if rest == 0 {
		r.add(slack.NewSectionBlock(plainText(text, maxSection), nil, nil))
		return
	}
	add(text[rest:])
	r.add(slack.NewContextBlock("", elements...))
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
		text += " at " + c.DecidedAt.UTC().Format(utcLayout)
	}
	return text
}

// needsStepUp reports whether a vote needs a stronger authentication than a linked Slack account.
func needsStepUp(c channel.Card) bool { return !requirement.AuthLinked.AtLeast(c.MinAuth) }

// addPending adds the decision that waits for the end of its undo window.
func (r *rendered) addPending(c channel.Card) {
	p := c.Pending
	r.add(slack.NewContextBlock("",
		plainText(fmt.Sprintf("%s by %s, not in effect yet. %s can undo it.", p.Outcome, p.By, p.By), maxSection),
		dateText("Takes effect at", p.EffectiveAt, p.EffectiveAt.UTC().Format("2006-01-02 15:04:05 UTC"), "")))
	var elements []slack.BlockElement
	if value := (shown{Request: c.Request, Revision: c.Revision, Digest: c.Digest, Action: actUndo}).value(); value != "" {
		elements = append(elements, slack.NewButtonBlockElement(actUndo, value, plainText("Undo", maxButton)))
	}
	if c.Link != "" {
		elements = append(elements, linkButton(c.Link, "Open in inbox"))
	}
	r.addElements(elements)
}

// addButtons adds a button for each decision, the inbox, and a menu with the other actions.
func (r *rendered) addButtons(c channel.Card) {
	var elements []slack.BlockElement
	var options []*slack.OptionBlockObject
	var details []string
	count := make(map[string]int)
	fits := true
	for _, a := range c.Actions {
		if a.Name == actAsk || a.Name == actEscalate {
			options = appendOption(options, c, a)
			continue
		}
		if !r.offers(c, a) {
			continue
		}
		form := needsForm(a)
		value := shown{c.Request, c.Revision, c.Digest, a.Name, a.Answer, form}.value()
		if value == "" {
			fits = false
			continue
		}
		if !form && (a.Detail != "" || utf8.RuneCountInString(a.Label) > maxButton) {
			details = append(details, strings.TrimSuffix(a.Label+": "+a.Detail, ": "))
		}
		id := a.Name
		if count[a.Name]++; count[a.Name] > 1 {
			id += fmt.Sprint("_", count[a.Name])
		}
		b := slack.NewButtonBlockElement(id, value, plainText(a.Label, maxButton)).WithStyle(slack.Style(a.Style))
		if c.Risk >= 2 && !form {
			b.Confirm = confirmRisk(c, a)
		}
		elements = append(elements, b)
	}
	if c.Link != "" {
		elements = append(elements, linkButton(c.Link, linkLabel(c)))
	}
	if len(options) > 0 {
		elements = append(elements, slack.NewOverflowBlockElement(actMenu, options...))
	}
	if len(details) > 0 {
		r.add(slack.NewSectionBlock(plainText(strings.Join(details, "\n"), maxSection), nil, nil))
	}
	switch {
	case !r.complete:
		r.add(slack.NewContextBlock("", plainText("This request is too long for Slack. Open it in the inbox to decide it.", maxSection)))
	case !fits:
		r.add(slack.NewContextBlock("", plainText("Some answers are too long for Slack. They are in the inbox.", maxSection)))
	}
	r.addElements(elements)
}

// offers reports whether a message may have a button for a decision. A person must have seen
// everything that they approve or answer, and the rules may require more than a click.
func (r *rendered) offers(c channel.Card, a api.Action) bool {
	switch a.Name {
	case actReturn:
		return true
	case actReject:
		return !needsStepUp(c)
	case actApprove, actEdit:
		return r.complete && !needsStepUp(c) && !c.Typed
	}
	return r.complete && !needsStepUp(c)
}

// needsForm reports whether an action opens a modal. The main action sends its answer at once, if
// the answer is complete.
func needsForm(a api.Action) bool {
	return a.Form != nil && (!a.Optional || a.Style != string(slack.StylePrimary))
}

func appendOption(options []*slack.OptionBlockObject, c channel.Card, a api.Action) []*slack.OptionBlockObject {
	value := a.Name + " " + c.Request
	if len(value) > maxOptionValue {
		return options
	}
	var detail *slack.TextBlockObject
	if a.Detail != "" {
		detail = plainText(a.Detail, maxButton)
	}
	return append(options, slack.NewOptionBlockObject(value, plainText(a.Label, maxButton), detail))
}

func linkLabel(c channel.Card) string {
	switch {
	case needsStepUp(c) && c.Allows(actApprove):
		return "Sign in to approve"
	case c.Typed && c.Allows(actApprove):
		return "Approve in the inbox"
	}
	return "Open in inbox"
}

// addElements adds blocks of buttons.
func (r *rendered) addElements(elements []slack.BlockElement) {
	n := 0
	for some := range slices.Chunk(elements, maxElements) {
		id := blockActions
		if n++; n > 1 {
			id += fmt.Sprint("_", n)
		}
		r.add(slack.NewActionBlock(id, some...))
	}
}

// confirmRisk makes Slack ask again before it sends a decision on a risky request.
func confirmRisk(c channel.Card, a api.Action) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(plainText(a.Label+"?", 100), plainText(c.Title, 300), plainText(a.Label, 30), plainText("Cancel", 30))
}

func linkButton(link, label string) slack.BlockElement {
	b := slack.NewButtonBlockElement(actOpen, "", plainText(label, maxButton))
	b.URL = link
	return b
}

// value returns the value of a button; "" if it is too long to come back.
func (s shown) value() string {
	text, err := json.Marshal(s)
	if err != nil || utf8.RuneCount(text) > maxButtonValue {
		return ""
	}
	return string(text)
}
