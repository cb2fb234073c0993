// Package yamldoc reads the YAML that people write rules in, and tells them where they went wrong.
//
// The decoder of the YAML library fills structs, and says of a wrong key which Go type does not have it. Whoever writes a
// rule needs the line, and the key that was meant. So documents are read here node by node. What is surprising in YAML is
// left out: anchors, several documents, a key twice, a value that turns into another type.
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

// maxBytes is more than anybody writes by hand.
const maxBytes = 4 << 20

// Reader reads nodes and reports what is wrong with them; it goes on after a mistake, so that one load shows them all.
type Reader struct {
	// Report is told of every mistake.
	Report func(line int, text string)
}

// Node is a value in a document; the zero value is one that is not there.
type Node struct {
	reader *Reader
	yaml   *yaml.Node
	label  string // how messages call it
}

// Document returns the one document in src.
func (r *Reader) Document(src []byte) Node {
	if len(src) > maxBytes {
		r.Report(1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(src), maxBytes))
		return Node{}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(src)))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		r.syntax(err)
		return Node{}
	}
	if err := decoder.Decode(&more); err == nil {
		r.Report(more.Line, "a second document begins here; one file is one document")
		return Node{}
	}
	return Node{reader: r, yaml: document.Content[0], label: "the document"}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// syntax reports what the library says of a text that is no YAML.
func (r *Reader) syntax(err error) {
	text, line := err.Error(), 1
	if text == "EOF" {
		text = "the file is empty"
	}
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = found[2]
	}
	r.Report(line, "not YAML: "+strings.TrimPrefix(text, "yaml: "))
}

// Missing reports whether there is no such value.
func (n Node) Missing() bool { return n.yaml == nil }

// Line is where the value stands.
func (n Node) Line() int {
	if n.yaml == nil {
		return 0
	}
	return n.yaml.Line
}

// TextLine is where the text of a value begins: for a block, one line below its mark.
func (n Node) TextLine() int {
	if n.yaml != nil && n.yaml.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.yaml.Line + 1
	}
	return n.Line()
}

// Wrong reports a mistake at this value.
func (n Node) Reportf(format string, args ...any) {
	n.reader.Report(n.Line(), fmt.Sprintf(format, args...))
}

func (n Node) isMap() bool {
	if n.yaml.Kind == yaml.AliasNode {
		n.Reportf("%s is an alias; anchors and aliases are not read here, write it out", n.label)
		return false
	}
	if n.yaml.Kind != yaml.MappingNode {
		n.Reportf("%s has to be a mapping of keys to values", n.label)
		return false
	}
	return true
}

// Map returns the values of a mapping. A key that is not known is reported with the nearest one that is.
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
			at.Reportf("%s has a key that is no plain word", n.label)
		case twice:
			at.Reportf("%s has %q twice", n.label, key.Value)
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

// Keys returns the values of a mapping whose keys are free, in their order.
func (n Node) Keys() (names []string, values []Node) {
	if n.Missing() || !n.isMap() {
		return nil, nil
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		if seen[key.Value] || key.Kind != yaml.ScalarNode {
			Node{reader: n.reader, yaml: key}.Reportf("%s has %q twice, or as a key that is no plain word", n.label, key.Value)
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
		n.Reportf("%s has to be a list", n.label)
		return nil
	}
	items := make([]Node, 0, len(n.yaml.Content))
	for i, item := range n.yaml.Content {
		items = append(items, Node{reader: n.reader, yaml: item, label: fmt.Sprintf("item %d of %s", i+1, n.label)})
	}
	return items
}

// Text returns a scalar as it was written: no "on" becomes a truth, no 1.10 a 1.1.
func (n Node) Text() string {
	if n.Missing() {
		return ""
	}
	if n.yaml.Kind != yaml.ScalarNode || n.yaml.Tag == "!!null" {
		n.Reportf("%s has to be a text", n.label)
		return ""
	}
	return n.yaml.Value
}

// Texts returns a list of texts.
func (n Node) Texts() []string {
	items := n.List()
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, item.Text())
	}
	return texts
}

// Choice returns one of the choices, or "" after a report.
func (n Node) Choice(choices ...string) string {
	text := n.Text()
	if n.Missing() || contains(choices, text) {
		return text
	}
	n.Reportf("%s cannot be %q%s", n.label, text, Suggest(text, choices))
	return ""
}

// Int returns a whole number of at least least.
func (n Node) Int(least int64) int64 {
	if n.Missing() {
		return 0
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Text(), "_", ""), 10, 64)
	if err != nil || number < least {
		n.Reportf("%s has to be a whole number of at least %d", n.label, least)
		return least
	}
	return number
}

// Duration returns a span of time such as 90m, 24h or 30d.
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

// Any returns the value as Go's JSON would have it, for parts of a document that are data.
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

// ParseDuration reads what [time.ParseDuration] does, and days. A span is not negative.
func ParseDuration(text string) (time.Duration, error) {
	if found := days.FindStringSubmatch(text); found != nil {
		count, _ := strconv.Atoi(found[1])
		return time.Duration(count) * 24 * time.Hour, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no span of time; write 90m, 24h or 30d", text)
	}
	if span < 0 {
		return 0, errors.New("a span of time cannot be negative")
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

// WithoutReport returns the node with nobody to report to.
func WithoutReport(n Node) Node {
	n.reader = &Reader{Report: func(int, string) {}}
	return n
}

// IsMapping reports whether the value is a mapping.
func (n Node) IsMapping() bool { return n.yaml != nil && n.yaml.Kind == yaml.MappingNode }
