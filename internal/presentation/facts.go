package presentation

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// factsOf lists the members of a JSON value; was is the requested value if it was edited. masked
// are JSON pointers of values that are masked.
func factsOf(value, was json.RawMessage, masked []string) (facts []api.Fact) {
	if len(value) == 0 {
		return nil
	}
	n, err := safehtml.Parse(value)
	if err != nil || n.Kind != safehtml.Object {
		return []api.Fact{factOf("value", value)}
	}
	before := make(map[string]json.RawMessage)
	if old, err := safehtml.Parse(was); err == nil {
		for _, m := range old.Members {
			before[m.Name] = m.Value.Raw
		}
	}
	for _, m := range n.Members {
		f := factOf(m.Name, m.Value.Raw)
		f.Flagged = f.Flagged || safehtml.Flags(m.Name) > 0
		pointer := pointerTo(m.Name)
		f.Masked = slices.ContainsFunc(masked, func(p string) bool { return p == pointer || strings.HasPrefix(p, pointer+"/") })
		if len(was) > 0 && string(before[m.Name]) != string(m.Value.Raw) {
			f.Was = "(none)"
			if old, ok := before[m.Name]; ok {
				f.Was = factOf("", old).Value
			}
		}
		facts = append(facts, f)
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
