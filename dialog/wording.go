package dialog

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// Choice is a button or a spoken option of a prompt.
type Choice struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Number is what the user can say or press instead; 0 for none.
	Number int `json:"number,omitempty"`
}

// Prompt is a question or remark in the words for the user.
type Prompt struct {
	// Question is the id of the question; "" for a remark.
	Question string `json:"question,omitempty"`
	Text     string `json:"text"`
	// Template is the name of the template and its variant, such as "confirmation.voice.B".
	Template string            `json:"template"`
	Choices  []Choice          `json:"choices,omitempty"`
	Fields   []Field           `json:"fields,omitempty"`
	Values   map[string]string `json:"values,omitempty"` // what the form begins with
	Modality Modality          `json:"modality"`
}

// maxSpokenOptions is how many options are read out at once. Listeners do not remember more.
const maxSpokenOptions = 3

// Wording is the set of templates. The zero value uses the built-in templates.
type Wording struct {
	// Templates replace built-in templates. The key is a template name, such as "confirmation" or
	// "confirmation.voice", with the channel in front for one channel: "phone/confirmation.voice".
	// A template has one text or several variants; a conversation uses one of them.
	Templates map[Language]map[string][]string
	// Variant selects a variant; the default is a hash of the conversation and the template, so
	// that a user sees one variant only.
	Variant func(conversation, template string, variants int) int
}

// template returns the variants for a name, from the most specific: channel and modality, then
// modality, then the plain name.
func (w Wording) template(language Language, channel, name string, modality Modality) (found string, variants []string) {
	var keys []string
	if modality == Voice {
		keys = append(keys, channel+"/"+name+".voice", name+".voice")
	}
	keys = append(keys, channel+"/"+name, name)
	for _, l := range []Language{language, English} {
		for _, set := range []map[string][]string{w.Templates[l], templates[l]} {
			for _, key := range keys {
				if v := set[key]; len(v) > 0 {
					return key, v
				}
			}
		}
	}
	panic("dialog: no template " + name) // the built-in English templates have every name
}

// say returns the text of a template and its full name. args are pairs of placeholder and value.
func (w Wording) say(c *Conversation, name string, args ...string) (text, template string) {
	key, variants := w.template(c.Language, c.Channel, name, c.Modality)
	n := 0
	if len(variants) > 1 {
		pick := w.Variant
		if pick == nil {
			pick = hashVariant
		}
		n = pick(c.ID, key, len(variants)) % len(variants)
	}
	pairs := make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, "{"+args[i]+"}", args[i+1])
	}
	return strings.TrimSpace(strings.NewReplacer(pairs...).Replace(variants[n])), key + "." + string(rune('A'+n))
}

func hashVariant(conversation, template string, variants int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(conversation + "\x00" + template)) // never fails
	return int(h.Sum32() % uint32(variants))
}

// ask words a question in its current status.
func (w Wording) ask(c *Conversation, a *Asking) Prompt {
	p := Prompt{Question: a.ID, Modality: c.Modality}
	q := &a.Question
	switch a.Status {
	case Confirming:
		if q.Kind == Confirmation {
			p.Text, p.Template = w.say(c, "read_back_action", "q", q.Text)
		} else {
			p.Text, p.Template = w.say(c, "read_back", "a", a.candidateLabel())
		}
		p.Choices = w.yesNo(c)
		return p
	case Collecting:
		p.Text, p.Template = w.say(c, "collect")
		return p
	case Comparing:
		p.Text, p.Template = w.say(c, "compare", "a", a.Candidate.Text)
		p.Choices = w.yesNo(c)
		return p
	case Drafted:
		p.Text, p.Template = w.say(c, "draft", "a", a.Draft.describe())
		p.Choices, p.Fields = w.yesNo(c), entityFields(w, c)
		p.Values = map[string]string{"name": a.Draft.Name, "role": a.Draft.Role, "context": a.Draft.Context}
		return p
	case Queued, Asked, HandedOver, Answered, Escaped, Expired, Lapsed, Withdrawn:
	}
	switch q.Kind {
	case Confirmation:
		if a.Screen {
			p.Choices = w.yesNo(c)
			p.Text, p.Template = w.say(c, "screen", "q", q.Text)
			return p
		}
		p.Choices = w.yesNo(c)
	case Form:
		return w.askForm(c, a)
	case Clarification, Disambiguation:
		p.Choices = w.choices(c, a)
	}
	name := string(q.Kind)
	switch {
	case q.Relevance == NonBlocking:
		name = "by_the_way"
	case q.Kind == Clarification && len(q.Options) > 0:
		name = string(Disambiguation)
	}
	more := ""
	if c.Modality == Voice && a.Page+1 < a.pages() {
		more, _ = w.say(c, "more")
	}
	p.Text, p.Template = w.say(c, name, "q", q.Text, "options", w.readOut(c, p.Choices), "more", more)
	return p
}

// askForm asks for all missing fields on a screen, and for the next one on voice.
func (w Wording) askForm(c *Conversation, a *Asking) Prompt {
	p := Prompt{Question: a.ID, Modality: c.Modality}
	missing := a.missing()
	if c.Modality != Voice {
		p.Fields, p.Values = a.Question.Fields, maps.Clone(a.Filled)
		p.Text, p.Template = w.say(c, "form", "q", a.Question.Text)
		return p
	}
	if len(missing) > 0 {
		field := missing[0]
		p.Fields = missing[:1]
		for i, choice := range field.Choices[:min(len(field.Choices), maxSpokenOptions)] {
			p.Choices = append(p.Choices, Choice{choice, choice, i + 1})
		}
		intro := ""
		if len(a.Filled) == 0 {
			intro = a.Question.Text
		}
		p.Text, p.Template = w.say(c, "field", "intro", intro, "label", field.Label, "options", w.readOut(c, p.Choices))
	}
	return p
}

// choices returns the buttons of a question: all on a screen, a page of them on voice.
func (w Wording) choices(c *Conversation, a *Asking) []Choice {
	options := a.Question.Options
	all := make([]Choice, 0, len(options)+1)
	for i, o := range options {
		all = append(all, Choice{o.ID, o.describe(), i + 1})
	}
	if a.Question.AllowOther {
		label, _ := w.say(c, "other")
		all = append(all, Choice{ChoiceOther, label, len(all) + 1})
	}
	if c.Modality != Voice || len(all) <= maxSpokenOptions {
		return all
	}
	first := a.Page * maxSpokenOptions
	return all[first:min(first+maxSpokenOptions, len(all))]
}

// pages returns the number of pages of options on voice.
func (a *Asking) pages() int {
	n := len(a.Question.Options)
	if a.Question.AllowOther {
		n++
	}
	return (n + maxSpokenOptions - 1) / maxSpokenOptions
}

func (w Wording) yesNo(c *Conversation) []Choice {
	yes, _ := w.say(c, "yes")
	no, _ := w.say(c, "no")
	return []Choice{{ChoiceYes, yes, 1}, {ChoiceNo, no, 2}}
}

// readOut returns the options as a list in words, and how to hear more.
func (w Wording) readOut(c *Conversation, choices []Choice) string {
	var parts []string
	for _, choice := range choices {
		if c.Modality == Voice {
			parts = append(parts, fmt.Sprintf("%d: %s", choice.Number, choice.Label))
			continue
		}
		parts = append(parts, fmt.Sprintf("(%d) %s", choice.Number, choice.Label))
	}
	switch len(parts) {
	case 0:
		return ""
	case 1:
		return sentence(parts[0])
	}
	or, _ := w.say(c, "or")
	return sentence(strings.Join(parts[:len(parts)-1], ", ") + " " + or + " " + parts[len(parts)-1])
}

// sentence ends a text with a full stop if it has no other end.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}

func (o Option) describe() string {
	facts := make([]string, 0, len(o.Facts))
	for _, name := range slices.Sorted(maps.Keys(o.Facts)) {
		facts = append(facts, o.Facts[name])
	}
	if len(facts) == 0 {
		return o.Label
	}
	return o.Label + " (" + strings.Join(facts, ", ") + ")"
}

func (e *Entity) describe() string {
	text := e.Name
	for _, part := range []string{e.Role, e.Context} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}

func (a *Asking) candidateLabel() string {
	if a.Candidate.Option == ChoiceOther {
		return a.Candidate.Raw
	}
	for _, o := range a.Question.Options {
		if o.ID == a.Candidate.Option {
			return o.describe()
		}
	}
	return a.Candidate.Text
}

func entityFields(w Wording, c *Conversation) []Field {
	name, _ := w.say(c, "field_name")
	role, _ := w.say(c, "field_role")
	context, _ := w.say(c, "field_context")
	return []Field{{Name: "name", Label: name}, {Name: "role", Label: role, Optional: true}, {Name: "context", Label: context, Optional: true}}
}
