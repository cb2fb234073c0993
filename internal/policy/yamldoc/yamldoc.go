// Package yamldoc parses rule files in YAML and reports errors with line numbers and suggestions.
//
// The YAML library decodes into structs and reports an unknown key by the Go type. Authors of rules
// need the line and the intended key, so documents are read node by node. Surprising features of
// YAML are rejected: anchors, several documents, duplicate keys, and implicit type conversion.
package yamldoc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the maximum size of a file.
const maxBytes = 4 << 20

// Reader reads nodes and reports errors. It continues after an error, so that one load reports all
// of them.
type Reader struct {
	// Report is called for every error.
	Report func(line int, text string)
}

// Node is a value in a document. The zero value is a missing one.
type Node struct {
	reader *Reader
	yaml   *yaml.Node
	label  string // the name in messages
}

// Document returns the only document in src.
func (r *Reader) Document(src []byte) Node {
	if len(src) > maxBytes {
		r.Report(1, fmt.Sprintf("the file has %d bytes; the maximum is %d", len(src), maxBytes))
		return Node{}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(src)))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		r.syntax(err)
		return Node{}
	}
	if err := decoder.Decode(&more); err == nil {
		r.Report(more.Line, "a second document begins here; only one is allowed")
		return Node{}
	}
	return Node{reader: r, yaml: document.Content[0], label: "the document"}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// syntax reports a YAML syntax error.
func (r *Reader) syntax(err error) {
	text, line := err.Error(), 1
	if text == "EOF" {
		text = "the file is empty"
	}
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = found[2]
	}
	r.Report(line, "invalid YAML: "+strings.TrimPrefix(text, "yaml: "))
}

// Missing reports whether the value is missing.
func (n Node) Missing() bool { return n.yaml == nil }

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
func (n Node) Reportf(format string, args ...any) {
	n.reader.Report(n.Line(), fmt.Sprintf(format, args...))
}

func (n Node) isMap() bool {
	if n.yaml.Kind == yaml.AliasNode {
		n.Reportf("%s is an alias; anchors and aliases are not supported", n.label)
		return false
	}
	if n.yaml.Kind != yaml.MappingNode {
		n.Reportf("%s must be a mapping", n.label)
		return false
	}
	return true
}

// Map returns the values of a mapping. An unknown key is reported with a suggestion.
func (n Node) Map(known ...string) map[string]Node {
	values := make(map[string]Node)
	if n.Missing() || !n.isMap() {
		return values
	}
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		at := Node{reader: n.reader, yaml: key}
		_, twice := values[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			at.Reportf("%s has a key that is not a string", n.label)
		case twice:
			at.Reportf("%s has the key %q twice", n.label, key.Value)
		case !contains(known, key.Value):
			at.Reportf("%s has no key %q%s", n.label, key.Value, Suggest(key.Value, known))
		case value.Tag == "!!null":
			at.Reportf("%q has no value", key.Value)
		default:
			values[key.Value] = Node{reader: n.reader, yaml: value, label: strconv.Quote(key.Value)}
		}
	}
	return values
}

// Keys returns the keys and values of a mapping with arbitrary keys, in order.
func (n Node) Keys() (names []string, values []Node) {
	if n.Missing() || !n.isMap() {
		return nil, nil
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		if seen[key.Value] || key.Kind != yaml.ScalarNode {
			Node{reader: n.reader, yaml: key}.Reportf("%s has the key %q twice, or it is not a string", n.label, key.Value)
			continue
		}
		seen[key.Value] = true
		names = append(names, key.Value)
		values = append(values, Node{reader: n.reader, yaml: value, label: strconv.Quote(key.Value)})
	}
	return names, values
}

// List returns the items of a list.
func (n Node) List() []Node {
	if n.Missing() {
		return nil
	}
	if n.yaml.Kind != yaml.SequenceNode {
		n.Reportf("%s must be a list", n.label)
		return nil
	}
	items := make([]Node, 0, len(n.yaml.Content))
	for i, item := range n.yaml.Content {
		items = append(items, Node{reader: n.reader, yaml: item, label: fmt.Sprintf("item %d of %s", i+1, n.label)})
	}
	return items
}

// Text returns a scalar as written: "on" does not become a bool, and 1.10 does not become 1.1.
func (n Node) Text() string {
	if n.Missing() {
		return ""
	}
	if n.yaml.Kind != yaml.ScalarNode || n.yaml.Tag == "!!null" {
		n.Reportf("%s must be a string", n.label)
		return ""
	}
	return n.yaml.Value
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
	text := n.Text()
	if n.Missing() || contains(choices, text) {
		return text
	}
	n.Reportf("%s cannot be %q%s", n.label, text, Suggest(text, choices))
	return ""
}

// Int returns an integer of at least least.
func (n Node) Int(least int64) int64 {
	if n.Missing() {
		return 0
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Text(), "_", ""), 10, 64)
	if err != nil || number < least {
		n.Reportf("%s must be a whole number of at least %d", n.label, least)
		return least
	}
	return number
}

// Duration returns a duration such as 90m, 24h or 30d.
func (n Node) Duration() time.Duration {
	if n.Missing() {
		return 0
	}
	span, err := ParseDuration(n.Text())
	if err != nil {
		n.Reportf("%s: %v", n.label, err)
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

var days = regexp.MustCompile(`^(\d{1,4})d$`)

// ParseDuration parses the format of [time.ParseDuration], and days. Negative durations are errors.
func ParseDuration(text string) (time.Duration, error) {
	if found := days.FindStringSubmatch(text); found != nil {
		count, _ := strconv.Atoi(found[1])
		return time.Duration(count) * 24 * time.Hour, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q; use for example 90m, 24h or 30d", text)
	}
	if span < 0 {
		return 0, errors.New("the duration is negative")
	}
	return span, nil
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// WithoutReport returns the node without error reports.
func WithoutReport(n Node) Node {
	n.reader = &Reader{Report: func(int, string) {}}
	return n
}

// IsMapping reports whether the value is a mapping.
func (n Node) IsMapping() bool { return n.yaml != nil && n.yaml.Kind == yaml.MappingNode }
