package conversation

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/dialog"
)

// maxSpokenOptions is how many options are read out at once. Listeners do not remember more.
const maxSpokenOptions = 3

// wording is the set of templates of a machine, with the built-in ones.
type wording dialog.Wording

// template returns the variants for a name, from the most specific: channel and modality, then
// modality, then the plain name.
func (w wording) template(language Language, channel, name string, modality Modality) (found string, variants []string) {
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
func (w wording) say(c *Conversation, name string, args ...string) (text, template string) {
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

// inLanguageOf returns the conversation in the language of a question.
func inLanguageOf(a *Asking, c *Conversation) *Conversation {
	if a.Question.Language == "" {
		return c
	}
	other := *c
	other.Language = a.Question.Language
	return &other
}

// ask words a question in its current status.
func (w wording) ask(c *Conversation, a *Asking) Prompt {
	c = inLanguageOf(a, c)
	p := Prompt{Question: a.ID, Modality: c.Modality}
	q := &a.Question
	switch a.Status {
	case Confirming:
		if q.Kind == Confirmation {
			p.Text, p.Template = w.say(c, "read_back_action", "q", q.Text)
		} else {
			p.Text, p.Template = w.say(c, "read_back", "a", candidateLabel(a))
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
		p.Text, p.Template = w.say(c, "draft", "a", describeEntity(a.Draft))
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
	case q.Relevance == NonBlocking && q.Kind != Confirmation:
		name = "by_the_way"
	case q.Kind == Clarification && len(q.Options) > 0:
		name = string(Disambiguation)
	}
	more := ""
	if c.Modality == Voice && a.Page+1 < pages(a) {
		more, _ = w.say(c, "more")
	}
	p.Text, p.Template = w.say(c, name, "q", q.Text, "options", w.readOut(c, p.Choices), "more", more)
	return p
}

// askForm asks for all missing fields on a screen, and for the next one on voice.
func (w wording) askForm(c *Conversation, a *Asking) Prompt {
	p := Prompt{Question: a.ID, Modality: c.Modality}
	missing := missing(a)
	if c.Modality != Voice {
		p.Fields, p.Values = a.Question.Fields, maps.Clone(a.Filled)
		p.Text, p.Template = w.say(c, "form", "q", a.Question.Text)
		return p
	}
	if len(missing) > 0 {
		field := missing[0]
		p.Fields = missing[:1]
		for i, choice := range field.Choices[:min(len(field.Choices), maxSpokenOptions)] {
			p.Choices = append(p.Choices, Choice{ID: choice, Label: choice, Number: i + 1})
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
func (w wording) choices(c *Conversation, a *Asking) []Choice {
	options := a.Question.Options
	all := make([]Choice, 0, len(options)+1)
	for i, o := range options {
		all = append(all, Choice{ID: o.ID, Label: describe(o), Number: i + 1})
	}
	if a.Question.AllowOther {
		label, _ := w.say(c, "other")
		all = append(all, Choice{ID: ChoiceOther, Label: label, Number: len(all) + 1})
	}
	if c.Modality != Voice || len(all) <= maxSpokenOptions {
		return all
	}
	first := a.Page * maxSpokenOptions
	return all[first:min(first+maxSpokenOptions, len(all))]
}

// pages returns the number of pages of options on voice.
func pages(a *Asking) int {
	n := len(a.Question.Options)
	if a.Question.AllowOther {
		n++
	}
	return (n + maxSpokenOptions - 1) / maxSpokenOptions
}

func (w wording) yesNo(c *Conversation) []Choice {
	yes, _ := w.say(c, "yes")
	no, _ := w.say(c, "no")
	return []Choice{{ID: ChoiceYes, Label: yes, Number: 1}, {ID: ChoiceNo, Label: no, Number: 2}}
}

// readOut returns the options as a list in words, and how to hear more.
func (w wording) readOut(c *Conversation, choices []Choice) string {
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

func describe(o Option) string {
	facts := make([]string, 0, len(o.Facts))
	for _, name := range slices.Sorted(maps.Keys(o.Facts)) {
		facts = append(facts, o.Facts[name])
	}
	if len(facts) == 0 {
		return o.Label
	}
	return o.Label + " (" + strings.Join(facts, ", ") + ")"
}

func describeEntity(e *Entity) string {
	text := e.Name
	for _, part := range []string{e.Role, e.Context} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}

func candidateLabel(a *Asking) string {
	if a.Candidate.Option == ChoiceOther {
		return a.Candidate.Raw
	}
	for _, o := range a.Question.Options {
		if o.ID == a.Candidate.Option {
			return describe(o)
		}
	}
	return a.Candidate.Text
}

func entityFields(w wording, c *Conversation) []Field {
	name, _ := w.say(c, "field_name")
	role, _ := w.say(c, "field_role")
	context, _ := w.say(c, "field_context")
	return []Field{{Name: "name", Label: name}, {Name: "role", Label: role, Optional: true}, {Name: "context", Label: context, Optional: true}}
}
