// Package actiontext words an action for people, from the name of its tool, the titles in the
// schema of its arguments, and the arguments: "Refund 120.00 EUR on order 17 (prod)". All channels
// use it, so that an action reads the same everywhere.
//
// The words of the phrase come from the name of the tool and from a table of texts. Values of
// arguments are returned as separate parts, so that a channel can escape and mark them.
package actiontext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Part is a piece of a phrase. Parts are joined without separators.
type Part struct {
	Text string
	// Value reports that the text is a value of an argument, or the name of a tool that is not a
	// verb.
	Value bool
}

// Action is an action to word.
type Action struct {
	// Name is the name of the tool, such as "refund", "drop-table" or "mcp__github__create_issue".
	Name string
	// Args are the arguments: a JSON object.
	Args json.RawMessage
	// Schema is the JSON Schema of the arguments. Titles of its properties replace their names, and
	// amounts of money are shown as it says, in Language: see package money.
	Schema   json.RawMessage
	Language string
	// Masked are the JSON pointers of arguments that must not be shown.
	Masked []string
	// Question reports that Name is the kind of a question, not a tool.
	Question bool
}

// Words are the words of the phrase in the language of the reader: "run", "on", "to", "for" and
// "from".
type Words func(word string) string

// English are the English words.
func English(word string) string { return word }

// maxDetails is how many arguments a phrase names besides the amount, the object and the
// environment.
const maxDetails = 2

// Of words an action. The phrase begins with a verb in lower case.
func Of(a Action, words Words) []Part {
	p := &builder{words: words, args: shortArgs(a)}
	verb, object, space := splitName(a.Name)
	env := p.take(func(arg arg) bool { return environments[arg.label()] })
	amount := p.amount()
	if verb == "" {
		if !a.Question {
			p.text(words("run") + " ")
		}
		p.value(a.Name)
	} else {
		p.text(verb)
	}
	if verb != "" {
		p.object(object, amount)
	} else if amount != "" {
		p.text(" ")
		p.value(amount)
	}
	p.details(verb != "" && object == "" && amount == "")
	switch {
	case env != nil:
		p.text(" (")
		p.value(env.text)
		p.text(")")
	case space != "":
		p.text(" (" + space + ")")
	}
	return p.parts
}

// Text returns a phrase as a text, with its first letter in upper case.
func Text(parts []Part) string {
	var b strings.Builder
	for _, part := range Capitalized(parts) {
		b.WriteString(part.Text)
	}
	return b.String()
}

// Capitalized returns the parts with the first letter in upper case.
func Capitalized(parts []Part) []Part {
	parts = slices.Clone(parts)
	if len(parts) > 0 && parts[0].Text != "" {
		first := []rune(parts[0].Text)
		first[0] = unicode.ToUpper(first[0])
		parts[0].Text = string(first)
	}
	return parts
}

// builder builds a phrase. Arguments that it has used are removed.
type builder struct {
	words Words
	args  []arg
	parts []Part
}

func (p *builder) text(text string) { p.parts = append(p.parts, Part{Text: text}) }

func (p *builder) value(text string) { p.parts = append(p.parts, Part{Text: text, Value: true}) }

// take removes the first argument that fits, and returns it; nil if none does.
func (p *builder) take(fits func(arg) bool) *arg {
	i := slices.IndexFunc(p.args, fits)
	if i < 0 {
		return nil
	}
	found := p.args[i]
	p.args = slices.Delete(p.args, i, i+1)
	return &found
}

var (
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
	decimal      = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	oneDecimal   = regexp.MustCompile(`^-?[0-9]+\.[0-9]$`)
)

// amount returns the amount of money with its currency; "" if there is none. An amount without a
// currency is an argument like the others.
func (p *builder) amount() string {
	hasAmount := func(a arg) bool { return a.label() == "amount" && decimal.MatchString(a.text) }
	hasCurrency := func(a arg) bool { return a.label() == "currency" && currencyCode.MatchString(a.text) }
	if found := p.take(func(a arg) bool { return a.money }); found != nil {
		if found.currencyField != "" { // it is part of the amount
			p.take(func(a arg) bool { return a.name == found.currencyField })
		}
		return found.text
	}
	if !slices.ContainsFunc(p.args, hasAmount) || !slices.ContainsFunc(p.args, hasCurrency) {
		return ""
	}
	text, currency := p.take(hasAmount).text, p.take(hasCurrency).text
	if oneDecimal.MatchString(text) {
		text += "0" // 24.5 is 24.50
	}
	return text + " " + currency
}

// object adds the amount and the object: "24.50 EUR on order 17", or "table users".
func (p *builder) object(object, amount string) {
	if amount != "" {
		p.text(" ")
		p.value(amount)
	}
	var target *arg
	switch {
	case object != "":
		last := object[strings.LastIndexByte(object, ' ')+1:]
		if target = p.take(func(a arg) bool { return a.label() == last || a.label() == object }); target == nil {
			target = p.take(func(a arg) bool { return a.label() == "name" || a.label() == "id" || a.label() == "title" })
		}
	case amount != "":
		if target = p.take(func(a arg) bool { return prepositions[a.label()] == "on" }); target != nil {
			object = target.label()
		}
	}
	if object == "" {
		return
	}
	if amount != "" {
		p.text(" " + p.words("on"))
	}
	p.text(" " + object)
	if target != nil {
		p.text(" ")
		p.value(target.text)
	}
}

// details adds a few more arguments: " to …", ", customer …". If direct is true, the first one
// follows the verb without a comma.
func (p *builder) details(direct bool) {
	slices.SortStableFunc(p.args, func(a, b arg) int { return rank(a) - rank(b) })
	for i, a := range p.args[:min(len(p.args), maxDetails)] {
		label, preposition := a.label(), prepositions[a.label()]
		switch {
		case preposition == label && label != "": // to, from
			p.text(" " + p.words(preposition) + " ")
		case preposition != "":
			p.text(" " + p.words(preposition) + " ")
			if !selfEvident[label] {
				p.text(a.shownLabel() + " ")
			}
		case i == 0 && direct:
			p.text(" " + a.shownLabel() + " ")
		default:
			p.text(", " + a.shownLabel() + " ")
		}
		p.value(a.text)
	}
}

// rank sorts arguments with a preposition before the others.
func rank(a arg) int {
	if prepositions[a.label()] != "" {
		return 0
	}
	return 1
}
