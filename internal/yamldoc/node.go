package yamldoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/timespan"
	"go.yaml.in/yaml/v3"
)

// Node is a value in a document. The zero value is a missing one.
type Node struct {
	reader *Reader
	yaml   *yaml.Node
	path   string
	key    int // the line of its key; 0 for items
}

// Missing reports whether the value is missing.
func (n Node) Missing() bool { return n.yaml == nil }

// IsMapping reports whether the value is a mapping.
func (n Node) IsMapping() bool { return n.yaml != nil && n.yaml.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (n Node) IsList() bool { return n.yaml != nil && n.yaml.Kind == yaml.SequenceNode }

// IsNull reports whether a key has no value.
func (n Node) IsNull() bool { return n.yaml != nil && n.yaml.Tag == "!!null" }

// Line returns the line of the value.
func (n Node) Line() int {
	if n.yaml == nil {
		return 0
	}
	return n.yaml.Line
}

// TextLine returns the line where the text of a value begins. For a block scalar, it is the line
// after the indicator.
func (n Node) TextLine() int {
	if n.yaml != nil && n.yaml.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.yaml.Line + 1
	}
	return n.Line()
}

// Reportf reports an error at this value.
func (n Node) Reportf(format string, args ...any) { n.ReportLinef(n.Line(), format, args...) }

// ReportLinef reports an error at a line within this value.
func (n Node) ReportLinef(line int, format string, args ...any) {
	n.reader.Report(line, n.path, fmt.Sprintf(format, args...))
}

// unexpected reports that the value is of another kind.
func (n Node) unexpected(expected string) {
	if n.yaml.Kind == yaml.AliasNode {
		n.Reportf("aliases are not supported: write the value")
		return
	}
	n.Reportf("expected %s", expected)
}

// child returns the value of a key.
func (n Node) child(key, value *yaml.Node) Node {
	path := key.Value
	if n.path != "" {
		path = n.path + "." + path
	}
	return Node{reader: n.reader, yaml: value, path: path, key: key.Line}
}

// item returns an item of a list.
func (n Node) item(i int) Node {
	return Node{reader: n.reader, yaml: n.yaml.Content[i], path: n.path + "[" + strconv.Itoa(i) + "]"}
}

// At returns the value at a path of keys and of positions in lists. Where the path ends early, it
// returns the last value on it. It reports nothing.
func (n Node) At(path ...any) Node {
	for _, step := range path {
		switch step := step.(type) {
		case int:
			if !n.IsList() || step >= len(n.yaml.Content) {
				return n
			}
			n = n.item(step)
		case string:
			if !n.IsMapping() {
				return n
			}
			i := 0
			for i < len(n.yaml.Content) && n.yaml.Content[i].Value != step {
				i += 2
			}
			if i+1 >= len(n.yaml.Content) {
				return n
			}
			n = n.child(n.yaml.Content[i], n.yaml.Content[i+1])
		}
	}
	return n
}

// Peek returns the text of a key of a mapping, or "". It reports nothing.
func (n Node) Peek(key string) string {
	if value := n.At(key); n.IsMapping() && value.yaml != n.yaml && value.yaml.Kind == yaml.ScalarNode && !value.IsNull() {
		return value.yaml.Value
	}
	return ""
}

// Keys returns the keys and values of a mapping with arbitrary keys, in order.
func (n Node) Keys() (names []string, values []Node) {
	if n.Missing() {
		return nil, nil
	}
	if !n.IsMapping() {
		n.unexpected("a mapping of keys")
		return nil, nil
	}
	first := make(map[string]int)
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key := n.yaml.Content[i]
		if key.Kind != yaml.ScalarNode {
			Node{reader: n.reader, yaml: key, path: n.path}.Reportf("a key is not a string")
			continue
		}
		if line, repeated := first[key.Value]; repeated {
			n.child(key, key).Reportf("is repeated, first in line %d", line)
			continue
		}
		first[key.Value] = key.Line
		names = append(names, key.Value)
		values = append(values, n.child(key, n.yaml.Content[i+1]))
	}
	return names, values
}

// Map returns the values of a mapping. An unknown key is reported with a suggestion.
func (n Node) Map(known ...string) map[string]Node {
	fields := make(map[string]Node)
	n.eachField(known, func(name string, value Node) { fields[name] = value })
	return fields
}

// eachField calls use for the values of a mapping, in order.
func (n Node) eachField(known []string, use func(name string, value Node)) {
	names, values := n.Keys()
	for i, name := range names {
		switch value := values[i]; {
		case !slices.Contains(known, name):
			value.Unknown(Suggest(name, known))
		case value.IsNull():
			value.ReportLinef(value.key, "the value is missing")
		default:
			use(name, value)
		}
	}
}

// Unknown reports an unknown key of a mapping. hint is the end of the message.
func (n Node) Unknown(hint string) { n.ReportLinef(n.key, "unknown key%s", hint) }

// List returns the items of a list.
func (n Node) List() []Node {
	if n.Missing() {
		return nil
	}
	if !n.IsList() {
		n.unexpected("a list, for example [a, b]")
		return nil
	}
	items := make([]Node, len(n.yaml.Content))
	for i := range items {
		items[i] = n.item(i)
	}
	return items
}

// Text returns a scalar as written: "on" does not become a bool, and 1.10 does not become 1.1.
func (n Node) Text() string {
	text, _ := n.Scalar()
	return text
}

// Scalar returns a scalar as written, and whether there is one.
func (n Node) Scalar() (text string, ok bool) {
	switch {
	case n.Missing():
		return "", false
	case n.IsNull():
		n.Reportf(`the value is missing; write "" for an empty one`)
		return "", false
	case n.yaml.Kind != yaml.ScalarNode:
		n.unexpected("a single value")
		return "", false
	}
	return n.yaml.Value, true
}

// Texts returns a list of strings.
func (n Node) Texts() []string {
	items := n.List()
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, item.Text())
	}
	return texts
}

// Choice returns one of the choices, or reports an error and returns "".
func (n Node) Choice(choices ...string) string {
	text, ok := n.Scalar()
	if !ok || slices.Contains(choices, text) {
		return text
	}
	n.Reportf("%s", NotOneOf(text, choices))
	return ""
}

// Int returns an integer of at least least.
func (n Node) Int(least int64) int64 {
	if n.Missing() {
		return 0
	}
	text, ok := n.Scalar()
	if !ok {
		return least
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || number < least {
		n.Reportf("%q is not a whole number of at least %d", text, least)
		return least
	}
	return number
}

// Duration returns a duration such as 90m, 24h or 30d.
func (n Node) Duration() time.Duration {
	text, ok := n.Scalar()
	if !ok {
		return 0
	}
	span, err := timespan.Parse(text)
	if err != nil {
		n.Reportf("%v", err)
	}
	return span
}

// Any returns the value as encoding/json would decode it, for parts of a document that are data.
func (n Node) Any() (any, error) {
	if n.Missing() {
		return nil, nil
	}
	var value any
	if err := n.yaml.Decode(&value); err != nil {
		return nil, err
	}
	return value, nil
}
