package presentation

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/money"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// factsOf lists the members of a JSON value; was is the requested value if it was edited. The
// schema says which are amounts of money.
func (w *words) factsOf(value, was, schema json.RawMessage) (facts []api.Fact) {
	if len(value) == 0 {
		return nil
	}
	n, err := safehtml.Parse(value)
	if err != nil || n.Kind != safehtml.Object {
		return []api.Fact{factOf("value", value)}
	}
	amounts, members, before := money.FieldsOf(schema), membersOf(value), membersOf(was)
	fact := func(name string, value json.RawMessage, members map[string]json.RawMessage) api.Fact {
		f := factOf(name, value)
		if amount, ok := amounts.Format(name, value, members, w.Language); ok {
			f.Value = amount
		}
		return f
	}
	for _, m := range n.Members {
		f := fact(m.Name, m.Value.Raw, members)
		f.Flagged = f.Flagged || safehtml.Flags(m.Name) > 0
		pointer := pointerTo(m.Name)
		f.Masked = slices.ContainsFunc(w.Masked, func(p string) bool { return p == pointer || strings.HasPrefix(p, pointer+"/") })
		if len(was) > 0 && string(before[m.Name]) != string(m.Value.Raw) {
			f.Was = "(none)"
			if old, ok := before[m.Name]; ok {
				f.Was = fact(m.Name, old, before).Value
			}
		}
		facts = append(facts, f)
	}
	if old, err := safehtml.Parse(was); err == nil {
		for _, m := range old.Members {
			if _, kept := members[m.Name]; !kept {
				facts = append(facts, api.Fact{Label: Plain(m.Name), Value: w.t["removed"], Was: fact(m.Name, m.Value.Raw, before).Value})
			}
		}
	}
	return facts
}

// factOf words one value: a text without quotation marks, a list of texts as lines, everything else
// as JSON.
func factOf(label string, value json.RawMessage) api.Fact {
	f := api.Fact{Label: Plain(label), Value: Plain(string(value))}
	n, err := safehtml.Parse(value)
	if err != nil {
		f.Flagged = true
		return f
	}
	f.Flagged = n.Flags() > 0
	switch n.Kind {
	case safehtml.String:
		f.Value = PlainBlock(n.Text)
		if n.Text == "" {
			f.Value = `""`
		}
	case safehtml.Literal:
		f.Value = n.Text
	}
	return f
}

func textFact(label, text string) api.Fact {
	return api.Fact{Label: label, Value: PlainBlock(text), Flagged: slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return safehtml.Flags(line) > 0 })}
}

// pointerTo is the JSON pointer of a member of the value.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Plain returns an untrusted text as one line.
func Plain(text string) string { return safehtml.Plain(text) }

// PlainBlock returns an untrusted text of several lines.
func PlainBlock(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Plain(line)
	}
	return strings.Join(lines, "\n")
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// humanize returns a name of a program as words: "schema_mutate" as "schema mutate".
func humanize(name string) string {
	return strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ").Replace(name))
}
