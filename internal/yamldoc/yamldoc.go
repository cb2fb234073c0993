// Package yamldoc reads files in YAML strictly and reports errors with file, line and field:
//
//	routes.yaml:4: routes[0].stepps: unknown key; did you mean "steps"?
//
// The configuration, policies, test cases, routes, groups and agents are all read with it. [Decode]
// decodes a document into a struct; a [Reader] reads it node by node, for files with rules that
// structs cannot express. Surprising features of YAML are rejected: anchors, several documents,
// duplicate keys, missing values and implicit type conversion.
package yamldoc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the maximum size of a file.
const maxBytes = 4 << 20

// Error is one error in a file.
type Error struct {
	File  string
	Line  int    // 0 if it is not known
	Field string // the path of the value, such as routes[0].steps; "" for the document
	Text  string // what is wrong, and what is allowed
}

// Error formats the error as compilers do, so that editors find the line.
func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return strings.TrimPrefix(text+": "+e.Text, ": ")
}

// Decode decodes the only document of a file into a struct, by its yaml tags. The error lists
// everything that is wrong, as joined values of type *[Error].
func Decode(file string, src []byte, into any) error {
	return Read(file, src, func(document Node) { document.Decode(into) })
}

// Read calls use with the document of a file, and returns the errors that were reported, as joined
// values of type *[Error].
func Read(file string, src []byte, use func(document Node)) error {
	var errs []error
	r := Reader{Report: func(line int, field, text string) {
		errs = append(errs, &Error{File: file, Line: line, Field: field, Text: text})
	}}
	use(r.Document(src))
	return errors.Join(errs...)
}

// Message returns the text of an error with its field. Within a named item of a list, such as a
// rule, the field is relative to the item.
func Message(item, field, text string) string {
	if _, rest, ok := strings.Cut(field, "]"); item != "" && ok {
		field = strings.TrimPrefix(rest, ".")
	}
	if field == "" {
		return text
	}
	return field + ": " + text
}

// Reader reads nodes and reports errors. It continues after an error, so that one load reports all
// of them.
type Reader struct {
	// Report is called for every error.
	Report func(line int, field, text string)
	// AllowEmpty allows a file without a document.
	AllowEmpty bool
}

// Document returns the only document in src. It is missing if src cannot be parsed.
func (r *Reader) Document(src []byte) Node {
	if len(src) > maxBytes {
		r.Report(1, "", fmt.Sprintf("the file has %d bytes; the maximum is %d", len(src), maxBytes))
		return Node{}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(src)))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if err.Error() != "EOF" {
			r.syntax(err)
		} else if !r.AllowEmpty {
			r.Report(1, "", "the file is empty")
		}
		return Node{}
	}
	if err := decoder.Decode(&more); err == nil {
		r.Report(more.Line, "", "a second document begins here; only one is allowed")
		return Node{}
	}
	return Node{reader: r, yaml: document.Content[0]}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// syntax reports a YAML syntax error.
func (r *Reader) syntax(err error) {
	text, line := err.Error(), 1
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = found[2]
	}
	r.Report(line, "", "invalid YAML: "+strings.TrimPrefix(text, "yaml: "))
}
